package handlers

import (
	"gatehouse/approval"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
)

// words are how pages say what events tell.
var words = event.Words{
	State: views.StateWord,
	Verdict: func(verdict string, startOver bool) string {
		return views.VerdictWord(verdict) + approval.Decision{StartOver: startOver}.Anew()
	},
	Steered: func(by string, trusted bool) string { return views.SteeredWords(by, "the branch", trusted) },
}

// EventLine is one line of what an event says, beside its type and who did it.
func EventLine(e event.Event) string { return event.Sentence(e, words) }

// Doer is who stands beside an event: the person or rule that acted, else the agent.
func Doer(e event.Event, agent string) string {
	if e.Type.ByActor() {
		return e.Actor
	}
	return agent
}
