package handlers

import (
	"gatehouse/approval"
)

// AsksInCard is what a card shows of a hand-over: all of it where it may be approved there.
func AsksInCard(r approval.Request) string {
	if !r.IsHandover() {
		return ""
	}
	whole := r.Question.Whole()
	if len(whole) <= approval.CutQuestion {
		return whole
	}
	return string([]rune(whole[:approval.CutQuestion])) + "…"
}

// askedBy is the agent that asks for a hand-over, "" for a patch.
func askedBy(r approval.Request) string {
	if r.IsHandover() {
		return r.Question.From
	}
	return ""
}
