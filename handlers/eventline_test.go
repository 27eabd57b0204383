package handlers

import (
	"testing"

	"gatehouse/orchestrator/record/event"
)

// A12: every kind of event has a line in plain words for people, and data of another shape
// never breaks one.
func TestEventsHaveTheirLine(t *testing.T) {
	for _, c := range []struct {
		kind event.Type
		data string
		want string
	}{
		{event.TaskCreated, `{"agent":"kik","title":"Fix it","via":"web"}`, "Fix it"},
		{event.Queued, `{"agent":"coder","from":"kik"}`, "from kik"},
		{event.Queued, `{"agent":"coder","why":"the node was lost"}`, "the node was lost"},
		{event.Queued, `{"agent":"kik"}`, "waits for a free worker"},
		{event.Acknowledged, `{"agent":"kik","attempt":1}`, "starts"},
		{event.Acknowledged, `{"agent":"kik","attempt":2}`, "is worked on again"},
		{event.Progress, `{"text":"go test ./..."}`, "go test ./..."},
		{event.Delegated, `{"to":"coder","title":"Fix it"}`, "to coder: Fix it"},
		{event.Delegated, `{"to":"deployer","title":"Ship it","steering":[".claude/settings.json","deploy.sh"],"trust_checkout":false}`,
			"to deployer: Ship it; taken from the branch, not as coder left it: .claude/settings.json, deploy.sh"},
		{event.Delegated, `{"to":"deployer","title":"Ship it","steering":["a","b","c","d","e"],"trust_checkout":true}`,
			"to deployer: Ship it; as coder left it, because of trust_checkout: a, b, c and 2 more"},
		{event.DelegationRefused, `{"to":"kik","code":"cycle","message":"Agent 'kik' already in delegation chain"}`, "to kik: Agent 'kik' already in delegation chain"},
		{event.Waiting, `{"agent":"kik","children":2}`, "waits for 2 delegations below"},
		{event.Resumed, `{"agent":"kik","child_state":"completed"}`, "goes on: the one below is completed"},
		{event.Completed, `{"agent":"kik","state":"completed","text":"All is built"}`, "All is built"},
		{event.Failed, `{"agent":"kik","state":"failed","code":"exit","message":"It ended with code 1."}`, "It ended with code 1."},
		{event.Expired, `{"have":0,"need":1}`, "nobody decided in time"},
		{event.Superseded, `{"by":2}`, "a newer revision takes its place"},
		{event.PatchReverted, `{"by":"apr_b","task":"tsk_b","commit":"0123456789abcdef"}`, "its change was undone by 0123456"},
		{event.BreakerOpened, `{"agent":"coder","failures":3,"reason":"It failed 3 times in a row."}`, "hand-overs to coder rest: It failed 3 times in a row."},
		{event.BreakerClosed, `{"agent":"coder"}`, "hand-overs to coder go on"},
		{event.Cancelled, `{"agent":"kik","state":"cancelled"}`, "cancelled"},
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
		if got := EventLine(event.Event{Type: c.kind, Actor: "coder", Data: []byte(c.data)}); got != c.want {
			t.Errorf("%s %s\ngot  %q\nwant %q", c.kind, c.data, got, c.want)
		}
	}
}
