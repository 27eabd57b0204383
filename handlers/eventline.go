package handlers

import (
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
	taskview "gatehouse/views/task"
)

// words are how pages say what events tell.
var words = event.Words{
	State: views.StateWord,
	Verdict: func(verdict string, startOver bool) string {
		return views.VerdictWord(verdict) + approval.Decision{StartOver: startOver}.Anew()
	},
	Steered: func(by string, trusted bool) string { return taskview.SteeredWords(by, "the branch", trusted) },
}

// eventLine is one line of what an event says, beside its type and who did it.
func eventLine(e event.Event) string { return event.Sentence(e, words) }

// doer is who stands beside an event: the person or rule that acted, else the agent.
func doer(e event.Event, agent string) string {
	if e.Type.ByActor() {
		return e.Actor
	}
	return agent
}

// prefixed is s after its prefix, or nothing where there is no s.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// first is the first of the texts that says something.
func first(texts ...string) string {
	for _, s := range texts {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}
