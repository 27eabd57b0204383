package main

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// farAgent is a system elsewhere. A task with the word wait goes on until release.
type farAgent struct {
	release   chan struct{}
	cancelled chan struct{}

	mu   sync.Mutex
	runs int
	last *a2a.Message
}

// Execute answers, or waits first.
func (f *farAgent) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		f.mu.Lock()
		f.runs++
		f.last = x.Message
		f.mu.Unlock()
		yield(a2a.NewSubmittedTask(x, x.Message), nil)
		if strings.Contains(x.Message.Parts[0].Text(), "wait") {
			yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateWorking, a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("far begins"))), nil)
			select {
			case <-f.release:
			case <-ctx.Done():
				return
			}
		}
		yield(a2a.NewArtifactEvent(x, a2a.NewTextPart("It runs v2.3.1.")), nil)
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil), nil)
	}
}

// Cancel notes it.
func (f *farAgent) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		f.cancelled <- struct{}{}
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

func (f *farAgent) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs
}

// far starts the system and returns its address.
func far(t *testing.T) (*farAgent, string) {
	f := &farAgent{release: make(chan struct{}), cancelled: make(chan struct{}, 10)}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	card := &a2a.AgentCard{Name: "Far", Version: "1", Capabilities: a2a.AgentCapabilities{Streaming: true}, DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.AgentSkill{}, SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(server.URL+"/rpc", a2a.TransportProtocolJSONRPC)}}
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(card) })
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(f, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))))
	return f, server.URL
}

const farTeam = `
engine: {workers: 2, lease: 10m, ack_timeout: 2s}
agents:
  kik:
    kind: workflow
    steps: [{id: ask, agent: far, task: "{{.Task}}"}]
  far: {kind: remote, url: "FAR", budget: {tokens: 500}}
  nobody: {kind: remote, url: "http://127.0.0.1:1", budget: {tokens: 500}}
`

// shown reports whether a task's events hold a text.
func shown(p *placetest.Place, taskID, text string) bool {
	for _, e := range p.Events(taskID) {
		if strings.Contains(string(e.Data), text) {
			return true
		}
	}
	return false
}

// A workflow asks an agent elsewhere, the server is killed while that works, and the next
// one goes on with the same task: the answer comes back to who asked, the work was done
// once, and what was not reported counts as the budget (A22, A25, A28, A36, A39a, O14).
func TestAnAgentElsewhereSurvivesAKilledServer(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		f, url := far(t)
		p := placetest.New(t, database, strings.ReplaceAll(farTeam, "FAR", url))
		n := p.Start(p.Config, "")
		task := n.Send("kik", "", "wait")
		p.Until("far to work", func() bool { return shown(p, task, "far begins") })
		n.Kill()
		n = p.Start(p.Config, "")
		close(f.release)
		root := n.Through(task)
		if root.State != orchestrator.Completed || root.Result == nil || root.Result.Text != "It runs v2.3.1." {
			t.Fatalf("kik is %s: %+v, %+v", root.State, root.Result, root.Error)
		}
		if f.started() != 1 || len(f.cancelled) != 0 {
			t.Errorf("the work was begun %d times and cancelled %d times", f.started(), len(f.cancelled))
		}
		if !shown(p, task, "took it on as task") {
			t.Error("what acknowledged it is not shown")
		}
		children, err := p.Store.Tree(t.Context(), task)
		p.Must(err)
		if u := children[len(children)-1].Usage; u.InputTokens+u.OutputTokens != 500 {
			t.Errorf("used %+v", u)
		}
		n.Stop()
	})
}

// Cancelling here cancels there, and where nobody is, the task fails within the time for
// the acknowledgement (A34, X5).
func TestAnAgentElsewhereIsCancelledOrNotThere(t *testing.T) {
	t.Parallel()
	f, url := far(t)
	p := placetest.New(t, "sqlite:"+t.TempDir()+"/g.db", strings.ReplaceAll(farTeam, "FAR", url))
	n := p.Start(p.Config, "")
	task := n.Send("kik", "", "wait")
	p.Until("far to work", func() bool { return shown(p, task, "far begins") })
	if status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+task+"/cancel", p.Asker, nil, nil); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	p.Until("the cancellation there", func() bool { return len(f.cancelled) == 1 })
	root := n.Through(n.Send("nobody", "", "x"))
	if root.State != orchestrator.Failed || root.Error.Code != agent.CodeNoAck {
		t.Errorf("nobody is %s: %+v", root.State, root.Error)
	}
	n.Stop()
}

// Systems that call each other come to an end: the count that a request brings is
// counted on, and at the limit no agent elsewhere is asked (X1).
func TestHopsBetweenSystems(t *testing.T) {
	t.Parallel()
	f, url := far(t)
	p := placetest.New(t, "sqlite:"+t.TempDir()+"/g.db", strings.ReplaceAll(farTeam, "FAR", url))
	n := p.Start(p.Config, "")
	for _, c := range []struct {
		agent, hops string
		status      int
	}{{"far", "3", http.StatusConflict}, {"far", "x", http.StatusBadRequest}, {"far", "-1", http.StatusBadRequest}, {"far", "2", http.StatusAccepted}, {"kik", "3", http.StatusAccepted}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL+"/api/v1/tasks", strings.NewReader(`{"agent":"`+c.agent+`","text":"x"}`))
		p.Must(err)
		req.Header.Set("Authorization", "Bearer "+p.Asker)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(agent.HopsHeader, c.hops)
		res, err := n.HTTP.Do(req)
		p.Must(err)
		var task struct {
			ID string `json:"id"`
		}
		_ = json.NewDecoder(res.Body).Decode(&task)
		p.Must(res.Body.Close())
		if res.StatusCode != c.status {
			t.Errorf("%s after %s hops: %d, want %d", c.agent, c.hops, res.StatusCode, c.status)
		}
		if c.status == http.StatusAccepted {
			root := n.Through(task.ID)
			if done := root.State == orchestrator.Completed; done != (c.agent == "far") {
				t.Errorf("%s after %s hops is %s: %+v", c.agent, c.hops, root.State, root.Error)
			}
		}
	}
	if f.started() != 1 {
		t.Errorf("far worked %d times", f.started())
	}
	n.Stop()
}
