// Package chain is the immutable list of hand-overs that led to a delegation
// (K1–K16). It is pure and imports agent only for the identity of names.
package chain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
)

// DefaultMaxDepth is how many hops a chain may have: orchestrator, specialist,
// sub-specialist (K2).
const DefaultMaxDepth = 3

// Step is one hand-over; exactly three strings (K1).
type Step struct {
	From string `json:"from"`
	To   string `json:"to"`
	Task string `json:"task"`
}

// Chain is a value: adding to it makes a new one (K3). The zero Chain is empty
// and has the default depth.
type Chain struct {
	steps    []Step
	maxDepth int
}

// New returns an empty chain; maxDepth below 1 means DefaultMaxDepth.
func New(maxDepth int) Chain { return Chain{maxDepth: maxDepth} }

// With returns c with one more step; c itself stays as it is (K3).
func (c Chain) With(s Step) Chain {
	steps := make([]Step, len(c.steps), len(c.steps)+1)
	copy(steps, c.steps)
	return Chain{steps: append(steps, s), maxDepth: c.maxDepth}
}

// Steps returns a copy of the steps, oldest first.
func (c Chain) Steps() []Step { return append([]Step{}, c.steps...) }

func (c Chain) Depth() int { return len(c.steps) }

// MaxDepth is how many steps are allowed.
func (c Chain) MaxDepth() int {
	if c.maxDepth < 1 {
		return DefaultMaxDepth
	}
	return c.maxDepth
}

// Within returns c with another depth: a chain that was stored has lost its own.
func (c Chain) Within(maxDepth int) Chain { return Chain{steps: c.steps, maxDepth: maxDepth} }

// Contains reports whether the agent took part already, as source or as target:
// the root only ever is a source and must not return either (K4, K5).
func (c Chain) Contains(name string) bool {
	key := agent.Key(name)
	return slices.ContainsFunc(c.steps, func(s Step) bool { return agent.Key(s.From) == key || agent.Key(s.To) == key })
}

// Full reports whether no further step is allowed (K7).
func (c Chain) Full() bool { return len(c.steps) >= c.MaxDepth() }

// String is the chain for people: "kik → coder → reviewer".
func (c Chain) String() string { return c.Names().String() }

// MarshalJSON writes the steps; an empty chain is [].
func (c Chain) MarshalJSON() ([]byte, error) { return json.Marshal(c.Steps()) }

// UnmarshalJSON reads the steps; the depth is the configuration's. It reads into a
// slice of its own, because a copy of c may share the one that c has (K3).
func (c *Chain) UnmarshalJSON(b []byte) error {
	var steps []Step
	if err := json.Unmarshal(b, &steps); err != nil {
		return fmt.Errorf("read a chain: %w", err)
	}
	c.steps = steps
	return nil
}

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
