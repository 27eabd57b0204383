package web_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/approval/sqlstore"
	"gatehouse/handlers"
	"gatehouse/handlers/api"
	"gatehouse/handlers/audit"
	"gatehouse/handlers/hook"
	"gatehouse/handlers/signin"
	"gatehouse/handlers/stream"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
	"gatehouse/orchestrator/trigger/intake"
	"gatehouse/web"
)

// house is a whole server on a real database. Its engine takes tasks and does not
// work on them, so that a test can say what happens next.
type house struct {
	*testing.T
	ctx    context.Context
	store  *sqlstore.Store
	engine *orchestrator.Engine
	gate   *approval.Gateway
	intake *intake.Intake
	web    *web.Server
	url    string
	slow   *atomic.Pointer[func(context.Context)] // what a verification waits for, where a test says so
}

// slowProof verifies after what the test has put before it.
type slowProof struct {
	*sqlstore.Store
	slow *atomic.Pointer[func(context.Context)]
}

func (p slowProof) Verify(ctx context.Context, who string, progress func(proof.Progress)) (proof.Verification, error) {
	if wait := p.slow.Load(); wait != nil {
		progress(proof.Progress{Tasks: 40, Of: 100, Events: 4_000, OfEvents: 10_000})
		(*wait)(ctx)
		progress(proof.Progress{Tasks: 80, Of: 100, Events: 8_000, OfEvents: 10_000})
	}
	return p.Store.Verify(ctx, who, progress)
}

// Objects that the harness knows: a picture, and a page that is called one.
const (
	pngBlob  = "1111111111111111111111111111111111111111"
	htmlBlob = "2222222222222222222222222222222222222222"
)

const digest = "9f2c1a7e00000000000000000000000000000000000000000000000000000000"

// trees answers for the change of every request: one file with one changed line.
type trees struct{}

func (trees) EachHunks(_ context.Context, r approval.Revision, _ string, want func(int) bool, _ int, yield func(int, []patch.Hunk) error) error {
	for i := range r.Files {
		if !want(i) {
			continue
		}
		text := "<script>alert(1)</script>"
		if r.Files[i].Path == "huge.txt" {
			text = hostile + strings.Repeat("x", tenMegabytes)
		}
		if err := yield(i, []patch.Hunk{{OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, Lines: []patch.Line{
			{Kind: '-', Old: 1, Text: "n = 0"}, {Kind: '+', New: 1, Text: text}}}}); err != nil {
			return err
		}
	}
	return nil
}

func (trees) EachWhole(_ context.Context, r approval.Revision, _ string, want func(int) bool, yield func(int, []patch.Hunk) error) error {
	for i := range r.Files {
		if !want(i) {
			continue
		}
		if err := yield(i, []patch.Hunk{{NewStart: 1, NewLines: 1, Lines: []patch.Line{{Kind: '+', New: 1, Text: hostile}}}}); err != nil {
			return err
		}
	}
	return nil
}

func (trees) LineCounts(context.Context, approval.Revision, string, func(int) bool) (map[int]int, error) {
	return nil, nil
}

func (trees) Content(_ context.Context, _ approval.Revision, _, id string, _ int64) ([]byte, error) {
	switch id {
	case pngBlob:
		return []byte("\x89PNG\r\n\x1a\n and so on"), nil
	case htmlBlob:
		return []byte("<html><script>alert(1)</script>"), nil
	}
	return nil, patch.ErrMissing
}

func (trees) Between(_ context.Context, _, to approval.Revision, _ string) (*patch.Review, error) {
	return &patch.Review{Files: to.Files, Added: to.Added, Removed: to.Removed}, nil
}

func (trees) File(_ context.Context, _ approval.Revision, _, path string, _ int64) ([]byte, bool, error) {
	return []byte("first\r\nof " + path), true, nil
}

func (trees) Files(_ context.Context, _ approval.Revision, _ string, paths []string, _ int64) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, path := range paths {
		files[path] = []byte("first\r\nof " + path)
	}
	return files, nil
}

func (trees) Diff(context.Context, approval.Revision, string) ([]byte, error) {
	return []byte("diff --git a/x b/x\n"), nil
}

func open(t *testing.T) *house {
	t.Helper()
	return openAt(t, storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "house.db")))
}

// openAt serves the migrated database at an address.
func openAt(t *testing.T, address string) *house {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	hub := &event.Hub{}
	st, err := sqlstore.Open(ctx, address, store.Options{Hub: hub, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := agent.NewRegistry([]agent.Spec{
		{Name: "kik", Kind: agent.Workflow, Role: agent.Admin, Capabilities: []string{"planning"}, Prompt: "Plans."},
		{Name: "coder", Kind: agent.Command, Role: agent.Developer, Command: []string{"true"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	conf := orchestrator.Config{Agents: agents, Settings: orchestrator.Settings{Workers: 1, MaxDepth: 3, MaxHandoffs: 5},
		Repositories: map[string]orchestrator.Repository{"app": {Name: "app", Branch: "main"}}}
	engine := orchestrator.New(orchestrator.Options{Node: "n", Store: st, Hub: hub, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, conf)
	gate := approval.New(approval.Options{Store: st, Users: st, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Diff: func(context.Context, approval.Request) (string, error) { return "diff", nil }}, approval.Config{FourEyes: true, Expires: time.Hour})
	gate.SetReverter(engine)
	h := &house{T: t, ctx: ctx, store: st, engine: engine, gate: gate, slow: new(atomic.Pointer[func(context.Context)])}
	h.intake = intake.New(intake.Options{Store: st, Engine: engine, Tasks: st, People: st, PublicURL: func() string { return "http://localhost:8080" },
		Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
	running := make(chan error, 1)
	go func() { running <- st.Run(ctx) }()
	server := httptest.NewServer(h.server("127.0.0.1:8080", ""))
	h.url = server.URL
	t.Cleanup(func() {
		h.web.Streams.Close()
		server.Close()
		stop()
		if err := errors.Join(<-running, st.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// server wires everything the way the program does.
func (h *house) server(listen, public string) http.Handler {
	log := slog.New(slog.DiscardHandler)
	ids := handlers.Ids{Reader: h.store}
	verifier := &audit.Verifier{Proof: slowProof{h.store, h.slow}, Now: time.Now}
	d := signin.New(signin.Options{People: h.store, RunByToken: h.store.RunByToken, Secure: web.Secure(public), Now: time.Now, Log: log})
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		h.Fatal(err)
	}
	site := &handlers.Site{Engine: h.engine, Reader: h.store, Ids: ids, Requests: h.store, Gateway: h.gate, Reviewer: trees{}, Auth: d,
		Now: time.Now, Log: log, FourEyes: func() bool { return true }, Loopback: true, Outbox: h.gate, Links: h.store, Places: h.places, Sums: h.store, SavedViews: h.store, Proof: verifier, Holds: h.store, History: h.store, Traces: h.store,
		People: h.store, PublicURL: "http://localhost:8080", Triggers: h.intake,
		Configuration: h.configuration, Reload: h.reload, Snapshots: h.store,
		Context: func(actor, userID string) sharedctx.Store { return h.store.ContextOf(actor, userID) }}
	programs := *site
	programs.Reload = func(context.Context, string) error { return errors.New("gatehouse.yaml:3:1: unknown key `aproval`.") }
	h.web = web.New(web.Options{
		Listen: listen, PublicURL: public, Auth: d, Log: log, Verifier: verifier,
		Site:  site,
		API:   &api.API{Site: &programs, Exports: h.store, Seal: key},
		Hooks: hook.Hooks{Intake: h.intake},
		Streams: stream.New(stream.Options{Engine: h.engine, Reader: h.store, Ids: ids, Log: log, Now: time.Now,
			Grown: func() <-chan struct{} { return h.store.Grown().Changed() }, SameOrigin: web.SameOrigin(listen, public)}),
		Figures: func(context.Context) (handlers.Figures, error) {
			return h.figures(), nil
		},
	})
	return h.web.Handler()
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// user adds a person.
func (h *house) user(name string, roles ...people.Role) people.User {
	h.Helper()
	u, err := h.store.CreateUser(h.ctx, "test", people.User{Name: name, Roles: roles})
	h.must(err)
	return u
}

// token gives a person a token with all scopes, or those that are named.
func (h *house) token(u people.User, scopes ...people.Scope) string {
	h.Helper()
	if len(scopes) == 0 {
		scopes = people.Scopes()
	}
	secret, hash := signin.NewToken()
	_, err := h.store.CreateToken(h.ctx, "test", people.Token{UserID: u.ID, Scopes: scopes, Hash: hash})
	h.must(err)
	return secret
}

// answer is what came back.
type answer struct {
	*http.Response
	body string
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %q is not a JSON object: %v", a.StatusCode, a.body, err)
	}
	return v
}

// ask sends one request; change may alter it first.
func (h *house) ask(method, path, token, body string, change ...func(*http.Request)) answer {
	h.Helper()
	req, err := http.NewRequestWithContext(h.ctx, method, h.url+path, strings.NewReader(body))
	h.must(err)
	if body == "" {
		req.Body = http.NoBody
		req.ContentLength = 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(req)
	}
	return h.do(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, req)
}

func (h *house) do(client *http.Client, req *http.Request) answer {
	h.Helper()
	res, err := client.Do(req)
	h.must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	h.must(err)
	return answer{res, string(b)}
}

// expect asks and holds the answer to a status and, for refusals, a code.
func (h *house) expect(status int, code, method, path, token, body string, change ...func(*http.Request)) answer {
	h.Helper()
	a := h.ask(method, path, token, body, change...)
	if a.StatusCode != status {
		h.Fatalf("%s %s: %d, want %d: %s", method, path, a.StatusCode, status, a.body)
	}
	if code != "" {
		if got := a.json(h.T)["code"]; got != code {
			h.Fatalf("%s %s: code %v, want %s: %s", method, path, got, code, a.body)
		}
		if kind := a.Header.Get("Content-Type"); kind != "application/problem+json" {
			h.Errorf("%s %s: content type %q", method, path, kind)
		}
	}
	return a
}

// browser is a signed-in browser without JavaScript.
type browser struct {
	*house
	client *http.Client
}

// signIn makes a one-time link for u and uses it like a person would.
func (h *house) signIn(u people.User) *browser {
	h.Helper()
	b := h.stranger()
	code, hash := signin.NewLinkCode()
	h.must(h.store.CreateSigninLink(h.ctx, "test", people.SigninLink{Hash: hash, UserID: u.ID, ExpiresAt: time.Now().Add(time.Minute)}))
	if a := b.post("/login/link", url.Values{"code": {code}}); a.StatusCode != http.StatusOK {
		h.Fatalf("sign in: %d %s", a.StatusCode, a.body)
	}
	return b
}

// stranger is a browser that nobody has signed in with yet.
func (h *house) stranger() *browser {
	h.Helper()
	jar, err := cookiejar.New(nil)
	h.must(err)
	return &browser{h, &http.Client{Jar: jar}}
}

func (b *browser) get(path string) answer {
	b.Helper()
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.url+path, nil)
	b.must(err)
	return b.do(b.client, req)
}

// post sends a form and follows the redirect.
func (b *browser) post(path string, form url.Values) answer {
	b.Helper()
	req, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	b.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.url)
	return b.do(b.client, req)
}

// task makes a task of u.
func (h *house) task(u people.User, text string) (orchestrator.Task, orchestrator.Delegation) {
	h.Helper()
	t, d, _, err := h.engine.Submit(h.ctx, orchestrator.Submission{Agent: "kik", Text: text, Repository: "app", Via: origin.From("test"), RequesterID: u.ID, Requester: u.Name})
	h.must(err)
	return t, d
}

// running makes a delegation below root that runs with the token.
func (h *house) running(root orchestrator.Delegation, token string) orchestrator.Delegation {
	h.Helper()
	d := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, time.Now()), TaskID: root.TaskID, ParentID: root.ID, From: "kik",
		To: "coder", Text: "do", State: orchestrator.Running, Depth: 1, Chain: chain.New(3).With(chain.Step{From: "kik", To: "coder", Task: "do"}),
		HopKey: token, Attempt: 1, Holder: "n", LeaseUntil: time.Now().Add(time.Hour), TokenHash: orchestrator.HashToken(token), CreatedAt: time.Now(), Since: time.Now(), ReadyAt: time.Now()}
	h.must(h.store.InTask(h.ctx, root.TaskID, func(tx orchestrator.Tx) error { return tx.Insert(h.ctx, &d) }))
	return d
}

// request parks a new task of u before people.
func (h *house) request(u people.User, change ...func(*approval.Request)) approval.Request {
	h.Helper()
	t, root := h.task(u, "Fix the retry loop")
	now := time.Now()
	r := approval.Request{ID: orchestrator.NewID(orchestrator.RequestPrefix, now), TaskID: t.ID, DelegationID: root.ID, State: approval.Pending, Agent: "coder",
		Title: "Fix the retry loop", Repository: "app", RequesterID: u.ID, Requester: u.Name, Via: origin.From("test"), Chain: chain.ParseNames("kik → coder"),
		Rule: policy.Rule{Name: "rest", Need: 1, From: []string{}}, CreatedAt: now,
		Revision: approval.Revision{N: 1, State: approval.Pending, Digest: digest, Base: patch.Base{Branch: "main", Commit: strings.Repeat("a", 40), Tree: strings.Repeat("b", 40)},
			Tree: strings.Repeat("c", 40), Commit: strings.Repeat("d", 40), Branch: "gatehouse/x", Text: "I fixed it", Added: 1, Removed: 1, At: now,
			Files: []patch.File{{Path: "retry.go", Status: patch.Modified, Added: 1, Removed: 1, Bytes: 32, OldMode: "100644", NewMode: "100644"}}}}
	for _, c := range change {
		c(&r)
	}
	h.must(h.store.InGate(h.ctx, t.ID, func(tx approval.Tx) error {
		d, err := tx.Delegation(h.ctx, root.ID)
		if err != nil {
			return err
		}
		from := d.State
		d.State, d.ApprovalID = orchestrator.AwaitingApproval, r.ID
		return errors.Join(tx.Move(h.ctx, d, from, d.Attempt), tx.InsertRequest(h.ctx, &r), tx.EnsureCard(h.ctx, approval.Card{RequestID: r.ID, Channel: "inbox"}))
	}))
	return r
}
