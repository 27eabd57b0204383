package orchestrator

import (
	"fmt"
	"path"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
)

// AgentProgram is the warning that a change is to a program with which an agent that asks
// first is started. The yes to such an agent's work is to what the branch has there: this
// change decides what later yeses run.
const AgentProgram = "agent_program"

// programWarnings finds those changes, for every agent that may work on the repository.
func programWarnings(agents []agent.Spec, repository string, files []patch.File) []patch.Warning {
	var all []patch.Warning
	warned := map[string]bool{}
	for _, spec := range agents {
		if !spec.AskFirst || spec.Repository != "" && spec.Repository != repository {
			continue
		}
		for _, p := range spec.Programs() {
			for _, f := range files {
				if program := path.Clean(p.Path); !warned[f.Path] && (strings.EqualFold(f.Path, program) || strings.EqualFold(f.OldPath, program)) {
					warned[f.Path] = true
					all = append(all, patch.Warning{Code: AgentProgram, Path: f.Path,
						Text: fmt.Sprintf("Program of an agent that asks first: %s is started with it, so later yeses to its work run what is written here.", spec.Name)})
				}
			}
		}
	}
	return all
}
