package approval

import (
	"slices"

	"gatehouse/orchestrator"
)

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
