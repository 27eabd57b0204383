package event

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Payload is the data of an event. Each type has one struct, named after it, with which the
// table pairs it: nobody else pairs a type with the data of another.
type Payload interface {
	// sentence is what happened, without who did it. It says something of empty data, too.
	sentence(e Event, w Words) string
}

// Words are those of a sentence that the house has in tables elsewhere.
type Words struct {
	State   func(state string) string
	Verdict func(verdict string, startOver bool) string
	Steered func(by string, trusted bool) string // what became of files that steer programs
}

// Of is the event of a payload; the log gives it the rest. No delegation is "". The keys of
// its data are sorted, whatever the order of the fields, so the text is canonical.
func Of(delegationID, actor string, p Payload) Event {
	e := Event{Type: typeOf(p), DelegationID: delegationID, Actor: actor}
	var keys map[string]json.RawMessage
	b, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(b, &keys)
	}
	if err == nil {
		e.Data, err = json.Marshal(keys)
	}
	if err != nil { // a number that JSON has no word for
		e.Data, _ = json.Marshal(map[string]string{"unencodable": err.Error()})
	}
	return e
}

// Read is the data of an event of P's type; of another one nothing is read.
func Read[P Payload](e Event) P {
	var p P
	if e.Type == typeOf(p) {
		Decode(e.Data, &p)
	}
	return p
}

// Decode reads data as far as it fits: a field of another shape stays empty, for old rows
// and those of other versions are read as well.
func Decode(data json.RawMessage, into any) {
	_ = json.Unmarshal(data, into) // it reads the fields behind one that does not fit
}

// Payload is the data of e in the struct of its type; nil where the table has no such type.
func (e Event) Payload() Payload {
	k, ok := KindOf(e.Type)
	if !ok {
		return nil
	}
	p := reflect.New(reflect.TypeOf(k.empty))
	Decode(e.Data, p.Interface())
	return p.Elem().Interface().(Payload)
}

// Maybe is a value that stands in the data only where it is given, also when it is zero.
type Maybe[T any] struct {
	V   T
	Set bool
}

// Given is a value that stands in the data.
func Given[T any](v T) Maybe[T] { return Maybe[T]{v, true} }

// IsZero makes encoding leave out what is not given.
func (m Maybe[T]) IsZero() bool { return !m.Set }

// MarshalJSON writes the value alone.
func (m Maybe[T]) MarshalJSON() ([]byte, error) { return json.Marshal(m.V) }

// UnmarshalJSON reads the value; one of another shape counts as not given.
func (m *Maybe[T]) UnmarshalJSON(b []byte) error {
	var v T
	if json.Unmarshal(b, &v) == nil {
		m.V, m.Set = v, !bytes.Equal(b, []byte("null"))
	}
	return nil
}

// Prefixed is s after its prefix, or nothing where there is no s.
func Prefixed[S ~string](prefix string, s S) string {
	if s == "" {
		return ""
	}
	return prefix + string(s)
}

// first is the first of the texts that says something.
func first(texts ...string) string {
	for _, s := range texts {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// oneOf is the first line of a text that says something.
func oneOf(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
