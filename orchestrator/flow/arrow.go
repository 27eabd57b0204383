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

// Refused says that a guard did not let it through.
func (a Arrow) Refused() bool { return a.Code != "" }

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
	type key struct{ from, to, code, condition string }
	known := boxNames(arrows)
	at := map[key]int{}
	var edges []Edge
	for _, a := range arrows {
		a.From, a.To = within(known, a.From), within(known, a.To)
		k := key{a.From, a.To, a.Code, a.Condition}
		i, seen := at[k]
		if !seen {
			i, at[k] = len(edges), len(edges)
			edges = append(edges, Edge{From: a.From, To: a.To, Code: a.Code, Condition: a.Condition})
		}
		e := &edges[i]
		e.Count++
		switch {
		case a.Label == "" || slices.Contains(e.Labels, a.Label):
		case len(e.Labels) == maxLabels:
			e.More++
		default:
			e.Labels = append(e.Labels, a.Label)
		}
	}
	return edges
}

// boxNames are the agents that have a box of their own, by their first arrow.
func boxNames(arrows []Arrow) map[string]bool {
	known := map[string]bool{}
	for _, a := range arrows {
		for _, name := range []string{a.From, a.To} {
			if len(known) < MaxBoxes-1 {
				known[name] = true
			}
		}
	}
	return known
}

func within(known map[string]bool, name string) string {
	if known[name] {
		return name
	}
	return Others
}
