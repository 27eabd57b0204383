package trigger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxBody is the largest body that a webhook may send, in bytes. Sources send up to
	// 25 MB; what a task is made of stands in far less.
	MaxBody = 1 << 20
	// MaxDepth is how deep a body may nest. Payloads of the sources have fewer than 20.
	MaxDepth = 100
)

// ErrJSON is the kind of every error of Decode; the sentence says what is wrong and never
// repeats the body.
var ErrJSON = errors.New("the body is not taken")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrJSON}, args...)...)
}

// open is an object or a list whose end has not been read.
type open struct {
	object map[string]any
	list   []any
	key    string            // of the member that is being read
	seen   map[string]string // folded keys of the object, with the key as it was written
	isList bool
}

// Decode reads one JSON object strictly: UTF-8, each key once in any spelling of its
// case, not too deep, and nothing behind it. Two programs that read such a body never
// see two different things. It takes time in line with the body's length, and its stack
// does not grow with the nesting.
func Decode(body []byte) (map[string]any, error) {
	if !utf8.Valid(body) {
		return nil, refused("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var stack []open
	for {
		token, err := dec.Token()
		if err != nil {
			return nil, malformed(err)
		}
		if len(stack) == 0 && token != json.Delim('{') {
			return nil, refused("it is no JSON object")
		}
		var value any
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				if len(stack) == MaxDepth {
					return nil, refused("it is nested deeper than %d levels", MaxDepth)
				}
				stack = append(stack, opened(token == '['))
				continue
			}
			value = stack[len(stack)-1].value()
			stack = stack[:len(stack)-1]
		case json.Number:
			value = number(token)
		case string:
			if top := &stack[len(stack)-1]; !top.isList && !top.named() {
				if err := top.name(token); err != nil {
					return nil, err
				}
				continue
			}
			value = token
		default:
			value = token
		}
		if len(stack) == 0 {
			return whole(dec, value)
		}
		stack[len(stack)-1].add(value)
	}
}

// whole returns the object if nothing follows it.
func whole(dec *json.Decoder, value any) (map[string]any, error) {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refused("there is more behind the JSON object")
	}
	object, _ := value.(map[string]any) // the first token was {
	return object, nil
}

func opened(list bool) open {
	if list {
		return open{isList: true, list: []any{}}
	}
	return open{object: map[string]any{}, seen: map[string]string{}}
}

// named reports whether a key waits for its value; else the next text is a key.
func (o *open) named() bool { return o.key != "" }

func (o *open) name(key string) error {
	folded := fold(key)
	if was, twice := o.seen[folded]; twice {
		if was == key {
			return refused("the key %.80q stands twice in one object", key)
		}
		return refused("the keys %.80q and %.80q differ in their case only", was, key)
	}
	o.seen[folded] = key
	o.key = "=" + key // also the empty key is a name
	return nil
}

func (o *open) add(value any) {
	if o.isList {
		o.list = append(o.list, value)
		return
	}
	o.object[o.key[1:]], o.key = value, ""
}

func (o *open) value() any {
	if o.isList {
		return o.list
	}
	return o.object
}

// fold is the same for all spellings of a key that a reader which ignores case would
// take for one another, such as the Kelvin sign and k.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, key)
}

// number makes whole numbers integers, so that 1000000 is not written as 1e+06.
func number(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return int(i)
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return n.String()
}

func malformed(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return refused("it is not JSON (at byte %d)", syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refused("it ends too early")
	default:
		return refused("it cannot be read")
	}
}
