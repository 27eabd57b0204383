package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// place is all of an installation that outlives its processes: a repository, a
// database, folders and people.
type place struct {
	*testing.T
	dir      string
	repo     string // the people's own repository, main checked out in the folder
	database string
	config   string // path of gatehouse.yaml
	data     string
	mark     string // in the environment of every agent of this place, nowhere else
	store    *store.Store
	asker    string // token of ann, who asks
	approver string // token of bob, who approves
}

// databases are where an installation may keep what it knows.
var databases = map[string]func(*testing.T) string{
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db") },
	"postgres": func(t *testing.T) string { return storetest.Postgres(t) },
}

// places runs a story on both databases: one in which the database decides, of kills, several nodes, leases, landings
// and people at once.
func places(t *testing.T, story func(t *testing.T, database string)) {
	for name := range databases {
		placeOn(t, name, story)
	}
}

// anyPlace runs a story on one of the databases, which its name chooses, as what it tells is the same on both: packages
// store and approval prove that. make test-full runs it on both.
func anyPlace(t *testing.T, story func(t *testing.T, database string)) {
	if os.Getenv("GATEHOUSE_TEST_SQUARE") != "" {
		places(t, story)
		return
	}
	h := fnv.New32a()
	h.Write([]byte(t.Name()))
	placeOn(t, []string{"sqlite", "postgres"}[h.Sum32()%2], story)
}

func placeOn(t *testing.T, name string, story func(t *testing.T, database string)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		story(t, databases[name](t))
	})
}

// newPlace makes an installation with a repository of one commit. The text is the
// rest of its gatehouse.yaml, where MARK, DIR, REPO and NO_SLEEP stand for theirs.
func newPlace(t *testing.T, database, text string) *place {
	t.Helper()
	p := &place{T: t, dir: t.TempDir(), database: database, mark: rand.Text()}
	p.repo = filepath.Join(p.dir, "app")
	newRepo(t, p.repo)
	p.config, p.data = p.configure("one", text)
	var err error
	if p.store, err = store.Open(t.Context(), storetest.Ready(t, database), store.Options{Node: "test", Logger: slog.New(slog.DiscardHandler), Pool: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.store.Close() }) //nolint:errcheck // the test is over
	p.asker = p.person("ann", people.Operator, people.Admin)
	p.approver = p.person("bob", people.Approver)
	return p
}

// configure writes the configuration of one node with a data folder of its own.
func (p *place) configure(name, text string) (path, data string) {
	p.Helper()
	data = filepath.Join(p.dir, name)
	path = filepath.Join(p.dir, name+".yaml")
	text = strings.NewReplacer("MARK", p.mark, "DIR", p.dir, "REPO", p.repo, "NO_SLEEP", noSleep).Replace(text)
	if !strings.Contains(text, "server:") {
		text = "server: {listen: \"127.0.0.1:0\"}\n" + text
	}
	p.must(os.WriteFile(path, fmt.Appendf(nil, "database: %q\ndata: %q\n%s", p.database, data, text), 0o600))
	return path, data
}

// person adds somebody and returns a token with all rights that they have.
func (p *place) person(name string, roles ...people.Role) string {
	p.Helper()
	u, err := p.store.CreateUser(p.Context(), "test", people.User{Name: name, Roles: roles})
	p.must(err)
	secret, hash := signin.NewToken()
	_, err = p.store.CreateToken(p.Context(), "test", people.Token{UserID: u.ID, Scopes: people.Scopes(), Hash: hash})
	p.must(err)
	return secret
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// newRepo makes a repository with one commit on main.
func newRepo(t *testing.T, dir string) {
	t.Helper()
	git(t, "", "init", "-q", "-b", "main", dir)
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("An app.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "people's work")
}

// git runs git for the people, without their own configuration.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// until waits until ok is true.
func (p *place) until(what string, ok func() bool) {
	p.Helper()
	deadline := time.After(longEnough)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			p.Fatalf("waited in vain: %s", what)
		}
	}
}

// requests lists what was asked in a task.
func (p *place) requests(taskID string, states ...approval.State) []approval.Request {
	p.Helper()
	page, err := p.store.Requests(p.Context(), approval.Filter{TaskID: taskID, States: states})
	p.must(err)
	return page.Items
}

// asked waits for the pending request of a task.
func (p *place) asked(taskID string) approval.Request {
	p.Helper()
	var found []approval.Request
	p.until("a request", func() bool {
		found = p.requests(taskID, approval.Pending)
		return len(found) > 0
	})
	return found[0]
}

// root is the root delegation of a task.
func (p *place) root(taskID string) orchestrator.Delegation {
	p.Helper()
	t, err := p.store.Task(p.Context(), taskID)
	p.must(err)
	d, err := p.store.Delegation(p.Context(), t.RootID)
	p.must(err)
	return d
}

// events lists the events of a task and checks that they are numbered without gaps
// and that their chain of hashes holds.
func (p *place) events(taskID string) []event.Event {
	p.Helper()
	p.must(p.store.VerifyTask(p.Context(), taskID))
	all, err := p.store.Events(p.Context(), taskID, 0, 10_000)
	p.must(err)
	for i, e := range all {
		if e.N != int64(i+1) {
			p.Fatalf("event %d has the number %d", i+1, e.N)
		}
	}
	return all
}

// count is how many events of a type somebody caused; "" is anybody.
func count(events []event.Event, typ event.Type, actor string) int {
	n := 0
	for _, e := range events {
		if e.Type == typ && (actor == "" || e.Actor == actor) {
			n++
		}
	}
	return n
}

// landedOnce is landedBy for bob, who decides in most stories.
func (p *place) landedOnce(taskID string) {
	p.Helper()
	p.landedBy(taskID, "bob")
}

// landedBy checks that a task which asked for one change has ended well: one request,
// one decision, which is that person's, one commit.
func (p *place) landedBy(taskID, who string) {
	p.Helper()
	root := p.root(taskID)
	if root.State != orchestrator.Completed {
		p.Fatalf("the task is %s: %v", root.State, root.Error)
	}
	events := p.events(taskID)
	requests := p.requests(taskID)
	if len(requests) != 1 || requests[0].State != approval.Landed || len(requests[0].Decisions) != 1 {
		p.Fatalf("want one landed request with one decision: %+v", requests)
	}
	for typ, want := range map[event.Type]int{event.Requested: 1, event.PatchLanded: 1} {
		if got := count(events, typ, ""); got != want {
			p.Errorf("%d events %s, want %d", got, typ, want)
		}
	}
	if got := count(events, event.Decided, who); got != 1 {
		p.Errorf("%d decisions of %s in the history, want 1", got, who)
	}
	if got := count(events, event.Decided, "") - count(events, event.Decided, "rule:analysis-only"); got != 1 {
		p.Errorf("%d decisions of people in the history, want 1", got)
	}
	merges := git(p.T, p.repo, "log", "--first-parent", "--merges", "--format=%H", "--grep", "Gatehouse-Task: "+taskID, "main")
	if merges != requests[0].Landed {
		p.Errorf("merges of the task on main: %q; recorded as landed: %q", merges, requests[0].Landed)
	}
}

// nothingLeft waits until no process of an agent and no folder of a run is left.
func (p *place) nothingLeft(data ...string) {
	p.Helper()
	p.until("the end of every agent's process", func() bool { return p.marked() == 0 })
	for _, folder := range data {
		p.until("the end of every run's folder", func() bool {
			runs, err := os.ReadDir(filepath.Join(folder, "runs"))
			return errors.Is(err, os.ErrNotExist) || err == nil && len(runs) == 0
		})
	}
}

// marked counts the living processes that carry the mark of this place.
func (p *place) marked() int {
	p.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	p.must(err)
	n := 0
	for _, path := range found {
		// A process may go, or belong to somebody else.
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte(p.mark)) {
			n++
		}
	}
	return n
}

// exists reports whether a file is there, which is how agents tell how far they are.
func (p *place) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.dir, name))
	return err == nil
}

// touch makes a file that an agent waits for.
func (p *place) touch(name string) {
	p.Helper()
	p.must(os.WriteFile(filepath.Join(p.dir, name), nil, 0o600))
}
