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
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/pgtest"
)

// awayTeam has agents that work until a file is there.
const awayTeam = `
engine: {workers: 4, lease: LEASE}
repositories:
  app: {path: "REPO", branch: main}
agents:
  early: {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [sh, "DIR/until", early]}
  late:  {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [sh, "DIR/until", late]}
  boss:  {kind: command, sandbox: off, env: {PLACE: MARK, GORACE: NO_SLEEP}, command: [sh, "DIR/until", boss, clerk]}
  clerk: {kind: command, command: [echo, done]}
  coder: {kind: command, repository: app, sandbox: off, command: [sh, -c, "echo hello > coder"]}
`

// untilEnds is what these agents do: they say that they work, wait, change a file and
// may hand on.
const untilEnds = `cd "${0%/*}"; here=$OLDPWD
touch "$1-works"
until [ -e "$1-ends" ]; do sleep 0.05; done
echo "$1" > "$here/$1"
[ -z "$2" ] || gatehouse delegate "$2" "Do it"
`

// awayPlace is a place with this team and leases of a length.
func awayPlace(t *testing.T, database, lease string) *place {
	t.Helper()
	p := newPlace(t, database, strings.ReplaceAll(awayTeam, "LEASE", lease))
	p.must(os.WriteFile(filepath.Join(p.dir, "until"), []byte(untilEnds), 0o600))
	return p
}

// sqlitePlace is a place on SQLite for stories that are not about the database.
func sqlitePlace(t *testing.T, team string) *place {
	t.Helper()
	return newPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), team)
}

// refusesToStart checks that a server ends by itself, with a mistake of configuration,
// and says what the words are.
func (n *node) refusesToStart(words ...string) {
	n.Helper()
	if code := n.code(); code != console.ExitUsage {
		n.Errorf("exit code %d, want %d", code, console.ExitUsage)
	}
	said := n.log()
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
	start := func(p *place, config string, args ...string) *node {
		n, _ := p.launch(config, "", args...)
		return n
	}
	t.Run("the database file is read-only", func(t *testing.T) {
		p := sqlitePlace(t, decideTeam)
		p.must(p.store.Close())
		file := strings.TrimPrefix(p.database, "sqlite:")
		p.must(os.Chmod(file, 0o400))
		n, _ := p.launchBy(unprivileged(t), p.config, "")
		n.refusesToStart(file, "cannot be written", "give this user the right")
	})
	t.Run("the database is served by another one", func(t *testing.T) {
		p := sqlitePlace(t, decideTeam)
		p.start(p.config, "")
		other, _ := p.configure("other", decideTeam)
		start(p, other).refusesToStart("served by another gatehouse", "Stop it, or use PostgreSQL")
	})
	t.Run("the data folder is used by another one", func(t *testing.T) {
		p := sqlitePlace(t, decideTeam)
		p.start(p.config, "")
		start(p, p.config).refusesToStart(p.data, "used by another gatehouse", "Stop it, or give this one a data folder of its own")
	})
	t.Run("the database is of a newer program", func(t *testing.T) {
		p := sqlitePlace(t, decideTeam)
		db, err := sql.Open("sqlite", strings.TrimPrefix(p.database, "sqlite:"))
		p.must(err)
		_, err = db.ExecContext(t.Context(), "insert into goose_db_version (version_id, is_applied) values (99999, true)")
		p.must(err)
		p.must(db.Close())
		start(p, p.config).refusesToStart("99999", "run the newer gatehouse")
	})
	t.Run("the port is taken", func(t *testing.T) {
		p := sqlitePlace(t, decideTeam)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		p.must(err)
		defer l.Close()
		start(p, p.config, "--listen", l.Addr().String()).refusesToStart(l.Addr().String() + " is in use. Stop the other program, or add --listen 127.0.0.1:8081.")
	})
	t.Run("PostgreSQL is away", func(t *testing.T) {
		server := pgtest.NewServer(t)
		p := newPlace(t, server.URL("postgres"), decideTeam)
		server.Stop()
		start(p, p.config).refusesToStart("PostgreSQL at 127.0.0.1", "does not answer", "Check that it runs")
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
			p := awayPlace(t, server.URL("postgres"), c.lease)
			n := p.start(p.config, "")
			early, late := n.send("early", "app", "early"), n.send("late", "app", "late")
			boss := n.send("boss", "", "boss")
			bob := n.browser("bob")
			asked := n.asked(n.send("coder", "app", "coder"))
			p.until("all agents to work", func() bool { return p.exists("early-works") && p.exists("late-works") && p.exists("boss-works") })
			server.Stop()
			p.until("the server to say that it is not ready", func() bool { return n.status("/readyz") == http.StatusServiceUnavailable })
			if got := n.status("/healthz"); got != http.StatusOK {
				t.Errorf("healthz answers %d while the database is away", got)
			}
			var refused problem
			if status, err := n.call(http.MethodGet, "/api/v1/delegations", n.asker, nil, &refused); err != nil || status != http.StatusServiceUnavailable || refused.Code != "unavailable" {
				t.Errorf("a list while the database is away: %d %+v, %v", status, refused, err)
			}
			// Pages say what is the matter, and a yes is not lost without a word.
			if status, page := n.say(bob, "/approvals/", asked, "approve", ""); status != http.StatusServiceUnavailable || !strings.Contains(page, "does not answer") || !strings.Contains(page, "<h1") {
				t.Errorf("a yes while the database is away: %d %.2000s", status, page)
			}
			p.touch("early-ends")
			if c.survive {
				p.touch("boss-ends")
				p.until("a hand-over that cannot be stored", func() bool { return strings.Contains(n.log(), "POST path=/api/v1/delegations status=503") })
				p.until("its result to wait", func() bool { return strings.Contains(n.log(), "waits until the database is back") })
			} else {
				p.until("the end of agents without leases", func() bool { return p.marked() == 0 })
			}
			server.Start(t)
			p.until("the server to be ready again", func() bool { return n.status("/readyz") == http.StatusOK })
			p.touch("late-ends")
			p.touch("boss-ends")
			for _, task := range []string{asked.TaskID, early, late} {
				n.through(task)
				p.landedOnce(task)
			}
			if root := n.through(boss); root.State != orchestrator.Completed || count(p.events(boss), event.Delegated, "") != 1 {
				t.Errorf("the one who handed on is %s: %v", root.State, root.Error)
			}
			for name, task := range map[string]string{"early": early, "late": late, "boss": boss} {
				if runs := count(p.events(task), event.Acknowledged, name); c.survive && runs != 1 {
					t.Errorf("%s was run %d times although its lease outlived the outage", name, runs)
				}
			}
			p.nothingLeft(p.data)
			server.Stop() // the server can also be ended while its database is away
			n.stop()
		})
	}
}

// status is the status of a page that needs no token.
func (n *node) status(path string) int {
	n.Helper()
	status, err := n.call(http.MethodGet, path, "", nil, nil)
	n.must(err)
	return status
}

// TestSIGTERMGivesWorkBack: the server ends at once and well, its agents with it, and
// the work is queued for whoever comes next, without a wait for a lease.
func TestSIGTERMGivesWorkBack(t *testing.T) {
	t.Parallel()
	p := awayPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), "10m")
	n := p.start(p.config, "")
	task := n.send("early", "app", "early")
	p.until("the agent to work", func() bool { return p.exists("early-works") })
	asked := time.Now()
	n.stop()
	if took := time.Since(asked); took > 20*time.Second {
		t.Errorf("the server took %s to end", took)
	}
	p.nothingLeft(p.data)
	if root := p.root(task); root.State != orchestrator.Queued || root.Holder != "" || root.Losses != 0 {
		t.Errorf("the work is %s, held by %q, lost %d times; want it queued as if nothing had been", root.State, root.Holder, root.Losses)
	}
	p.touch("early-ends")
	n = p.start(p.config, "")
	n.through(task)
	p.landedOnce(task)
}

// TestRepositoriesAsTheyAre: what is wrong with a repository is the task's failure, in
// a sentence; what is only unusual works.
func TestRepositoriesAsTheyAre(t *testing.T) {
	t.Parallel()
	p := sqlitePlace(t, `
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
	p.touch("file")
	p.must(os.Mkdir(filepath.Join(p.dir, "folder"), 0o700))
	git(t, p.dir, "init", "-q", "-b", "main", "empty")
	git(t, p.dir, "clone", "-q", "--bare", "app", "bare.git")
	p.must(os.Mkdir(filepath.Join(p.dir, "über uns"), 0o700))
	newRepo(t, filepath.Join(p.dir, "über uns", "日本 'q'"))
	dirty := filepath.Join(p.dir, "dirty")
	newRepo(t, dirty)
	p.must(os.WriteFile(filepath.Join(dirty, "README.md"), []byte("Not committed.\n"), 0o600))
	n := p.start(p.config, "")
	tasks := map[string]string{}
	for _, name := range []string{"missing", "file", "folder", "branch", "empty", "bare", "unusual", "relative", "dirty"} {
		tasks[name] = n.send("coder", name, name)
	}
	for name, words := range map[string][]string{
		"missing": {"there is no folder " + filepath.Join(p.dir, "none"), "Check `path`"},
		"file":    {"is a file, not a git repository", "Check `path`"},
		"folder":  {"not a git repository"},
		"branch":  {"nightly"},
		"empty":   {"has no commit yet", "Make a first commit"},
	} {
		root := n.through(tasks[name])
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
		if root := n.through(tasks[name]); root.State != orchestrator.Completed {
			t.Errorf("%s: the task is %s: %v", name, root.State, root.Error)
			continue
		}
		if text := git(t, filepath.Join(p.dir, dir), "show", "main:hällo wörld.txt"); text != "hello" {
			t.Errorf("%s: main has %q", name, text)
		}
	}
	// The yes stands while the folder is dirty; the people's work is not touched.
	if status, err := n.decide(p.asked(tasks["dirty"])); err != nil || status != http.StatusOK {
		t.Fatalf("the yes was answered with status %d, %v", status, err)
	}
	p.until("the landing to be held up", func() bool { return p.root(tasks["dirty"]).Work.Problem != "" })
	held := p.root(tasks["dirty"])
	if held.State != orchestrator.Landing || !strings.Contains(held.Work.Problem, "README.md") || !strings.Contains(held.Work.Problem, "then Retry") {
		t.Errorf("the task is %s with the problem %q", held.State, held.Work.Problem)
	}
	if b, err := os.ReadFile(filepath.Join(dirty, "README.md")); err != nil || string(b) != "Not committed.\n" {
		t.Errorf("the people's own change is now %q, %v", b, err)
	}
	git(t, dirty, "stash", "-q")
	if status, err := n.call(http.MethodPost, "/api/v1/delegations/"+tasks["dirty"]+"/retry", n.asker, nil, nil); err != nil || status/100 != 2 {
		t.Errorf("the retry was answered with status %d, %v", status, err)
	}
	if root := n.through(tasks["dirty"]); root.State != orchestrator.Completed || git(t, dirty, "show", "main:hällo wörld.txt") != "hello" {
		t.Errorf("after the retry the task is %s: %v", root.State, root.Error)
	}
}
