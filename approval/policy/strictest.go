package policy

import (
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/patch"
)

// NoteOtherAgent is the code of the note that the rule of another agent than the one
// whose patch it is decides.
const NoteOtherAgent = "rule_of_agent"

// Strictest is what the rules say of a tree that several agents worked on. It is the owner
// of "the strictest counts": the rules are asked once for each of f.Agents, as if the whole
// patch were that agent's alone, with agent being its name, and of the answers counts
//
//   - a denial before every other one,
//   - then the one that needs more people,
//   - of those that need equally many one that names groups,
//   - and of those still alike the first, which is that of the agent whose patch it is.
//
// So it passes without a person only where it would for each of them. The deadline, the
// groups and what is on trial are those of the answer that counts.
func (p *Policy) Strictest(f Facts) Ruling {
	best := p.Rule(f)
	if !p.tellsAgents() {
		return best
	}
	would, of := best.onTrial(), f.Agent
	for _, agent := range f.Agents {
		if agent == f.Agent {
			continue
		}
		as := f
		as.Agent = agent
		said := p.Rule(as)
		if w := said.onTrial(); w.stricter(would) {
			would = w
		}
		if said.Rule.stricter(best.Rule) {
			best, of = said, agent
		}
	}
	best.Shadow = nil
	if !would.Same(best.Rule) {
		best.Shadow = &would
	}
	if of != f.Agent {
		text := fmt.Sprintf("%s worked on this, too, and for its changes rule %q holds, which is stricter than that for %s.", of, best.Rule.Name, f.Agent)
		best.Notes = AddNotes(best.Notes, []patch.Note{{Code: NoteOtherAgent, Text: text}})
	}
	return best
}

// tellsAgents reports whether some rule may say something else of another agent.
func (p *Policy) tellsAgents() bool {
	return slices.ContainsFunc(p.list(), func(r rule) bool { return strings.Contains(r.When, "agent") })
}

// onTrial is the rule that would hold if those on trial were live.
func (r Ruling) onTrial() Rule {
	if r.Shadow != nil {
		return *r.Shadow
	}
	return r.Rule
}

// AddNotes returns notes with more, each once.
func AddNotes(notes, more []patch.Note) []patch.Note {
	for _, n := range more {
		if !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	return notes
}
