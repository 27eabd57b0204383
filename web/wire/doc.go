// Package wire has the published JSON types of the API, each once: the server fills them, the client reads them.
//
// A field that is added here is on both ends. The types hold plain values; states, verdicts and channels are the words
// of the contract. The package knows no room of the engine beyond the values that are published as they are.
package wire

import "encoding/json"

// Maybe is a text that is null in JSON where it is empty.
type Maybe string

// MarshalJSON writes null for "".
func (m Maybe) MarshalJSON() ([]byte, error) {
	if m == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(m))
}

// List is one page of anything; Next is the cursor of the next page, "" on the last one.
type List[T any] struct {
	Items []T   `json:"items"`
	Next  Maybe `json:"next"`
}

// ListOf makes a list whose items are never null.
func ListOf[T any](items []T, next string) List[T] {
	return List[T]{Items: Items(items), Next: Maybe(next)}
}

// Items are those of a list that is never null.
func Items[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Reason is the body of calls that only ask why.
type Reason struct {
	Reason string `json:"reason"`
}
