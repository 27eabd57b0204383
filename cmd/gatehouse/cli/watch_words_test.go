package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/record/event"
)

// carrying are the types whose data has a sentence for people.
var carrying = []event.Type{event.Progress, event.Completed, event.Failed, event.Cancelled, event.Stale, event.Overtaken, event.WithdrawnRight, event.PatchRejected}

// TestWatchHasWordsForEveryEvent: gatehouse watch says something of each type, also where
// its data says nothing, as that of an event that retention has emptied.
func TestWatchHasWordsForEveryEvent(t *testing.T) {
	for _, kind := range append(event.Types(), event.ConfigurationChanged) {
		e := event.Event{Type: kind, Data: json.RawMessage(`{"agent":"coder","to":"coder","namespace":"notes","name":"search","ok":true}`)}
		if slices.Contains(carrying, kind) {
			e.Data = json.RawMessage(`{"message":"why it is so"}`)
		}
		if says := strings.Trim(summary(e), " :·"); says == "" || slices.Contains(carrying, kind) != (says == "why it is so") {
			if kind != event.MessageCompleted { // a turn may say nothing
				t.Errorf("%s says %q", kind, says)
			}
		}
	}
	for data, want := range map[string]string{
		`approval.requested {"files":3,"added":48,"removed":12}`:                   "asks for a yes: +48 −12, 3 files",
		`approval.requested {"title":"Approve hand-over to coder?"}`:               "Approve hand-over to coder?",
		`approval.decided {"verdict":"withdraw"}`:                                  "withdrew the approval",
		`approval.reminded {"missing":["ann","bob"]}`:                              "people are reminded; it waits for ann, bob",
		`approval.comment_reopened {"path":"a.go","line":7}`:                       "opens the comment on a.go:7 again",
		`delegation.waiting {"agent":"kik","children":1}`:                          "kik · waits for 1 delegation below",
		`delegation.resumed {"agent":"kik","child_state":"completed"}`:             "kik · goes on: the one below is completed",
		`usage.recorded {"input_tokens":1200,"output_tokens":80,"usd":0.1}`:        "1.2k tokens in · 80 out · $0.1000",
		`configuration.changed {"changes":[{"key":"approval.four_eyes"}]}`:         "another configuration is in force: approval.four_eyes",
		`message.completed {"text":"I look","calls":[{"name":"search"}]}`:          "I look · calls search",
		`patch.landed {"commit":"4be1f02aaaa","repository":"app","branch":"main"}`: "4be1f02 · app/main",
		`approval.stale {"message":"main moved"}`:                                  "main moved",
	} {
		kind, text, _ := strings.Cut(data, " ")
		if got := summary(event.Event{Type: event.Type(kind), Data: json.RawMessage(text)}); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
