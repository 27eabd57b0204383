package handlers

import (
	"testing"

	"gatehouse/orchestrator/event"
)

// Every kind of event of models, tools, control and the shared context has a line in
// plain words, and data of another shape never breaks one.
func TestEventsHaveTheirLine(t *testing.T) {
	for _, c := range []struct {
		kind event.Type
		data string
		want string
	}{
		{event.MessageCompleted, `{"turn":2,"text":"\nI look.\nThen more.","calls":[{"name":"read_file"},{"name":"search"}]}`, "I look. · calls read_file, search"},
		{event.MessageCompleted, `{"turn":2,"text":"","calls":[{"name":"search"}]}`, "calls search"},
		{event.MessageCompleted, `{"turn":2,"stop":"max_tokens"}`, "stopped: max_tokens"},
		{event.MessageCompleted, `{"text":5,"calls":"x"}`, "said nothing"},
		{event.ToolCompleted, `{"name":"read_file","ok":true,"text":"package x\nmore"}`, "read_file: package x"},
		{event.ToolCompleted, `{"name":"delegate_to_agent","ok":false,"text":"cycle: no"}`, "delegate_to_agent failed: cycle: no"},
		{event.Announced, `{"children":["dlg_a"]}`, "is told that a delegation that it spawned has ended"},
		{event.Announced, `{"children":["dlg_a","dlg_b"]}`, "is told that 2 delegations that it spawned have ended"},
		{event.UsageRecorded, `{"input_tokens":900,"output_tokens":100,"usd":0.02,"model":"test/sonnet"}`, "900 tokens in, 100 out, $0.0200, test/sonnet"},
		{event.UsageRecorded, `{"input_tokens":9,"output_tokens":1,"usd":null}`, "9 tokens in, 1 out, price not known"},
		{event.Paused, `{}`, "pauses the task: models stop after the turn that they are at"},
		{event.Unpaused, `{}`, "lets the task go on"},
		{event.Forked, `{"task":"tsk_b","turn":4}`, "makes another task from here, after turn 4"},
		{event.Forked, `{"from_task":"tsk_a","from":"dlg_a","turn":4}`, "goes on from another task, after turn 4"},
		{event.ContextRead, `{"namespace":"plans","key":"a"}`, "reads plans/a"},
		{event.ContextWritten, `{"namespace":"plans","key":"a"}`, "writes plans/a"},
		{event.ContextDeleted, `{"namespace":"plans"}`, "deletes plans"},
	} {
		if got := eventLine(event.Event{Type: c.kind, Data: []byte(c.data)}); got != c.want {
			t.Errorf("%s %s\ngot  %q\nwant %q", c.kind, c.data, got, c.want)
		}
	}
}
