package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
)

// fakeAPI answers the JSON API as the contract writes it: one task of three hops whose
// coder waits for a yes, one that has completed and one that failed.
type fakeAPI struct {
	srv *httptest.Server

	mu      sync.Mutex
	bodies  map[string]string
	cuts    int
	awaits  int
	outcome string // what the next decision meets
	landed  bool   // the task has ended
	deaf    bool   // there are no streams
	then    doc    // what the next look at the request finds other than before: a yes does its work
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
		d["state"], d["message"] = "landing", "It is being landed now."
		f.json(w, 200, d)
	})
	handle("POST /api/v1/delegations", f.delegate)
	handle("POST /api/v1/delegations/{id}/await", f.await)
	handle("GET /api/v1/approvals", func(w http.ResponseWriter, r *http.Request) {
		if s := r.URL.Query().Get("state"); s != "" && s != "pending" {
			f.json(w, 200, listOf())
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
			q["refused"], q["may"] = "You edited this change.", []string{"reject", "request_changes"}
		}
		maps.Copy(q, f.then)
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
		rows := []doc{}
		if r.URL.Query().Get("task") != "" {
			rows = append(rows, doc{"delegation_id": "dlg_x", "agent": "kik", "state": "waiting", "says": "it waits for \x1b[2Jcoder below", "since": "2026-01-01T00:00:00Z"})
		}
		f.json(w, 200, doc{"items": rows, "next": nil, "cycle": false, "note": "Nobody waits in a circle."})
	})
	handle("GET /api/v1/agents", func(w http.ResponseWriter, _ *http.Request) {
		f.json(w, 200, listOf(doc{"name": "kik", "kind": "workflow", "role": "admin", "state": "idle", "capabilities": []string{"planning"}},
			doc{"name": "coder", "kind": "command", "role": "", "state": "running", "capabilities": []string{}}))
	})
	handle("POST /api/v1/agents/check", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(f.lastBody("POST /api/v1/agents/check"), `"from":"coder"`) {
			f.json(w, 200, doc{"allowed": false, "code": "cycle", "message": "coder cannot hand to kik: kik is already in the chain."})
			return
		}
		f.json(w, 200, doc{"allowed": true, "message": "Yes."})
	})
	handle("PUT /api/v1/context/{ns}/{key}", func(w http.ResponseWriter, r *http.Request) {
		f.json(w, 200, doc{"namespace": r.PathValue("ns"), "key": r.PathValue("key"), "value": "v", "agent": "ann"})
	})
	handle("GET /api/v1/context/{ns}/{key}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("key") == "gone" {
			f.problem(w, 404, "not_found", "There is no entry.")
			return
		}
		f.json(w, 200, doc{"namespace": r.PathValue("ns"), "key": r.PathValue("key"), "value": "two\nlines", "agent": "ann"})
	})
	f.srv = httptest.NewServer(mux)
	return f
}

type doc = map[string]any

func listOf(items ...doc) doc { return doc{"items": append([]doc{}, items...), "next": nil} }

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
	_ = json.NewEncoder(w).Encode(doc{"type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail})
}

func (f *fakeAPI) submit(w http.ResponseWriter, r *http.Request) {
	body := f.lastBody("POST /api/v1/tasks")
	switch {
	case strings.Contains(body, `"agent":"nobody"`):
		f.problem(w, 404, "unknown_agent", "There is no agent nobody.")
	case strings.Contains(body, "Bearer bad"):
		f.problem(w, 401, "unauthorized", "The token is unknown.")
	default:
		f.json(w, 202, doc{"id": fakeTask, "delegation_id": fakeRoot, "state": "queued", "agent": "kik"})
	}
}

// delegation is one of the task's three.
func (f *fakeAPI) delegation(id string) doc {
	f.mu.Lock()
	done := f.landed
	f.mu.Unlock()
	d := doc{"id": id, "task_id": fakeTask, "parent_id": nil, "from": "", "to": "kik", "text": "Fix the retry \x1b[2Jloop\nin the uploader", "state": "waiting",
		"depth": 0, "chain": []doc{}, "result": nil, "error": nil, "usage": doc{"input_tokens": 9000, "output_tokens": 400, "usd": 0.06},
		"budget":      doc{"limits": doc{"tokens": 20000, "usd": 0.5, "agents": 3, "time": "10m0s"}, "reserved": doc{"tokens": 5000}},
		"approval_id": nil, "created_at": "2026-11-21T10:00:00Z", "started_at": "2026-11-21T10:00:01Z", "ended_at": nil, "since": "2026-11-21T10:00:01Z"}
	hop := func(from, to string) doc { return doc{"from": from, "to": to, "task": "x"} }
	switch id {
	case fakeCoder:
		d["parent_id"], d["from"], d["to"], d["depth"], d["approval_id"] = fakeRoot, "kik", "coder", 1, fakeReq
		d["state"], d["chain"] = "awaiting_approval", []doc{hop("kik", "coder")}
	case fakeReview:
		d["parent_id"], d["from"], d["to"], d["depth"], d["state"] = fakeCoder, "coder", "reviewer", 2, "completed"
		d["chain"], d["ended_at"] = []doc{hop("kik", "coder"), hop("coder", "reviewer")}, "2026-11-21T10:00:10Z"
		d["result"] = doc{"text": "build, vet and tests pass"}
		return d
	}
	if done && id == fakeRoot {
		d["state"], d["ended_at"] = "completed", "2026-11-21T10:06:13Z"
		d["result"] = doc{"text": "done", "commit": "4be1f02aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "declined": []string{"two.txt", "three\x1b.txt"}}
		d["approval_id"] = fakeReq
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
		d["state"], d["ended_at"], d["error"] = "failed", "2026-11-21T10:06:13Z", doc{"code": "timeout", "message": "coder took longer than 15 min."}
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

func fakeEvent(n int, kind, delegation, actor string, data doc) doc {
	return doc{"task_id": fakeTask, "n": n, "id": fmt.Sprintf("evt_%d", n), "type": kind, "delegation_id": delegation, "actor": actor,
		"at": "2026-11-21T10:06:13Z", "data": data}
}

func (f *fakeAPI) log() []doc {
	return []doc{
		fakeEvent(1, "task.created", fakeRoot, "dora", doc{"agent": "kik", "title": "Fix it"}),
		fakeEvent(2, "delegation.refused", fakeCoder, "coder", doc{"to": "kik", "code": "cycle", "message": "no", "chain": "kik → coder"}),
		fakeEvent(3, "delegation.progress", fakeCoder, "coder", doc{"text": "go test \u202e./..."}),
		fakeEvent(4, "delegation.completed", fakeRoot, "kik", doc{"agent": "kik"}),
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
		if e["n"] == 4 {
			f.landed = true
		}
		cut := f.cuts > 0
		if cut {
			f.cuts--
		}
		f.mu.Unlock()
		b, _ := json.Marshal(e)
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e["n"], e["type"], b)
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
		d["state"] = state
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

func (f *fakeAPI) request() doc {
	return doc{"id": fakeReq, "task_id": fakeTask, "delegation_id": fakeCoder, "state": "pending", "revision": 2, "digest": fakeDigest,
		"repository": "app", "target": "main", "branch": "gatehouse/coder-x-9f2c1a", "agent": "coder", "title": "Fix the retry loop", "text": "I moved it.",
		"files": []doc{{"path": "x.go"}, {"path": "y.go"}, {"path": "z.go"}}, "added": 48, "removed": 12,
		"warnings": []doc{{"code": "ci_file", "path": ".github/\u202eci.yml", "text": "CI file changed: it runs elsewhere."}}, "notes": []doc{},
		"checks": []doc{{"command": "go vet ./...", "ok": true}, {"command": "go test ./...", "ok": false}},
		"risk":   doc{"level": "careful", "reasons": []string{"ci_file", "checks_failed"}},
		"rule":   doc{"name": "core", "need": 2, "from": []string{"maintainers"}}, "decisions": []doc{{"user": "bob", "channel": "telegram", "verdict": "approve", "revision": 1}, {"user": "dora", "channel": "web", "verdict": "approve", "revision": 2}},
		"comments": []doc{{"user": "bob", "revision": 1, "path": "x.go", "line": 12, "side": "R", "text": "Close \u202eit.\nTwice.", "answers": []doc{{"act": "reply", "user": "dora", "text": "Where?"}}},
			{"user": "bob", "revision": 2, "path": "y.go", "line": 0, "side": "L", "text": "Why gone?", "resolved": true, "answers": []doc{{"act": "resolve", "user": "dora"}}}},
		"needs": doc{"count": 2, "have": 1, "from": []string{"maintainers"}, "missing": []string{"ann", "bob"}, "problem": f.problemOf()}, "created_at": "2026-11-21T10:02:00Z", "expires_at": nil}
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
			r["state"] = "superseded"
		case strings.Contains(body, `"approve"`):
			r["state"] = "approved"
			then := doc{"state": "landed", "commit": "4be1f02aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}
			if outcome == "missed" {
				r["missed"] = "Nothing landed: main changed x.go meanwhile. Revision 3 asks again."
				then = doc{"revision": 3}
			}
			f.mu.Lock()
			f.then = then
			f.mu.Unlock()
		case strings.Contains(body, `"reject"`):
			r["state"] = "rejected"
		default:
			r["state"] = "changes_requested"
		}
		f.json(w, 200, r)
	}
}
