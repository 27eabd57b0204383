package main

import (
	"net/http"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
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
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, queueTeam)
		n := p.Start(p.Config, "")
		ended := func(task, code string) {
			t.Helper()
			p.Until("the failure "+code, func() bool { return p.Root(task).State == orchestrator.Failed })
			if root := p.Root(task); root.Error.Code != code {
				t.Fatalf("it failed with %+v, want %s", root.Error, code)
			}
		}
		retry := func(task string) {
			t.Helper()
			if status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+task+"/retry", n.Asker, nil, nil); err != nil || status != http.StatusOK {
				t.Fatalf("retry: %d, %v", status, err)
			}
		}
		task := n.Send("flaky", "", "flaky")
		ended(task, agent.CodeExit)
		slow := n.Send("slow", "", "slow")
		p.Until("the worker is busy", func() bool { return p.Root(slow).State == orchestrator.Running })
		retry(task)
		ended(task, agent.CodeNoAck)
		p.Touch("go-on")
		p.Until("the worker is free", func() bool { return p.Root(slow).State.Ended() })
		retry(task)
		ended(task, agent.CodeExit)
	})
}
