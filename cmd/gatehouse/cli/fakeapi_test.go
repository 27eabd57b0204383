package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/wire"
)

// fakeAPI answers the JSON API as the contract writes it: one task of three hops whose
// coder waits for a yes, one that has completed and one that failed.
type fakeAPI struct {
	srv *httptest.Server

	mu      sync.Mutex
	bodies  map[string]string
	cuts    int
	awaits  int
	outcome string              // what the next decision meets
	landed  bool                // the task has ended
	deaf    bool                // there are no streams
	then    func(*wire.Request) // what the next look at the request finds other than before: a yes does its work
}

const (
	fakeTask   = "tsk_01k9aaaaaaaaaaaaaaaa7f3k9q"
	fakeRoot   = "dlg_01k9aaaaaaaaaaaaaaaaroot01"
	fakeCoder  = "dlg_01k9aaaaaaaaaaaaaaaacoder1"
	fakeReview = "dlg_01k9aaaaaaaaaaaaaaaarevie1"
	fakeReq    = "apr_01k9aaaaaaaaaaaaaaaac81m2x"
	fakeDigest = "9f2c1a7e00000000000000000000000000000000000000000000000000000000"
)

func newFakeAPI() *fakeAPI {
	f := &fakeAPI{bodies: map[string]string{}}
	mux := http.NewServeMux()
	handle := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			f.mu.Lock()
			f.bodies[r.Pattern] = string(b) + " " + r.Header.Get("Authorization") + " " + r.Header.Get("User-Agent") + " " + r.URL.RawQuery
			f.mu.Unlock()
			h(w, r)
		})
	}
	handle("POST /api/v1/tasks", f.submit)
	handle("POST /api/v1/approvals/{id}/read", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	handle("GET /api/v1/tasks/{id}/tree", f.tree)
	handle("GET /api/v1/delegations", func(w http.ResponseWriter, _ *http.Request) {
		f.json(w, 200, listOf(f.delegation(fakeRoot), f.delegation(fakeCoder)))
	})
	handle("GET /api/v1/delegations/{id}", f.one)
	handle("GET /api/v1/delegations/{id}/events", f.events)
	handle("POST /api/v1/delegations/{id}/cancel", f.act("cancelled"))
	handle("POST /api/v1/delegations/{id}/retry", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != "landing" {
			f.act("queued")(w, r)
			return
		}
		d := f.delegation(fakeRoot)
		d.State, d.Message = "landing", "It is being landed now."
		f.json(w, 200, d)
	})
	handle("POST /api/v1/delegations", f.delegate)
	handle("POST /api/v1/delegations/{id}/await", f.await)
	handle("GET /api/v1/approvals", func(w http.ResponseWriter, r *http.Request) {
		if s := r.URL.Query().Get("state"); s != "" && s != "pending" {
			f.json(w, 200, listOf[wire.Request]())
			return
		}
		f.json(w, 200, listOf(f.request()))
	})
	handle("GET /api/v1/approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(fakeReq, r.PathValue("id")) {
			f.problem(w, 404, "not_found", "No request has the id "+r.PathValue("id")+".")
			return
		}
		q := f.request()
		f.mu.Lock()
		if f.outcome == "own" {
			q.Refused, q.May = "You edited this change.", []string{"reject", "request_changes"}
		}
		if f.then != nil {
			f.then(&q)
		}
		f.then = nil
		f.mu.Unlock()
		f.json(w, 200, q)
	})
	handle("GET /api/v1/approvals/{id}/patch", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x-diff")
		w.Header().Set("Gatehouse-Digest", fakeDigest)
		_, _ = io.WriteString(w, "diff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-old\n+new \u202eevil\x1b[31m\n")
	})
	handle("POST /api/v1/approvals/{id}/decision", f.decide)
	handle("GET /api/v1/waits", func(w http.ResponseWriter, r *http.Request) {
		found := wire.Waits{Items: []wire.Wait{}, Note: "Nobody waits in a circle."}
		if r.URL.Query().Get("task") != "" {
			found.Items = append(found.Items, wire.Wait{DelegationID: "dlg_x", Agent: "kik", State: "waiting", Says: "it waits for \x1b[2Jcoder below",
				Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
		}
		f.json(w, 200, found)
	})
	handle("GET /api/v1/agents", func(w http.ResponseWriter, _ *http.Request) {
		f.json(w, 200, listOf(wire.Agent{Name: "kik", Kind: "workflow", Role: "admin", State: "idle", Capabilities: []string{"planning"}},
			wire.Agent{Name: "coder", Kind: "command", State: "running", Capabilities: []string{}}))
	})
	handle("POST /api/v1/agents/check", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(f.lastBody("POST /api/v1/agents/check"), `"from":"coder"`) {
			f.json(w, 200, wire.HopAnswer{Code: "cycle", Message: "coder cannot hand to kik: kik is already in the chain."})
			return
		}
		f.json(w, 200, wire.HopAnswer{Allowed: true, Message: "Yes."})
	})
	handle("PUT /api/v1/context/{ns}/{key}", func(w http.ResponseWriter, r *http.Request) {
		f.json(w, 200, sharedctx.Entry{Namespace: r.PathValue("ns"), Key: r.PathValue("key"), Value: "v", Agent: "ann"})
	})
	handle("GET /api/v1/context/{ns}/{key}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("key") == "gone" {
			f.problem(w, 404, "not_found", "There is no entry.")
			return
		}
		f.json(w, 200, sharedctx.Entry{Namespace: r.PathValue("ns"), Key: r.PathValue("key"), Value: "two\nlines", Agent: "ann"})
	})
	f.srv = httptest.NewServer(mux)
	return f
}

// listOf is a list with all there is.
func listOf[T any](items ...T) wire.List[T] { return wire.ListOf(items, "") }

// at is a moment on the day of the fake's task.
func at(hour, minute, second int) time.Time {
	return time.Date(2026, 11, 21, hour, minute, second, 0, time.UTC)
}

func (f *fakeAPI) url() string { return f.srv.URL }

func (f *fakeAPI) close() {
	f.srv.CloseClientConnections()
	f.srv.Close()
}

func (f *fakeAPI) cut(n string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf = n == "off"; f.deaf {
		f.landed = false
	}
	f.cuts, _ = strconv.Atoi(n)
}

func (f *fakeAPI) meet(outcome string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcome = outcome
}

func (f *fakeAPI) lastBody(pattern string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[pattern]
}

func (f *fakeAPI) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fakeAPI) problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail})
}

func (f *fakeAPI) submit(w http.ResponseWriter, r *http.Request) {
	body := f.lastBody("POST /api/v1/tasks")
	switch {
	case strings.Contains(body, `"agent":"nobody"`):
		f.problem(w, 404, "unknown_agent", "There is no agent nobody.")
	case strings.Contains(body, "Bearer bad"):
		f.problem(w, 401, "unauthorized", "The token is unknown.")
	default:
		f.json(w, 202, wire.Submitted{ID: fakeTask, DelegationID: fakeRoot, State: "queued", Agent: "kik"})
	}
}

// delegation is one of the task's three.
func (f *fakeAPI) delegation(id string) wire.Delegation {
	f.mu.Lock()
	done := f.landed
	f.mu.Unlock()
	usd, tokens, spent, agents, limit, reserved, began, ended := 0.06, int64(20000), 0.5, 3, "10m0s", int64(5000), at(10, 0, 1), at(10, 6, 13)
	d := wire.Delegation{ID: id, TaskID: fakeTask, To: "kik", Text: "Fix the retry \x1b[2Jloop\nin the uploader", State: "waiting", Chain: []chain.Step{},
		Usage:     agent.Usage{InputTokens: 9000, OutputTokens: 400, USD: &usd},
		Budget:    &wire.Budget{Limits: budget.Published{Tokens: &tokens, USD: &spent, Agents: &agents, Time: &limit}, Reserved: budget.Published{Tokens: &reserved}},
		CreatedAt: at(10, 0, 0), StartedAt: &began, Since: began}
	hop := func(from, to string) chain.Step { return chain.Step{From: from, To: to, Task: "x"} }
	switch id {
	case fakeCoder:
		d.ParentID, d.From, d.To, d.Depth, d.ApprovalID = fakeRoot, "kik", "coder", 1, fakeReq
		d.State, d.Chain = "awaiting_approval", []chain.Step{hop("kik", "coder")}
	case fakeReview:
		ended := at(10, 0, 10)
		d.ParentID, d.From, d.To, d.Depth, d.State = fakeCoder, "coder", "reviewer", 2, "completed"
		d.Chain, d.EndedAt = []chain.Step{hop("kik", "coder"), hop("coder", "reviewer")}, &ended
		d.Result = &wire.Result{Text: "build, vet and tests pass"}
		return d
	}
	if done && id == fakeRoot {
		d.State, d.EndedAt, d.ApprovalID = "completed", &ended, fakeReq
		d.Result = &wire.Result{Text: "done", Commit: "4be1f02aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Declined: []string{"two.txt", "three\x1b.txt"}}
	}
	return d
}

func (f *fakeAPI) one(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	switch {
	case strings.HasSuffix(fakeTask, id):
		f.json(w, 200, f.delegation(fakeRoot))
	case id == "failed1":
		d := f.delegation(fakeRoot)
		ended := at(10, 6, 13)
		d.State, d.EndedAt, d.Error = "failed", &ended, &agent.Failure{Code: "timeout", Message: "coder took longer than 15 min."}
		f.json(w, 200, d)
	case strings.HasSuffix(fakeRoot, id), strings.HasSuffix(fakeCoder, id), strings.HasSuffix(fakeReview, id):
		for _, full := range []string{fakeRoot, fakeCoder, fakeReview} {
			if strings.HasSuffix(full, id) {
				f.json(w, 200, f.delegation(full))
			}
		}
	default:
		f.problem(w, 404, "not_found", "No delegation has the id "+id+".")
	}
}

func (f *fakeAPI) tree(w http.ResponseWriter, _ *http.Request) {
	f.json(w, 200, listOf(f.delegation(fakeRoot), f.delegation(fakeCoder), f.delegation(fakeReview)))
}

// happened is one fact of the log, as the API writes it.
func happened(n int64, delegation, actor string, what event.Payload) event.Event {
	e := event.Of(delegation, actor, what)
	e.TaskID, e.N, e.ID, e.At = fakeTask, n, fmt.Sprintf("evt_%d", n), at(10, 6, 13)
	return e
}

func (f *fakeAPI) log() []event.Event {
	return []event.Event{
		happened(1, fakeRoot, "dora", event.TaskCreatedData{Agent: "kik", Title: "Fix it"}),
		happened(2, fakeCoder, "coder", event.DelegationRefusedData{To: "kik", Code: "cycle", Message: "no", Chain: "kik → coder"}),
		happened(3, fakeCoder, "coder", event.ProgressData{Text: "go test \u202e./..."}),
		happened(4, fakeRoot, "kik", event.CompletedData{End: event.End{Agent: "kik"}}),
	}
}

// events answers JSON or SSE; the task ends when its last event is streamed.
func (f *fakeAPI) events(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	rest := f.log()[min(after, 4):]
	if !strings.Contains(r.Header.Get("Accept"), "event-stream") {
		f.json(w, 200, listOf(rest...))
		return
	}
	f.mu.Lock()
	deaf := f.deaf
	f.landed = f.landed || deaf
	f.mu.Unlock()
	if deaf { // as a proxy without SSE; the task ends now, and no event tells of it
		f.problem(w, http.StatusNotFound, "not_found", "There is no such page.")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range rest {
		f.mu.Lock()
		if e.N == 4 {
			f.landed = true
		}
		cut := f.cuts > 0
		if cut {
			f.cuts--
		}
		f.mu.Unlock()
		b, _ := json.Marshal(e)
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.N, e.Type, b)
		if cut {
			return
		}
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (f *fakeAPI) act(state string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		d := f.delegation(fakeRoot)
		d.State = state
		f.json(w, 200, d)
	}
}

func (f *fakeAPI) delegate(w http.ResponseWriter, _ *http.Request) {
	body := f.lastBody("POST /api/v1/delegations")
	if strings.Contains(body, `"to":"kik"`) {
		f.problem(w, 409, "cycle", "coder cannot hand to kik: kik is already in the chain kik → coder.")
		return
	}
	f.json(w, 201, f.delegation(fakeReview))
}

// await answers 503, then 202, then 200: an outage and a child that takes its time.
func (f *fakeAPI) await(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.awaits++
	n := f.awaits
	f.mu.Unlock()
	switch {
	case n == 1:
		f.problem(w, 503, "unavailable", "The server is starting.")
	case n == 2:
		f.json(w, 202, f.delegation(fakeReview))
	default:
		f.json(w, 200, f.delegation(fakeReview))
	}
}

func (f *fakeAPI) request() wire.Request {
	return wire.Request{ID: fakeReq, TaskID: fakeTask, DelegationID: fakeCoder, Kind: "patch", State: "pending", Revision: 2, Digest: fakeDigest,
		Repository: "app", Target: "main", Branch: "gatehouse/coder-x-9f2c1a", Agent: "coder", Title: "Fix the retry loop", Text: "I moved it.",
		Files: []wire.File{{Path: "x.go"}, {Path: "y.go"}, {Path: "z.go"}}, Added: 48, Removed: 12,
		Warnings: []wire.Warning{{Code: "ci_file", Path: ".github/\u202eci.yml", Text: "CI file changed: it runs elsewhere."}}, Notes: []wire.Note{},
		Checks: []wire.Check{{Command: "go vet ./...", OK: true}, {Command: "go test ./..."}},
		Risk:   wire.Risk{Level: "careful", Reasons: []string{"ci_file", "checks_failed"}},
		Rule:   wire.Rule{Name: "core", Need: 2, From: []string{"maintainers"}},
		Decisions: []wire.Decision{{User: "bob", Channel: "telegram", Verdict: "approve", Revision: 1},
			{User: "dora", Channel: "web", Verdict: "approve", Revision: 2}},
		Comments: []wire.Comment{{User: "bob", Revision: 1, Path: "x.go", Line: 12, Side: "R", Text: "Close \u202eit.\nTwice.",
			Answers: []wire.Reply{{Act: "reply", User: "dora", Text: "Where?"}}},
			{User: "bob", Revision: 2, Path: "y.go", Side: "L", Text: "Why gone?", Resolved: true, Answers: []wire.Reply{{Act: "resolve", User: "dora"}}}},
		Needs:     wire.Needs{Count: 2, Have: 1, From: []string{"maintainers"}, Missing: []string{"ann", "bob"}, Problem: f.problemOf()},
		CreatedAt: at(10, 2, 0)}
}

// problemOf is why the request cannot get two yeses, where the next look meets that.
func (f *fakeAPI) problemOf() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outcome != "too_few" {
		return ""
	}
	return "This needs 2 of maintainers, but only dora and ann can."
}

func (f *fakeAPI) decide(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	outcome := f.outcome
	f.mu.Unlock()
	switch outcome {
	case "decided":
		f.problem(w, 409, "already_decided", "Bob rejected this at 14:06 on telegram. Your verdict was not counted.")
	case "four_eyes":
		f.problem(w, 403, "four_eyes", "You asked for this task, so another person must approve it. Ask one of: bob, cleo.")
	default:
		r := f.request()
		switch body := f.lastBody("POST /api/v1/approvals/{id}/decision"); {
		case !strings.Contains(body, `"digest":"`+fakeDigest), strings.Contains(body, `"revision":1`):
			f.problem(w, 409, "superseded", "Revision 2 replaced the one you read, revision 1.")
			return
		case strings.Contains(body, `"files"`):
			r.State = "superseded"
		case strings.Contains(body, `"approve"`):
			r.State = "approved"
			then := func(r *wire.Request) { r.State, r.Commit = "landed", "4be1f02aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }
			if outcome == "missed" {
				r.Missed = "Nothing landed: main changed x.go meanwhile. Revision 3 asks again."
				then = func(r *wire.Request) { r.Revision = 3 }
			}
			f.mu.Lock()
			f.then = then
			f.mu.Unlock()
		case strings.Contains(body, `"reject"`):
			r.State = "rejected"
		default:
			r.State = "changes_requested"
		}
		f.json(w, 200, r)
	}
}
