package telegram

import (
	"fmt"

	"gatehouse/orchestrator/strictjson"
)

// strict refuses an update that two readers could read in two ways: a key that stands
// twice, keys that differ in their case, and keys that are not as the Bot API writes them,
// in small letters. Go's own reader takes "From" for "from", and the last of two.
func strict(body []byte) error {
	value, err := strictjson.Object(body)
	if err != nil {
		return err
	}
	return plainKeys(value)
}

// plainKeys reports a key with anything but small letters, digits and underscores.
func plainKeys(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			for _, c := range key {
				if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
					return &strictjson.Refusal{What: fmt.Sprintf("the Bot API writes no key %.80q", key)}
				}
			}
			if err := plainKeys(inner); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := plainKeys(inner); err != nil {
				return err
			}
		}
	}
	return nil
}
