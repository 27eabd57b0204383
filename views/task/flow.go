package task

import (
	"fmt"
	"strings"

	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/flow"
	"gatehouse/views"
)

// FlowPage is `/delegations/{id}/flow`: who handed what to whom, as a drawing and a table.
type FlowPage struct {
	views.Chrome
	TaskID string
	Text   string // the task's
	Flow   Flow
}

// Flow is one drawing.
type Flow struct {
	Chart  flow.Chart
	States map[string]string // of an agent's newest delegation
	Runs   map[string]int    // how often each agent got work
	Person string            // the box of who asked, which is no agent
}

// desc tells the drawing in a sentence, for readers aloud.
func (f Flow) desc() string {
	handed, refused := 0, 0
	for _, l := range f.Chart.Lines {
		if l.Code != "" {
			refused += l.Count
		} else {
			handed += l.Count
		}
	}
	return fmt.Sprintf("%s, %s, %s refused. The table below lists them.", views.Plural(len(f.Chart.Boxes), "box", "boxes"), views.Plural(handed, "hand-over", "hand-overs"), views.Thousands(refused))
}

// linePath is the d attribute of a line: straight through layers, curved between them.
func linePath(l flow.Line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", l.Way[0].X, l.Way[0].Y)
	for i := 1; i < len(l.Way); i++ {
		p, q := l.Way[i-1], l.Way[i]
		switch {
		case l.Back || p.X == q.X:
			fmt.Fprintf(&b, "L%d %d", q.X, q.Y)
		default:
			mid := (p.Y + q.Y) / 2
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", p.X, mid, q.X, mid, q.X, q.Y)
		}
	}
	return b.String()
}

// lineTitle says all of an arrow that its label has no room for.
func lineTitle(l flow.Line) string {
	text := fmt.Sprintf("%s → %s: %s", l.From, l.To, strings.Join(l.Labels, "; "))
	if l.Code != "" {
		text = fmt.Sprintf("%s → %s was refused: %s", l.From, l.To, l.Code)
	}
	if l.Condition != "" {
		text += " (if " + l.Condition + ")"
	}
	return views.VisibleText(text)
}

func lineClass(l flow.Line) string {
	switch {
	case l.Code != "":
		return "flow-line is-refused-line"
	case l.Back:
		return "flow-line is-loop"
	}
	return "flow-line"
}

// labelOf is what stands beside an arrow: its condition, then what went along.
func labelOf(l flow.Line) string {
	if l.Condition != "" {
		return "if " + l.Condition
	}
	return l.Label()
}

func (f Flow) boxClass(name string) string {
	if name == f.Person {
		return "flow-box is-person"
	}
	return "flow-box is-" + badge.Of(f.States[name]).Role
}

// boxNote is the second line of a box.
func (f Flow) boxNote(name string) string {
	switch {
	case name == f.Person:
		return "asked for it"
	case f.States[name] == "":
		return "got nothing"
	case f.Runs[name] > 1:
		return fmt.Sprintf("%d× · %s", f.Runs[name], views.StateWord(f.States[name]))
	}
	return views.StateWord(f.States[name])
}
