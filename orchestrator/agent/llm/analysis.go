package llm

import "gatehouse/orchestrator/agent"

// analysing leaves an agent that only analyses the tools that change nothing (K45), and
// names the others: a model that calls one all the same is told why it is refused. What it
// hands on is judged at the agent that gets it.
func analysing(spec agent.Spec, all []tool) (given []tool, denied map[string]bool) {
	if !spec.AnalysisOnly {
		return all, nil
	}
	denied = map[string]bool{}
	given = shown(all, func(t tool) bool {
		denied[t.Name] = t.changes
		return !t.changes
	})
	return given, denied
}

// refusedAction answers a call of a tool that the rule for analyses keeps from the agent.
func refusedAction(name, tool string) answer {
	return sorry("%s: The rule analysis-only refuses %s: it may change something, and %s only analyses, so nobody is asked about what it does. "+
		"Go on without it, and say in your answer what should be done.", agent.CodeActionRefused, tool, name)
}
