package orchestrator_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/passive"
	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/agent/workflow"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// world is a team with a real repository, a real database and a real gateway; only
// the agents are scripts.
type world struct {
	t       testing.TB
	repo    string // the people's own repository, main checked out in the folder
	data    string
	config  orchestrator.Config
	scripts map[string]*agenttest.Scripted
	store   *sqlstore.Store
	engine  *orchestrator.Engine
	gateway *approval.Gateway
	trace   func(string)
	stop    func()
	ahead   *atomic.Int64 // how far the clock of this world is ahead, in nanoseconds
	ann     people.User
	bob     people.User
}

// databases runs a story in which the database decides on both, and beside other stories: most of one is waiting.
func databases(t *testing.T, story func(t *testing.T, url string)) {
	t.Parallel()
	storetest.Both(t, story)
}

// either runs a story in which the database decides nothing on one of them.
func either(t *testing.T, story func(t *testing.T, url string)) {
	t.Parallel()
	storetest.Either(t, story)
}

// byName runs every agent of kind command or llm by its script; as it is, with the traits of
// a command.
type byName map[string]*agenttest.Scripted

func (byName) Traits() agent.Traits { return command.Traits }

func (b byName) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	return b[job.Agent.Name].Run(ctx, job, host)
}

// checks pass unless the checkout has a file named broken.
type checks struct{}

func (checks) Check(_ context.Context, dir, command string, _ []string) (orchestrator.Check, error) {
	_, err := os.Stat(filepath.Join(dir, "broken"))
	return orchestrator.Check{Command: command, OK: err != nil}, nil
}

func newWorld(t testing.TB, url string, agents ...agent.Spec) *world {
	t.Helper()
	w := &world{t: t, repo: filepath.Join(t.TempDir(), "app"), data: t.TempDir(), scripts: map[string]*agenttest.Scripted{}, ahead: new(atomic.Int64)}
	w.git("init", "-q", "-b", "main", w.repo)
	w.commit(map[string]string{"README.md": "hello\n", "core/a.txt": "one\ntwo\nthree\n", "core/b.txt": "b\n"})
	for i := range agents {
		if agents[i].Kind == "" {
			agents[i].Kind = agent.Command
		}
	}
	registry, err := agent.NewRegistry(agents)
	if err != nil {
		t.Fatal(err)
	}
	w.config = orchestrator.Config{
		Settings: orchestrator.Settings{Workers: 8, Lease: 30 * time.Second, MaxAttempts: 3, MaxDepth: 3, MaxHandoffs: 5, Cycle: "strict", Capacity: "queue", CheckTime: time.Minute},
		Agents:   registry, Repositories: map[string]orchestrator.Repository{"app": {Name: "app", Source: w.repo, Branch: "main", Deliver: "merge"}},
	}
	w.open(url)
	w.ann = w.user("ann", people.Operator)
	w.bob = w.user("bob", people.Approver)
	return w
}

// open opens the node on a database; script says what the agents do before start.
func (w *world) open(url string) {
	w.t.Helper()
	hub := &event.Hub{}
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s, err := sqlstore.Open(w.t.Context(), storetest.Ready(w.t, url), store.Options{Node: filepath.Base(w.data), Hub: hub, Logger: log, Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = s
	rows, requests := orchestrator.Store(s), approval.Store(s)
	if !strings.HasPrefix(url, "postgres") { // what a step leaves behind in memory is the same on both
		rows, requests = twice{s, new(atomic.Int64)}, twiceGate{s}
	}
	w.gateway = approval.New(approval.Options{Store: requests, Users: s, Logger: log,
		Diff: func(context.Context, approval.Request) (string, error) { return "the diff", nil }},
		approval.Config{FourEyes: true, Expires: time.Hour, Channels: []approval.Channel{passive.Inbox}})
	w.engine = orchestrator.New(orchestrator.Options{Node: filepath.Base(w.data), Store: rows, Hub: hub, Gate: w.gateway,
		Kinds:   map[agent.Kind]agent.Runner{agent.Command: byName(w.scripts), agent.LLM: agenttest.Like{Runner: byName(w.scripts), Of: llm.Traits}, agent.Workflow: workflow.New(workflow.Options{})},
		Context: func(actor string) sharedctx.Store { return s.Context(actor) },
		Checker: checks{}, Mirrors: patch.NewMirrors(filepath.Join(w.data, "mirrors"), patch.Options{Logger: log}), Data: w.data,
		URL: func() string { return "http://127.0.0.1:1" }, Now: w.now, Log: log, Backoff: 50 * time.Millisecond, Trace: func(p string) {
			if w.trace != nil {
				w.trace(p)
			}
		}}, w.config)
	w.gateway.SetReverter(w.engine)
	w.gateway.SetReviser(w.engine)
	w.t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test is over
}

// now is the time in this world; pass lets some of it go by.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

// script says what an agent does.
func (w *world) script(name string, s agenttest.Script) *agenttest.Scripted {
	w.scripts[name] = agenttest.NewScripted(s)
	return w.scripts[name]
}

// start runs the node until the test ends or stop is called.
func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	run := func(part func(context.Context) error) {
		wg.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				w.t.Errorf("a part of the node ended: %v", err)
			}
		})
	}
	run(w.store.Run)
	run(w.engine.Run)
	run(w.gateway.Run)
	w.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	w.t.Cleanup(w.stop)
}

func (w *world) user(name string, roles ...people.Role) people.User {
	w.t.Helper()
	u, err := w.store.CreateUser(w.t.Context(), "test", people.User{Name: name, Roles: roles})
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// send makes a task as ann and returns its root.
func (w *world) send(to, text string) orchestrator.Delegation {
	w.t.Helper()
	_, root, _, err := w.engine.Submit(w.t.Context(), orchestrator.Submission{Agent: to, Text: text, Repository: "app", Via: origin.From(origin.Web), RequesterID: w.ann.ID, Requester: "ann"})
	if err != nil {
		w.t.Fatal(err)
	}
	return root
}

// patience is how long a task may stand still that is waited for: hundreds of children take
// longer beside other tests than a small one, and each of them is an event. One that goes round
// and round is not waited for longer than the most.
const (
	patience     = 30 * time.Second
	mostPatience = 4 * patience
)

// until waits for a delegation to satisfy ok.
func (w *world) until(id, what string, ok func(orchestrator.Delegation) bool) orchestrator.Delegation {
	w.t.Helper()
	began := time.Now()
	deadline, seen := began, int64(0)
	for {
		d, err := w.store.Delegation(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		if ok(d) {
			return d
		}
		if now := time.Now(); !now.Before(deadline) {
			t, err := w.store.Task(w.t.Context(), d.TaskID)
			if err != nil || t.LastN == seen || now.Sub(began) > mostPatience {
				w.t.Fatalf("%s is %s and not %s after %s (%v)\n%s", id, d.State, what, now.Sub(began), err, w.history(d.TaskID))
			}
			deadline, seen = now.Add(patience), t.LastN
		}
		sub := w.engine.Hub().Watch(d.TaskID, 1)
		select {
		case <-sub.C:
		case <-time.After(20 * time.Millisecond):
		}
		sub.Close()
	}
}

func (w *world) state(id string, s orchestrator.State) orchestrator.Delegation {
	w.t.Helper()
	return w.until(id, string(s), func(d orchestrator.Delegation) bool { return d.State == s })
}

// request waits for the pending request of a task at a revision.
func (w *world) request(taskID string, revision int) approval.Request {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		ids, err := w.store.PendingOf(w.t.Context(), taskID)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(ids) > 0 {
			r, err := w.store.Request(w.t.Context(), ids[0])
			if err != nil {
				w.t.Fatal(err)
			}
			if r.Revision.N == revision {
				return r
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("no pending request at revision %d\n%s", revision, w.history(taskID))
	return approval.Request{}
}

// decide gives bob's verdict on what r shows.
func (w *world) decide(r approval.Request, v approval.Verdict, comment string) (approval.Request, error) {
	return w.gateway.Decide(w.t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(w.bob, nil), Channel: "web", Verdict: v, Digest: r.Revision.Digest,
		Revision: r.Revision.N, Comment: comment, Seen: approval.Seen{WarningsTicked: approval.Ticks(r)}})
}

func (w *world) approve(r approval.Request) {
	w.t.Helper()
	if _, err := w.decide(r, approval.Approve, ""); err != nil {
		w.t.Fatalf("the yes was refused: %v", err)
	}
}

// events lists what happened in a task.
func (w *world) events(taskID string) []event.Event {
	w.t.Helper()
	events, err := w.store.Events(w.t.Context(), taskID, 0, 200)
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

func (w *world) history(taskID string) string {
	var b strings.Builder
	for _, e := range w.events(taskID) {
		b.WriteString(string(e.Type) + " " + e.Actor + " " + string(e.Data) + "\n")
	}
	return b.String()
}

// count is how many events of a type a task has.
func (w *world) count(taskID string, typ event.Type) int {
	n := 0
	for _, e := range w.events(taskID) {
		if e.Type == typ {
			n++
		}
	}
	return n
}

// git runs git in the people's repository.
func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	if args[0] != "init" {
		cmd.Dir = w.repo
	}
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files into the people's folder and commits them on main.
func (w *world) commit(files map[string]string) string {
	w.t.Helper()
	for name, text := range files {
		w.write(w.repo, name, text)
	}
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "people's work")
	return w.git("rev-parse", "HEAD")
}

func (w *world) write(dir, name, text string) {
	w.t.Helper()
	if err := writeFile(dir, name, text); err != nil {
		w.t.Fatal(err)
	}
}

func writeFile(dir, name, text string) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// writes is a script that writes one file and answers.
func writes(name, text string) agenttest.Script {
	return func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		if err := writeFile(job.Dir, name, text); err != nil {
			return agent.Outcome{}, err
		}
		return agenttest.Done("wrote " + name), nil
	}
}

func specs(names ...string) []agent.Spec {
	var all []agent.Spec
	for _, n := range names {
		all = append(all, agent.Spec{Name: n})
	}
	return all
}

// delegation is a delegation as it stands now.
func (w *world) delegation(id string) orchestrator.Delegation {
	w.t.Helper()
	d, err := w.store.Delegation(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}
