package placetest

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
	"gatehouse/approval/sqlstore"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
	"gatehouse/orchestrator/store/storetest"
)

// Place is all of an installation that outlives its processes: a repository, a
// database, folders and people.
type Place struct {
	*testing.T
	Dir      string
	Repo     string // the people's own repository, main checked out in the folder
	Database string
	Config   string // path of gatehouse.yaml
	Data     string
	Mark     string // in the environment of every agent of this place, nowhere else
	Store    *sqlstore.Store
	Asker    string // token of ann, who asks
	Approver string // token of bob, who approves
}

// databases are where an installation may keep what it knows.
var databases = map[string]func(*testing.T) string{
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(pgtest.Folder(t), "gatehouse.db") },
	"postgres": func(t *testing.T) string { return storetest.Postgres(t) },
}

// Places runs a story on both databases: one in which the database decides, of kills, several nodes, leases, landings
// and people at once.
func Places(t *testing.T, story func(t *testing.T, database string)) {
	for name := range databases {
		placeOn(t, name, story)
	}
}

// AnyPlace runs a story on one of the databases, which its name chooses, as what it tells is the same on both: packages
// store and approval prove that. make test-full runs it on both.
func AnyPlace(t *testing.T, story func(t *testing.T, database string)) {
	if os.Getenv("GATEHOUSE_TEST_SQUARE") != "" {
		Places(t, story)
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

// New makes an installation with a repository of one commit. The text is the
// rest of its gatehouse.yaml, where MARK, DIR, REPO and NO_SLEEP stand for theirs.
func New(t *testing.T, database, text string) *Place {
	t.Helper()
	p := &Place{T: t, Dir: t.TempDir(), Database: database, Mark: rand.Text()}
	p.Repo = filepath.Join(p.Dir, "app")
	NewRepo(t, p.Repo)
	p.Config, p.Data = p.Configure("one", text)
	var err error
	if p.Store, err = sqlstore.Open(t.Context(), storetest.Ready(t, database), store.Options{Node: "test", Logger: slog.New(slog.DiscardHandler), Pool: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Store.Close() }) //nolint:errcheck // the test is over
	p.Asker = p.Person("ann", people.Operator, people.Admin)
	p.Approver = p.Person("bob", people.Approver)
	return p
}

// Configure writes the configuration of one node with a data folder of its own.
func (p *Place) Configure(name, text string) (path, data string) {
	p.Helper()
	data = filepath.Join(p.Dir, name)
	path = filepath.Join(p.Dir, name+".yaml")
	text = strings.NewReplacer("MARK", p.Mark, "DIR", p.Dir, "REPO", p.Repo, "NO_SLEEP", NoSleep).Replace(text)
	if !strings.Contains(text, "server:") {
		text = "server: {listen: \"127.0.0.1:0\"}\n" + text
	}
	p.Must(os.WriteFile(path, fmt.Appendf(nil, "database: %q\ndata: %q\n%s", p.Database, data, text), 0o600))
	return path, data
}

// Person adds somebody and returns a token with all rights that they have.
func (p *Place) Person(name string, roles ...people.Role) string {
	p.Helper()
	u, err := p.Store.CreateUser(p.Context(), "test", people.User{Name: name, Roles: roles})
	p.Must(err)
	secret, hash := signin.NewToken()
	_, err = p.Store.CreateToken(p.Context(), "test", people.Token{UserID: u.ID, Scopes: people.Scopes(), Hash: hash})
	p.Must(err)
	return secret
}

func (p *Place) Must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// NewRepo makes a repository with one commit on main.
func NewRepo(t *testing.T, dir string) {
	t.Helper()
	Git(t, "", "init", "-q", "-b", "main", dir)
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("An app.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	Git(t, dir, "add", "-A")
	Git(t, dir, "commit", "-q", "-m", "people's work")
}

// Git runs git for the people, without their own configuration.
func Git(t *testing.T, dir string, args ...string) string {
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

// Until waits until ok is true. It looks less and less often: several stories look at once, each into a database.
func (p *Place) Until(what string, ok func() bool) {
	p.Helper()
	const soon, late = 10 * time.Millisecond, 100 * time.Millisecond
	deadline := time.Now().Add(LongEnough)
	for pause := soon; !ok(); pause = min(pause*5/4, late) {
		if time.Now().After(deadline) {
			p.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(pause)
	}
}

// Requests lists what was asked in a task.
func (p *Place) Requests(taskID string, states ...approval.State) []approval.Request {
	p.Helper()
	page, err := p.Store.Requests(p.Context(), approval.Filter{TaskID: taskID, States: states})
	p.Must(err)
	return page.Items
}

// Asked waits for the pending request of a task.
func (p *Place) Asked(taskID string) approval.Request {
	p.Helper()
	var found []approval.Request
	p.Until("a request", func() bool {
		found = p.Requests(taskID, approval.Pending)
		return len(found) > 0
	})
	return found[0]
}

// Root is the root delegation of a task.
func (p *Place) Root(taskID string) orchestrator.Delegation {
	p.Helper()
	t, err := p.Store.Task(p.Context(), taskID)
	p.Must(err)
	d, err := p.Store.Delegation(p.Context(), t.RootID)
	p.Must(err)
	return d
}

// Events lists the events of a task and checks that they are numbered without gaps
// and that their chain of hashes holds.
func (p *Place) Events(taskID string) []event.Event {
	p.Helper()
	p.Must(p.Store.VerifyTask(p.Context(), taskID))
	all, err := p.Store.Events(p.Context(), taskID, 0, 10_000)
	p.Must(err)
	for i, e := range all {
		if e.N != int64(i+1) {
			p.Fatalf("event %d has the number %d", i+1, e.N)
		}
	}
	return all
}

// Count is how many events of a type somebody caused; "" is anybody.
func Count(events []event.Event, typ event.Type, actor string) int {
	n := 0
	for _, e := range events {
		if e.Type == typ && (actor == "" || e.Actor == actor) {
			n++
		}
	}
	return n
}

// LandedOnce is landedBy for bob, who decides in most stories.
func (p *Place) LandedOnce(taskID string) {
	p.Helper()
	p.LandedBy(taskID, "bob")
}

// LandedBy checks that a task which asked for one change has ended well: one request,
// one decision, which is that person's, one commit.
func (p *Place) LandedBy(taskID, who string) {
	p.Helper()
	root := p.Root(taskID)
	if root.State != orchestrator.Completed {
		p.Fatalf("the task is %s: %v", root.State, root.Error)
	}
	events := p.Events(taskID)
	requests := p.Requests(taskID)
	if len(requests) != 1 || requests[0].State != approval.Landed || len(requests[0].Decisions) != 1 {
		p.Fatalf("want one landed request with one decision: %+v", requests)
	}
	for typ, want := range map[event.Type]int{event.Requested: 1, event.PatchLanded: 1} {
		if got := Count(events, typ, ""); got != want {
			p.Errorf("%d events %s, want %d", got, typ, want)
		}
	}
	if got := Count(events, event.Decided, who); got != 1 {
		p.Errorf("%d decisions of %s in the history, want 1", got, who)
	}
	if got := Count(events, event.Decided, "") - Count(events, event.Decided, "rule:analysis-only"); got != 1 {
		p.Errorf("%d decisions of people in the history, want 1", got)
	}
	merges := Git(p.T, p.Repo, "log", "--first-parent", "--merges", "--format=%H", "--grep", "Gatehouse-Task: "+taskID, "main")
	if merges != requests[0].Landed {
		p.Errorf("merges of the task on main: %q; recorded as landed: %q", merges, requests[0].Landed)
	}
}

// NothingLeft waits until no process of an agent and no folder of a run is left.
func (p *Place) NothingLeft(data ...string) {
	p.Helper()
	p.Until("the end of every agent's process", func() bool { return p.Marked() == 0 })
	for _, folder := range data {
		p.Until("the end of every run's folder", func() bool {
			runs, err := os.ReadDir(filepath.Join(folder, "runs"))
			return errors.Is(err, os.ErrNotExist) || err == nil && len(runs) == 0
		})
	}
}

// Marked counts the living processes that carry the mark of this place.
func (p *Place) Marked() int {
	p.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	p.Must(err)
	n := 0
	for _, path := range found {
		// A process may go, or belong to somebody else.
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte(p.Mark)) {
			n++
		}
	}
	return n
}

// Exists reports whether a file is there, which is how agents tell how far they are.
func (p *Place) Exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.Dir, name))
	return err == nil
}

// Touch makes a file that an agent waits for.
func (p *Place) Touch(name string) {
	p.Helper()
	p.Must(os.WriteFile(filepath.Join(p.Dir, name), nil, 0o600))
}

// Revised waits until a request of a task is pending in that revision.
func (p *Place) Revised(taskID string, n int) approval.Request {
	p.Helper()
	var r approval.Request
	p.Until("the next revision", func() bool {
		all := p.Requests(taskID, approval.Pending)
		if len(all) != 1 || all[0].Revision.N != n {
			return false
		}
		r = all[0]
		return true
	})
	return r
}
