package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Into reads one JSON value that passes Check into v. A key of one of v's structs in
// another case is an error; keys that no field has are passed over. Wrong types are errors
// as encoding/json makes them.
func Into(body []byte, v any, depth int) error { return into(body, v, depth, false) }

// IntoKnown is Into where a key that no field has is an error, too.
func IntoKnown(body []byte, v any, depth int) error { return into(body, v, depth, true) }

func into(body []byte, v any, depth int, known bool) error {
	if err := Check(body, depth); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a number that no float holds is the business of its field
	if err := exact(dec, reflect.TypeOf(v), known); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

var reads = reflect.TypeFor[json.Unmarshaler]()

// exact walks one value along the type that it is read into; nil is any type.
func exact(dec *json.Decoder, t reflect.Type, known bool) error {
	token, err := dec.Token()
	if err != nil {
		return malformed(err)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && reflect.PointerTo(t).Implements(reads) {
		t = nil
	}
	switch token {
	case json.Delim('{'):
		err = exactKeys(dec, t, known)
	case json.Delim('['):
		for dec.More() && err == nil {
			err = exact(dec, element(t), known)
		}
	default:
		return nil
	}
	if err == nil {
		_, err = dec.Token() // the closing bracket
	}
	return err
}

// element is the type of what a list or a map holds.
func element(t reflect.Type) reflect.Type {
	if t != nil && slices.Contains([]reflect.Kind{reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
		return t.Elem()
	}
	return nil
}

func exactKeys(dec *json.Decoder, t reflect.Type, known bool) error {
	fields := fieldsOf(t)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return malformed(err)
		}
		key, _ := token.(string) // the decoder gives nothing else here
		value, ok := fields[key]
		if fields == nil {
			value = element(t)
		} else if !ok {
			for name := range fields {
				if fold(name) == fold(key) {
					return refused("the key %.80q must be written %q", key, name)
				}
			}
			if known {
				return refused("there is no key %.80q here", key)
			}
		}
		if err := exact(dec, value, known); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf lists what encoding/json would fill of a struct; nil of any other type.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() || f.Anonymous && name == "" {
			continue
		}
		name = cmp.Or(name, f.Name)
		fields[name] = f.Type
	}
	return fields
}
