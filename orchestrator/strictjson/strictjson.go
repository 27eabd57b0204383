// Package strictjson reads JSON that comes from outside in one way only. Two programs
// that read the same body must never see two different things, and Go's own reader takes
// the last of two equal keys and any case of a key. Every door uses it: bodies of the API
// and of webhooks, updates of Telegram, lines and tool calls of agents, answers of agents
// elsewhere, and messages of WebSockets.
//
// It imports the standard library only.
package strictjson

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

// MaxDepth is how deep a body may nest where its door has no limit of its own. Payloads of
// webhooks have fewer than 20.
const MaxDepth = 100

// Err is the kind of every error of this package but those of types; the sentence says
// what is wrong and never repeats the body.
var Err = errors.New("the body is not taken")

// Refusal is what is wrong with a body.
type Refusal struct {
	What string // "ends too early", or "the key "a" stands twice in one object"
	// Whole says it of the body, which What then does not name; else two readers could
	// understand the body in two ways.
	Whole bool
}

// Sentence is what is wrong, with a subject and without a full stop.
func (r *Refusal) Sentence() string {
	if r.Whole {
		return "it " + r.What
	}
	return r.What
}

func (r *Refusal) Error() string { return Err.Error() + ": " + r.Sentence() }

// Is makes each Refusal an Err.
func (r *Refusal) Is(target error) bool { return target == Err }

func refused(format string, args ...any) error { return &Refusal{What: fmt.Sprintf(format, args...)} }

// broken refuses the body as a whole.
func broken(format string, args ...any) error {
	return &Refusal{What: fmt.Sprintf(format, args...), Whole: true}
}

// Check reports why a body is not taken: it has to be one JSON value in UTF-8, nested at
// most so deep, with each key once in any spelling of its case and nothing behind it. It
// takes time in line with the body's length, and its stack does not grow with the nesting.
func Check(body []byte, depth int) error {
	if !utf8.Valid(body) {
		return broken("is not UTF-8")
	}
	if err := shallow(body, depth); err != nil {
		return err // before anything reads it that goes as deep as it does
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return malformed(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refused("there is more behind the JSON %s", kind(value))
	}
	return once(body, depth)
}

// kind is what a value begins as.
func kind(value json.RawMessage) string {
	if len(value) > 0 && value[0] == '{' {
		return "object"
	}
	return "value"
}

// Object reads one JSON object that passes Check. Whole numbers are integers in it.
func Object(body []byte) (map[string]any, error) {
	if err := Check(body, MaxDepth); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, malformed(err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, broken("is no JSON object")
	}
	numbers(object)
	return object, nil
}

// shallow counts the nesting, of anything that has brackets outside of its texts.
func shallow(body []byte, most int) error {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = behind(body, i) - 1
		case '{', '[':
			if depth++; depth > most {
				return broken("is nested deeper than %d levels", most)
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
func once(body []byte, depth int) error {
	stack := make([]level, 0, depth)
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
			if len(stack) > 0 && !stack[len(stack)-1].list && stack[len(stack)-1].key {
				if err := stack[len(stack)-1].add(body[i:end]); err != nil {
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
		return broken("is not JSON (at byte %d)", syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return broken("ends too early")
	default:
		return broken("cannot be read")
	}
}
