package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxWhy is how much of why data does not fit is told, in bytes.
const maxWhy = 1000

// CheckSchema says what is wrong with a JSON Schema for answers; nil is fine.
func CheckSchema(schema json.RawMessage) error {
	_, err := resolved(schema)
	return err
}

// resolved reads a schema. References lead inside of it only: nothing is fetched.
func resolved(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// Fits reports whether the data of an answer is what the agent's output schema asks for:
// nil, or why not, in words for whoever made it.
func (s Spec) Fits(data json.RawMessage) error {
	if s.Output == nil {
		return nil
	}
	schema, err := resolved(s.Output)
	if err != nil {
		return fmt.Errorf("the output schema of %s cannot be read: %w", s.Name, err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the answer has no data")
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return fmt.Errorf("the data is not JSON: %w", err)
	}
	if err := schema.Validate(value); err != nil {
		why := err.Error()
		return fmt.Errorf("the data does not fit: %s", strings.ToValidUTF8(why[:min(len(why), maxWhy)], ""))
	}
	return nil
}
