package task

import (
	"gatehouse/orchestrator"
	"gatehouse/views"
)

// StopPage is `/delegations/stop`: how much runs or waits, and the form that stops it.
type StopPage struct {
	views.Chrome
	Agent   string   // "": everybody's work
	Names   []string // the agents
	Would   orchestrator.Stopped
	Did     *orchestrator.Stopped // what the form has just stopped; nil: nothing was sent
	Reason  string
	Problem string // why the form was not taken
}

// stopWords are the count as a sentence has it.
func stopWords(n orchestrator.Stopped) string {
	return views.Plural(n.Delegations, "delegation", "delegations") + " in " + views.Plural(n.Tasks, "task", "tasks")
}

// whose is whose work the page is about.
func (p StopPage) whose() string {
	if p.Agent == "" {
		return "everybody"
	}
	return p.Agent
}

// stopVerb fits the number.
func stopVerb(n int) string {
	if n == 1 {
		return "runs or waits"
	}
	return "run or wait"
}
