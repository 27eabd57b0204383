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

// Decode reads one JSON object strictly: UTF-8, each key once in any spelling of its
// case, not too deep, and nothing behind it. Two programs that read such a body never
// see two different things. It takes time in line with the body's length, and its stack
// does not grow with the nesting.
func Decode(body []byte) (map[string]any, error) {
	if !utf8.Valid(body) {
		return nil, refused("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := shallow(body); err != nil {
		return nil, err // before anything reads it that goes as deep as it does
	}
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, malformed(err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, refused("it is no JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refused("there is more behind the JSON object")
	}
	if err := once(body); err != nil {
		return nil, err
	}
	numbers(object)
	return object, nil
}

// shallow counts the nesting, of anything that has brackets outside of its texts.
func shallow(body []byte) error {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = behind(body, i) - 1
		case '{', '[':
			if depth++; depth > MaxDepth {
				return refused("it is nested deeper than %d levels", MaxDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// behind is the place behind the text that begins at i.
func behind(body []byte, i int) int {
	for i++; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}

// level is an object or a list around the place that is being read.
type level struct {
	list bool
	key  bool   // of an object: the next text is a key
	few  []pair // its keys, while they are few
	many map[string]string
}

// pair is a key as it is compared and as it was written.
type pair struct{ folded, key string }

// once looks for keys that stand twice in an object of valid JSON.
func once(body []byte) error {
	stack := make([]level, 0, MaxDepth)
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			if len(stack) < cap(stack) { // what was there before keeps its room
				stack = stack[:len(stack)+1]
			}
			top := &stack[len(stack)-1]
			*top = level{list: body[i] == '[', key: true, few: top.few[:0]}
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			stack[len(stack)-1].key = true
		case '"':
			end := behind(body, i)
			if top := &stack[len(stack)-1]; !top.list && top.key {
				if err := top.add(body[i:end]); err != nil {
					return err
				}
			}
			i = end - 1
		}
	}
	return nil
}

// most is how many keys are compared one by one.
const most = 16

// add takes in a key, in its quotes.
func (l *level) add(quoted []byte) error {
	l.key = false
	key := string(quoted[1 : len(quoted)-1])
	if strings.Contains(key, `\`) {
		if err := json.Unmarshal(quoted, &key); err != nil {
			return malformed(err)
		}
	}
	folded := fold(key)
	was, twice := l.many[folded]
	for _, p := range l.few {
		if p.folded == folded {
			was, twice = p.key, true
		}
	}
	switch {
	case twice && was == key:
		return refused("the key %.80q stands twice in one object", key)
	case twice:
		return refused("the keys %.80q and %.80q differ in their case only", was, key)
	case l.many != nil:
		l.many[folded] = key
	case len(l.few) == most:
		l.many = map[string]string{folded: key}
	default:
		l.few = append(l.few, pair{folded, key})
	}
	return nil
}

// fold is the same for all spellings of a key that a reader which ignores case would
// take for one another, such as the Kelvin sign and k.
func fold(key string) string {
	if !strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII }) {
		return strings.ToUpper(key) // what the rest makes of it, in less time
	}
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, key)
}

// numbers makes whole numbers integers, so that 1000000 is not written as 1e+06.
func numbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if i, err := value.Int64(); err == nil {
			return int(i)
		}
		if f, err := value.Float64(); err == nil {
			return f
		}
		return value.String()
	case map[string]any:
		for k, v := range value {
			value[k] = numbers(v)
		}
	case []any:
		for i := range value {
			value[i] = numbers(value[i])
		}
	}
	return value
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
