package main

import (
	"net/http"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// queueTeam has one worker, which somebody may keep busy.
const queueTeam = `
engine: {workers: 1, queue_timeout: 6s}
agents:
  flaky: {kind: command, command: [sh, -c, "echo no >&2; exit 3"]}
  slow: {kind: command, command: [sh, -c, "until [ -e DIR/go-on ]; do sleep 0.05; done"]}
`

// Work that is run again is new work for its queue: where nobody takes it up in time it fails
// with no_ack, although it was taken up once, the time before (A34).
func TestWorkThatRunsAgainIsGivenUpInItsQueue(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		p := newPlace(t, database, queueTeam)
		n := p.start(p.config, "")
		ended := func(task, code string) {
			t.Helper()
			p.until("the failure "+code, func() bool { return p.root(task).State == orchestrator.Failed })
			if root := p.root(task); root.Error.Code != code {
				t.Fatalf("it failed with %+v, want %s", root.Error, code)
			}
		}
		retry := func(task string) {
			t.Helper()
			if status, err := n.call(http.MethodPost, "/api/v1/delegations/"+task+"/retry", n.asker, nil, nil); err != nil || status != http.StatusOK {
				t.Fatalf("retry: %d, %v", status, err)
			}
		}
		task := n.send("flaky", "", "flaky")
		ended(task, agent.CodeExit)
		slow := n.send("slow", "", "slow")
		p.until("the worker is busy", func() bool { return p.root(slow).State == orchestrator.Running })
		retry(task)
		ended(task, agent.CodeNoAck)
		p.touch("go-on")
		p.until("the worker is free", func() bool { return p.root(slow).State.Ended() })
		retry(task)
		ended(task, agent.CodeExit)
	})
}
