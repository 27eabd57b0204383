package flow

import (
	"fmt"
	"slices"
)

// MaxBoxes is how many boxes a drawing has; further agents share the box Others.
const MaxBoxes = 200

// Others is the box of the agents beyond MaxBoxes. No agent can have this name.
const Others = "… others"

// Arrow is one hand-over as it happened, in the order of time.
type Arrow struct {
	From, To  string // agents; From of the first is who asked for the task
	Label     string // the artifact that went along, else the first words of the text
	Condition string // of a workflow's branch or loop: "steps.score.data.score < 80"
	Code      string // of the refusal; "" when the hand-over was made
}

// Edge is one arrow of the drawing: all hand-overs that look alike.
type Edge struct {
	From, To  string
	Code      string
	Condition string
	Labels    []string // different ones, in the order of time, at most maxLabels
	More      int      // labels that are left out
	Count     int
	Back      bool // it leads up: a retry loop, or a refused return
}

// maxLabels is how many different labels an edge keeps.
const maxLabels = 20

// Label is what stands beside the arrow.
func (e Edge) Label() string {
	text := ""
	if len(e.Labels) > 0 {
		text = e.Labels[0]
	}
	if n := len(e.Labels) - 1 + e.More; n > 0 {
		text += fmt.Sprintf(" +%d", n)
	}
	if e.Code != "" {
		text = e.Code
	}
	if e.Count > 1 {
		text = fmt.Sprintf("%d× %s", e.Count, text)
	}
	return text
}

// Merge makes edges of arrows: those between the same two that end the same way are one.
func Merge(arrows []Arrow) []Edge {
	var m Merger
	for _, a := range arrows {
		m.Add(a)
	}
	return m.Edges()
}

// Merger merges arrows that come one by one, in the order of time. What it holds grows with
// the agents, not with the arrows.
type Merger struct {
	known map[string]bool // agents that have a box of their own, by their first arrow
	at    map[edgeKey]int
	edges []Edge
}

// edgeKey is what arrows have in common that look alike.
type edgeKey struct{ from, to, code, condition string }

func (m *Merger) Add(a Arrow) {
	if m.at == nil {
		m.known, m.at = map[string]bool{}, map[edgeKey]int{}
	}
	a.From, a.To = m.within(a.From), m.within(a.To)
	k := edgeKey{a.From, a.To, a.Code, a.Condition}
	i, seen := m.at[k]
	if !seen {
		i, m.at[k] = len(m.edges), len(m.edges)
		m.edges = append(m.edges, Edge{From: a.From, To: a.To, Code: a.Code, Condition: a.Condition})
	}
	e := &m.edges[i]
	e.Count++
	switch {
	case a.Label == "" || slices.Contains(e.Labels, a.Label):
	case len(e.Labels) == maxLabels:
		e.More++
	default:
		e.Labels = append(e.Labels, a.Label)
	}
}

// Edges are those of the arrows so far, by their first one.
func (m *Merger) Edges() []Edge { return m.edges }

// within is the box of an agent: its own, or that of the others.
func (m *Merger) within(name string) string {
	switch {
	case m.known[name]:
	case len(m.known) < MaxBoxes-1:
		m.known[name] = true
	default:
		return Others
	}
	return name
}
