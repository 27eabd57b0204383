package approval

import (
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
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
	if !would.same(best.Rule) {
		best.Shadow = &would
	}
	if of != f.Agent {
		text := fmt.Sprintf("%s worked on this, too, and for its changes rule %q holds, which is stricter than that for %s.", of, best.Rule.Name, f.Agent)
		best.Notes = addNotes(best.Notes, []patch.Note{{Code: NoteOtherAgent, Text: text}})
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

// stricter reports whether r asks more than o; see Policy.Strictest.
func (r Rule) stricter(o Rule) bool {
	if a, b := r.strictness(), o.strictness(); a != b {
		return a > b
	}
	return !r.Deny && r.Need > 0 && len(r.From) > 0 && len(o.From) == 0
}

// strictestMode is where a yes may be given to a change of these agents: only where each
// of them lets it in. The page, the command line and programs always are let in.
func (c Config) strictestMode(agents []string) string {
	mode := ""
	for i, name := range agents {
		switch m := c.Agents[name].Mode; {
		case i == 0:
			mode = m
		case m == "" || m == "any" || m == mode:
		case mode == "" || mode == "any":
			mode = m
		default:
			mode = "web" // the one lets in what the other keeps out
		}
	}
	return mode
}

// agents are the names of those that worked on the revision, own first; of revisions of
// before that was kept it is known of own alone.
func (v Revision) agents(own string) []string {
	return orchestrator.Lineage{Authors: append([]orchestrator.Author{{Agent: own}}, v.Authors...)}.Agents()
}

// sandboxes are what confined them.
func (v Revision) sandboxes() []string {
	authors := v.Authors
	if len(authors) == 0 {
		authors = []orchestrator.Author{{Sandbox: v.Sandbox}}
	}
	return orchestrator.Lineage{Authors: authors}.Sandboxes()
}

// owners are the people who own an agent that worked on the current revision.
func (r *Request) owners() []string {
	names, agents := []string{}, r.Revision.agents(r.Agent)
	for _, p := range r.Lineage {
		if p.Agent != "" && slices.Contains(agents, p.Agent) {
			names = appendOnce(names, p.User)
		}
	}
	return names
}
