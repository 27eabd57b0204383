package handlers

import (
	"maps"
	"slices"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/views"
)

// askOf is the question about a hand-over as a page shows it.
func askOf(q orchestrator.Question) *views.HandoverAsk {
	a := &views.HandoverAsk{From: q.From, To: q.To, Text: q.Text, Command: q.Command(), Place: q.Place(), Travels: q.Tree != ""}
	for _, key := range slices.Sorted(maps.Keys(q.Context)) {
		a.Context = append(a.Context, views.ContextLine{Key: key, Value: q.Context[key]})
	}
	return a
}

// askedBy is the agent that asks for a hand-over, "" for a patch.
func askedBy(r approval.Request) string {
	if r.IsHandover() {
		return r.Question.From
	}
	return ""
}

// asksInCard is what a card shows of a hand-over: all of it where it may be approved there.
func asksInCard(r approval.Request) string {
	if !r.IsHandover() {
		return ""
	}
	whole := r.Question.Whole()
	if len(whole) <= approval.CutQuestion {
		return whole
	}
	return string([]rune(whole[:approval.CutQuestion])) + "…"
}
