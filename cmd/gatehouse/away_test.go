package main

import (
	"database/sql"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/pgtest"
)

// refusesToStart checks that a server ends by itself, with a mistake of configuration,
// and says what the words are.
func refusesToStart(n *placetest.Node, words ...string) {
	n.Helper()
	if code := n.Code(); code != console.ExitUsage {
		n.Errorf("exit code %d, want %d", code, console.ExitUsage)
	}
	said := n.Log()
	for _, w := range words {
		if !strings.Contains(said, w) {
			n.Errorf("the server does not say %q, but: %s", w, said)
		}
	}
	if strings.Count(strings.TrimSpace(said), "\n") > 0 {
		n.Errorf("want one line: %s", said)
	}
}

// TestWhatKeepsAServerFromStarting: each is one line that says what to do, and exit 2.
func TestWhatKeepsAServerFromStarting(t *testing.T) {
	t.Parallel()
	start := func(p *placetest.Place, config string, args ...string) *placetest.Node {
		n, _ := p.Launch(config, "", args...)
		return n
	}
	t.Run("the database file is read-only", func(t *testing.T) {
		p := placetest.SqlitePlace(t, decideTeam)
		p.Must(p.Store.Close())
		file := strings.TrimPrefix(p.Database, "sqlite:")
		p.Must(os.Chmod(file, 0o400))
		n, _ := p.LaunchBy(unprivileged(t), p.Config, "")
		refusesToStart(n, file, "cannot be written", "give this user the right")
	})
	t.Run("the database is served by another one", func(t *testing.T) {
		p := placetest.SqlitePlace(t, decideTeam)
		p.Start(p.Config, "")
		other, _ := p.Configure("other", decideTeam)
		refusesToStart(start(p, other), "served by another gatehouse", "Stop it, or use PostgreSQL")
	})
	t.Run("the data folder is used by another one", func(t *testing.T) {
		p := placetest.SqlitePlace(t, decideTeam)
		p.Start(p.Config, "")
		refusesToStart(start(p, p.Config), p.Data, "used by another gatehouse", "Stop it, or give this one a data folder of its own")
	})
	t.Run("the database is of a newer program", func(t *testing.T) {
		p := placetest.SqlitePlace(t, decideTeam)
		db, err := sql.Open("sqlite", strings.TrimPrefix(p.Database, "sqlite:"))
		p.Must(err)
		_, err = db.ExecContext(t.Context(), "insert into goose_db_version (version_id, is_applied) values (99999, true)")
		p.Must(err)
		p.Must(db.Close())
		refusesToStart(start(p, p.Config), "99999", "run the newer gatehouse")
	})
	t.Run("the port is taken", func(t *testing.T) {
		p := placetest.SqlitePlace(t, decideTeam)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		p.Must(err)
		defer l.Close()
		refusesToStart(start(p, p.Config, "--listen", l.Addr().String()), l.Addr().String()+" is in use. Stop the other program, or add --listen 127.0.0.1:8081.")
	})
	t.Run("PostgreSQL is away", func(t *testing.T) {
		server := pgtest.NewServer(t)
		p := placetest.New(t, server.URL("postgres"), decideTeam)
		server.Stop()
		refusesToStart(start(p, p.Config), "PostgreSQL at 127.0.0.1", "does not answer", "Check that it runs")
	})
}

// unprivileged makes root obey the rights of files, as everybody else does.
func unprivileged(t *testing.T) []string {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	path, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatalf("root may write read-only files; setpriv (util-linux) would take that right: %v", err)
	}
	return []string{path, "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"}
}

// TestPostgresGoesAwayForAWhile: while the database is away the server stays, says
// that it is not ready, and refuses what it cannot store. The agents go on, one of
// them to its end. When the database is back all of it ends, once.
func TestPostgresGoesAwayForAWhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease   string
		survive bool // the agents outlive the outage, because their leases do
	}{
		"shorter than the leases": {lease: "10m", survive: true},
		"longer than the leases":  {lease: "2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.NewServer(t)
			p := placetest.AwayPlace(t, server.URL("postgres"), c.lease)
			n := p.Start(p.Config, "")
			early, late := n.Send("early", "app", "early"), n.Send("late", "app", "late")
			boss := n.Send("boss", "", "boss")
			bob := n.Browser("bob")
			asked := n.Asked(n.Send("coder", "app", "coder"))
			p.Until("all agents to work", func() bool { return p.Exists("early-works") && p.Exists("late-works") && p.Exists("boss-works") })
			server.Stop()
			p.Until("the server to say that it is not ready", func() bool { return status(n, "/readyz") == http.StatusServiceUnavailable })
			if got := status(n, "/healthz"); got != http.StatusOK {
				t.Errorf("healthz answers %d while the database is away", got)
			}
			var refused problem
			if status, err := n.Call(http.MethodGet, "/api/v1/delegations", n.Asker, nil, &refused); err != nil || status != http.StatusServiceUnavailable || refused.Code != "unavailable" {
				t.Errorf("a list while the database is away: %d %+v, %v", status, refused, err)
			}
			// Pages say what is the matter, and a yes is not lost without a word.
			if status, page := n.Say(bob, "/approvals/", asked, "approve", ""); status != http.StatusServiceUnavailable || !strings.Contains(page, "does not answer") || !strings.Contains(page, "<h1") {
				t.Errorf("a yes while the database is away: %d %.2000s", status, page)
			}
			p.Touch("early-ends")
			if c.survive {
				p.Touch("boss-ends")
				p.Until("a hand-over that cannot be stored", func() bool { return strings.Contains(n.Log(), "POST path=/api/v1/delegations status=503") })
				p.Until("its result to wait", func() bool { return strings.Contains(n.Log(), "waits until the database is back") })
			} else {
				p.Until("the end of agents without leases", func() bool { return p.Marked() == 0 })
			}
			server.Start(t)
			p.Until("the server to be ready again", func() bool { return status(n, "/readyz") == http.StatusOK })
			p.Touch("late-ends")
			p.Touch("boss-ends")
			for _, task := range []string{asked.TaskID, early, late} {
				n.Through(task)
				p.LandedOnce(task)
			}
			if root := n.Through(boss); root.State != orchestrator.Completed || placetest.Count(p.Events(boss), event.Delegated, "") != 1 {
				t.Errorf("the one who handed on is %s: %v", root.State, root.Error)
			}
			for name, task := range map[string]string{"early": early, "late": late, "boss": boss} {
				if runs := placetest.Count(p.Events(task), event.Acknowledged, name); c.survive && runs != 1 {
					t.Errorf("%s was run %d times although its lease outlived the outage", name, runs)
				}
			}
			p.NothingLeft(p.Data)
			server.Stop() // the server can also be ended while its database is away
			n.Stop()
		})
	}
}

// status is the status of a page that needs no token.
func status(n *placetest.Node, path string) int {
	n.Helper()
	status, err := n.Call(http.MethodGet, path, "", nil, nil)
	n.Must(err)
	return status
}

// TestSIGTERMGivesWorkBack: the server ends at once and well, its agents with it, and
// the work is queued for whoever comes next, without a wait for a lease.
func TestSIGTERMGivesWorkBack(t *testing.T) {
	t.Parallel()
	p := placetest.AwayPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), "10m")
	n := p.Start(p.Config, "")
	task := n.Send("early", "app", "early")
	p.Until("the agent to work", func() bool { return p.Exists("early-works") })
	asked := time.Now()
	n.Stop()
	if took := time.Since(asked); took > 20*time.Second {
		t.Errorf("the server took %s to end", took)
	}
	p.NothingLeft(p.Data)
	if root := p.Root(task); root.State != orchestrator.Queued || root.Holder != "" || root.Losses != 0 {
		t.Errorf("the work is %s, held by %q, lost %d times; want it queued as if nothing had been", root.State, root.Holder, root.Losses)
	}
	p.Touch("early-ends")
	n = p.Start(p.Config, "")
	n.Through(task)
	p.LandedOnce(task)
}

// TestRepositoriesAsTheyAre: what is wrong with a repository is the task's failure, in
// a sentence; what is only unusual works.
func TestRepositoriesAsTheyAre(t *testing.T) {
	t.Parallel()
	p := placetest.SqlitePlace(t, `
engine: {workers: 4}
repositories:
  missing:  {path: "DIR/none", branch: main}
  file:     {path: "DIR/file", branch: main}
  folder:   {path: "DIR/folder", branch: main}
  branch:   {path: "REPO", branch: nightly}
  empty:    {path: "DIR/empty", branch: main}
  bare:     {path: "DIR/bare.git", branch: main}
  unusual:  {path: "DIR/über uns/日本 'q'", branch: main}
  relative: {path: "./folder/../app"}
  dirty:    {path: "DIR/dirty", branch: main}
agents:
  coder:
    kind: command
    sandbox: off
    command: [sh, -c, "echo hello > 'hällo wörld.txt'"]
`)
	p.Touch("file")
	p.Must(os.Mkdir(filepath.Join(p.Dir, "folder"), 0o700))
	placetest.Git(t, p.Dir, "init", "-q", "-b", "main", "empty")
	placetest.Git(t, p.Dir, "clone", "-q", "--bare", "app", "bare.git")
	p.Must(os.Mkdir(filepath.Join(p.Dir, "über uns"), 0o700))
	placetest.NewRepo(t, filepath.Join(p.Dir, "über uns", "日本 'q'"))
	dirty := filepath.Join(p.Dir, "dirty")
	placetest.NewRepo(t, dirty)
	p.Must(os.WriteFile(filepath.Join(dirty, "README.md"), []byte("Not committed.\n"), 0o600))
	n := p.Start(p.Config, "")
	tasks := map[string]string{}
	for _, name := range []string{"missing", "file", "folder", "branch", "empty", "bare", "unusual", "relative", "dirty"} {
		tasks[name] = n.Send("coder", name, name)
	}
	for name, words := range map[string][]string{
		"missing": {"there is no folder " + filepath.Join(p.Dir, "none"), "Check `path`"},
		"file":    {"is a file, not a git repository", "Check `path`"},
		"folder":  {"not a git repository"},
		"branch":  {"nightly"},
		"empty":   {"has no commit yet", "Make a first commit"},
	} {
		root := n.Through(tasks[name])
		if root.State != orchestrator.Failed || root.Error == nil {
			t.Errorf("%s: the task is %s: %v", name, root.State, root.Error)
			continue
		}
		for _, w := range words {
			if !strings.Contains(root.Error.Message, w) {
				t.Errorf("%s: the reason does not say %q: %s", name, w, root.Error.Message)
			}
		}
	}
	for name, dir := range map[string]string{"bare": "bare.git", "unusual": "über uns/日本 'q'", "relative": "app"} {
		if root := n.Through(tasks[name]); root.State != orchestrator.Completed {
			t.Errorf("%s: the task is %s: %v", name, root.State, root.Error)
			continue
		}
		if text := placetest.Git(t, filepath.Join(p.Dir, dir), "show", "main:hällo wörld.txt"); text != "hello" {
			t.Errorf("%s: main has %q", name, text)
		}
	}
	// The yes stands while the folder is dirty; the people's work is not touched.
	if status, err := n.Decide(p.Asked(tasks["dirty"])); err != nil || status != http.StatusOK {
		t.Fatalf("the yes was answered with status %d, %v", status, err)
	}
	p.Until("the landing to be held up", func() bool { return p.Root(tasks["dirty"]).Work.Problem != "" })
	held := p.Root(tasks["dirty"])
	if held.State != orchestrator.Landing || !strings.Contains(held.Work.Problem, "README.md") || !strings.Contains(held.Work.Problem, "then Retry") {
		t.Errorf("the task is %s with the problem %q", held.State, held.Work.Problem)
	}
	if b, err := os.ReadFile(filepath.Join(dirty, "README.md")); err != nil || string(b) != "Not committed.\n" {
		t.Errorf("the people's own change is now %q, %v", b, err)
	}
	placetest.Git(t, dirty, "stash", "-q")
	if status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+tasks["dirty"]+"/retry", n.Asker, nil, nil); err != nil || status/100 != 2 {
		t.Errorf("the retry was answered with status %d, %v", status, err)
	}
	if root := n.Through(tasks["dirty"]); root.State != orchestrator.Completed || placetest.Git(t, dirty, "show", "main:hällo wörld.txt") != "hello" {
		t.Errorf("after the retry the task is %s: %v", root.State, root.Error)
	}
}
