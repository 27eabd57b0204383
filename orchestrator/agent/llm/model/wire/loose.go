package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// Decode reads JSON as it comes from services that are only nearly compatible: a value of the
// wrong type is left out, and the rest of the object is read. Only what is no JSON is an error.
func Decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return nil
	}
	return err
}

// Text is a string. What came in its place is kept as it was written: a number as an id, an
// object as the arguments of a call.
type Text string

// UnmarshalJSON makes a Text a json.Unmarshaler.
func (t *Text) UnmarshalJSON(raw []byte) error {
	var s string
	switch {
	case string(raw) == "null":
	case raw[0] != '"':
		*t = Text(raw)
	case json.Unmarshal(raw, &s) == nil:
		*t = Text(s)
	}
	return nil
}

// Number is a whole number; fractions are cut off, and a string with a number in it is one.
type Number struct {
	N     int64
	Given bool // it came, and was a number
}

// UnmarshalJSON makes a Number a json.Unmarshaler.
func (n *Number) UnmarshalJSON(raw []byte) error {
	var text Text
	if err := text.UnmarshalJSON(raw); err != nil {
		return err
	}
	if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*n = Number{N: whole, Given: true}
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64) // one out of range is infinite
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
		return nil
	}
	*n = Number{N: int64(max(-1<<62, min(f, 1<<62))), Given: true}
	return nil
}
