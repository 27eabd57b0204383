package chain

import "strings"

// arrow stands between the names of a chain, where it is text.
const arrow = " → "

// Names are the agents of a chain from its root to the last one: what is left of it where the
// steps' texts do not matter. As text, and in JSON, they are "kik → coder".
type Names []string

// Names are those of c; nil of an empty chain.
func (c Chain) Names() Names {
	if len(c.steps) == 0 {
		return nil
	}
	names := Names{c.steps[0].From}
	for _, s := range c.steps {
		names = append(names, s.To)
	}
	return names
}

// ParseNames reads what String has written.
func ParseNames(text string) Names {
	if text == "" {
		return nil
	}
	return strings.Split(text, arrow)
}

// String is the names for people.
func (n Names) String() string { return strings.Join(n, arrow) }

// MarshalText implements encoding.TextMarshaler.
func (n Names) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Names) UnmarshalText(text []byte) error {
	*n = ParseNames(string(text))
	return nil
}
