package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/remote"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// elsewhere is a system that speaks A2A, by the library's own server, and misbehaves
// where bend says so.
type elsewhere struct {
	*httptest.Server
	t       *testing.T
	card    *a2a.AgentCard
	old     bool // it speaks version 0.3 only
	execute func(ctx context.Context, x *a2asrv.ExecutorContext, tell func(a2a.Event) bool)
	// bend answers a call in place of the server when it returns true.
	bend func(w http.ResponseWriter, call string, body []byte) bool

	mu      sync.Mutex
	calls   []string
	headers []http.Header
	bodies  []string
	cancels chan string
}

// system starts one. It streams unless the test says otherwise before its first call.
func system(t *testing.T) *elsewhere {
	e := &elsewhere{t: t, cancels: make(chan string, 10)}
	e.card = &a2a.AgentCard{Name: "Far helper", Version: "7", Description: "Helps from afar.", Capabilities: a2a.AgentCapabilities{Streaming: true},
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"}, Skills: []a2a.AgentSkill{{ID: "help", Name: "Help", Description: "Helps", Tags: []string{}}}}
	handler := a2asrv.NewHandler(e, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))
	rpc, oldRPC := a2asrv.NewJSONRPCHandler(handler), a2av0.NewJSONRPCHandler(handler)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		call := "card"
		if r.Method == http.MethodPost {
			var m struct {
				Method string `json:"method"`
			}
			_ = json.Unmarshal(body, &m)
			call = m.Method
		}
		e.mu.Lock()
		e.calls, e.headers, e.bodies = append(e.calls, call), append(e.headers, r.Header.Clone()), append(e.bodies, string(body))
		bend := e.bend
		e.mu.Unlock()
		if bend != nil && bend(w, call, body) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case call == "card" && e.old:
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "Old helper", "version": "1", "protocolVersion": "0.3.0", "url": e.URL + "/rpc", "capabilities": map[string]any{"streaming": e.card.Capabilities.Streaming}})
		case call == "card":
			_ = json.NewEncoder(w).Encode(e.card)
		case e.old:
			oldRPC.ServeHTTP(w, r)
		default:
			rpc.ServeHTTP(w, r)
		}
	}))
	e.card.SupportedInterfaces = []*a2a.AgentInterface{a2a.NewAgentInterface(e.URL+"/rpc", a2a.TransportProtocolJSONRPC)}
	t.Cleanup(e.Close)
	return e
}

// made counts the calls of a method.
func (e *elsewhere) made(methods ...string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.calls {
		if slices.Contains(methods, c) {
			n++
		}
	}
	return n
}

const (
	sendCall   = "SendMessage"
	streamCall = "SendStreamingMessage"
	getCall    = "GetTask"
	followCall = "SubscribeToTask"
)

// Execute does what the message says: "say X", "progress X", "fail", "hang" …
func (e *elsewhere) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		tell := func(ev a2a.Event) bool { return yield(ev, nil) }
		if e.execute != nil {
			e.execute(ctx, x, tell)
			return
		}
		what, text, _ := strings.Cut(x.Message.Parts[0].Text(), " ")
		tell(a2a.NewSubmittedTask(x, x.Message))
		switch what {
		case "say":
			tell(a2a.NewArtifactEvent(x, a2a.NewTextPart(text)))
			tell(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil))
		case "progress":
			tell(status(x, a2a.TaskStateWorking, text))
			tell(a2a.NewArtifactEvent(x, a2a.NewTextPart("done")))
			tell(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil))
		case "hang":
			tell(status(x, a2a.TaskStateWorking, "I begin"))
			<-ctx.Done()
		default:
			state := map[string]a2a.TaskState{"fail": a2a.TaskStateFailed, "decline": a2a.TaskStateRejected, "ask": a2a.TaskStateInputRequired, "signin": a2a.TaskStateAuthRequired, "stop": a2a.TaskStateCanceled}[what]
			tell(status(x, state, text))
		}
	}
}

// Cancel notes it and cancels.
func (e *elsewhere) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		e.cancels <- string(x.TaskID)
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

func status(x *a2asrv.ExecutorContext, state a2a.TaskState, text string) a2a.Event {
	return a2a.NewStatusUpdateEvent(x, state, a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(text)))
}

// runner is one that loses no time.
func runner(o remote.Options) *remote.Runner {
	if o.Poll == 0 {
		o.Poll = 10 * time.Millisecond
	}
	if o.Quiet == 0 {
		o.Quiet = 200 * time.Millisecond
	}
	return remote.New(o)
}

// job is a task for the agent there.
func (e *elsewhere) job(text string) agent.Job {
	return agent.Job{TaskID: "tsk_one", DelegationID: "dlg_one", Attempt: 1, Text: text, RemoteHops: 1,
		Agent: agent.Spec{Name: "far", Kind: agent.Remote, URL: e.URL, Token: "s3cret"}}
}
