package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"reflect"
	"strings"
	"unicode/utf8"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/nearest"
	"gatehouse/orchestrator/strictjson"

	"github.com/labstack/echo/v4"
)

// maxNesting is deeper than any shape that is read here.
const maxNesting = 32

// read decodes the body into v, strictly: one JSON document, UTF-8, known fields in
// their exact spelling and each once. web has limited the body's size.
func read(c echo.Context, v any) error {
	kind, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil || kind != echo.MIMEApplicationJSON {
		return orchestrator.Errorf(handlers.CodeMediaType, "The body is not marked as JSON. Send it with Content-Type: application/json.")
	}
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	return decode(body, v)
}

// readOptional is read for routes whose body may be absent.
func readOptional(c echo.Context, v any) error {
	if c.Request().ContentLength == 0 {
		return nil
	}
	return read(c, v)
}

func decode(body []byte, v any) error {
	if !utf8.Valid(body) {
		return bad("The body is not UTF-8. Encode it as UTF-8.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := check(dec, reflect.TypeOf(v).Elem(), "", 0); err != nil {
		return sentence(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad("There is more after the JSON document. Send one document.")
	}
	// Above, fields had their names; here the free parts are looked at, too.
	if err := strictjson.Check(body, maxNesting+1); err != nil {
		return bad("%s. Send each key once, in one spelling.", upper(err.Error()))
	}
	if err := json.Unmarshal(body, v); err != nil {
		return sentence(err)
	}
	return nil
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// check walks one JSON value along the type that it will be decoded into. The
// standard decoder would take the last of two equal keys, and any case of a key.
func check(dec *json.Decoder, t reflect.Type, path string, depth int) error {
	if depth > maxNesting {
		return bad("The JSON is nested deeper than %d levels.", maxNesting)
	}
	token, err := dec.Token()
	if err != nil {
		return err
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token {
	case json.Delim('{'):
		err = checkObject(dec, t, path, depth)
	case json.Delim('['):
		var item reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			item = t.Elem()
		}
		for i := 0; dec.More() && err == nil; i++ {
			err = check(dec, item, fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
	default:
		return nil
	}
	if err != nil {
		return err
	}
	_, err = dec.Token() // the closing bracket
	return err
}

func checkObject(dec *json.Decoder, t reflect.Type, path string, depth int) error {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder gives nothing else here
		at := strings.TrimPrefix(path+"."+key, ".")
		if seen[key] {
			return bad("The field %.80q stands there twice. Send it once.", at)
		}
		seen[key] = true
		var value reflect.Type
		if fields != nil {
			f, ok := fields[key]
			if !ok {
				return bad("There is no field %.80q here.%s", at, meant(key, fields))
			}
			value = f
		}
		if err := check(dec, value, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf lists the JSON names of a struct's fields; nil when any key is fine.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}

// meant proposes the known field that is at most two edits away, else lists all.
func meant(key string, fields map[string]reflect.Type) string {
	if best := nearest.Within(strings.ToLower(key), sortedKeys(fields), 2); best != "" {
		return " Did you mean " + best + "?"
	}
	return " Known fields: " + strings.Join(sortedKeys(fields), ", ") + "."
}

// sentence makes what encoding/json says readable and never repeats the input.
func sentence(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var coded *orchestrator.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.As(err, &syntax):
		return bad("The body is not JSON: at byte %d, %s.", syntax.Offset, syntax.Error())
	case errors.As(err, &kind):
		return bad("The field %.80q is a %s; it should be of type %s.", kind.Field, kind.Value, kind.Type)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return bad("The JSON ends too early. Send one whole document.")
	default:
		return bad("The body could not be read: %w", err)
	}
}

func bad(format string, args ...any) error {
	return orchestrator.Errorf(orchestrator.CodeBadRequest, format, args...)
}
