package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/handlers/door"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
	"gatehouse/web/client"

	"golang.org/x/sync/errgroup"
)

// Variables that make the test binary a server that dies; the product knows none.
const (
	killAt = "GATEHOUSE_TEST_KILL" // "POINT#N": at the N-th time of a trace point
	idle   = "idle"                // in place of a point: answers, and works on nothing
)

// gatehouse is the program as the tests start it: the product, or one that dies.
func gatehouse() {
	point := os.Getenv(killAt)
	if point == "" || len(os.Args) < 2 || os.Args[1] != "serve" {
		main()
		return
	}
	if err := serveUntil(context.Background(), point); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveUntil serves as `serve` does, on the same wiring, and kills its own process as
// kill -9 would, at a point that is durable.
func serveUntil(ctx context.Context, point string) error {
	cfg, err := config.Load(os.Getenv("GATEHOUSE_CONFIG"), os.LookupEnv)
	if err != nil {
		return err
	}
	name, nth, _ := strings.Cut(point, "#")
	var seen atomic.Int64
	h, err := openHouse(ctx, cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)), func(at string) {
		if at == name && strconv.FormatInt(seen.Add(1), 10) == nth {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				panic(err)
			}
			select {} // the signal is on its way
		}
	})
	if err != nil {
		return err
	}
	l, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s%s\n", greeting, "http://"+l.Addr().String())
	if point != idle {
		return h.serve(ctx, l, nil)
	}
	site, err := h.site(l.Addr().String(), nil)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.store.Run(ctx) })
	g.Go(func() error { return site.Serve(ctx, l) })
	return g.Wait()
}

// noSleep spares every process of a race build its second of sleep before it exits.
const noSleep = "atexit_sleep_ms=0"

// greeting is what a server says on standard error before its address.
const greeting = "Gatehouse is at "

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

// places runs a story on both databases.
func places(t *testing.T, story func(t *testing.T, database string)) {
	for name, database := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db") },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, database(t))
		})
	}
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
	if p.store, err = store.Open(t.Context(), database, store.Options{Node: "test", Logger: slog.New(slog.DiscardHandler), Pool: 4}); err != nil {
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
	secret, hash := door.NewToken()
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

// node is one running process.
type node struct {
	*place
	cmd   *exec.Cmd
	url   string
	http  *http.Client
	ended chan struct{} // closed when the process is gone and all it said is in said
	mu    sync.Mutex
	said  bytes.Buffer
}

// launch starts the program with a configuration, and returns before it serves.
func (p *place) launch(config, point string, args ...string) (*node, <-chan string) {
	p.Helper()
	return p.launchBy(nil, config, point, args...)
}

// launchBy is launch by way of another program and its arguments, such as env.
func (p *place) launchBy(by []string, config, point string, args ...string) (*node, <-chan string) {
	p.Helper()
	path, err := exec.LookPath("gatehouse")
	p.must(err)
	line := slices.Concat(by, []string{path, "serve"}, args)
	n := &node{place: p, cmd: exec.Command(line[0], line[1:]...), http: http.DefaultClient, ended: make(chan struct{})}
	n.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + os.TempDir(), "GATEHOUSE_CONFIG=" + config, killAt + "=" + point, "GORACE=" + noSleep}
	n.cmd.Dir = p.dir
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that is cut off leaves no server
	stderr, err := n.cmd.StderrPipe()
	p.must(err)
	p.must(n.cmd.Start())
	address := make(chan string, 1)
	go func() {
		defer close(n.ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			n.mu.Lock()
			n.said.WriteString(lines.Text() + "\n")
			n.mu.Unlock()
			if at, ok := strings.CutPrefix(lines.Text(), greeting); ok {
				address <- at
			}
		}
		n.cmd.Wait() //nolint:errcheck // code tells how it ended
	}()
	p.Cleanup(func() {
		n.cmd.Process.Kill() //nolint:errcheck // it may be gone
		<-n.ended
		if strings.Contains(n.log(), "DATA RACE") || p.Failed() {
			p.Errorf("%s said:\n%s", filepath.Base(config), n.log())
		}
	})
	return n, address
}

// start starts the node with a configuration and waits until it serves. With a point
// it kills itself there.
func (p *place) start(config, point string) *node {
	p.Helper()
	n, address := p.launch(config, point)
	select {
	case n.url = <-address:
	case <-n.ended:
		p.Fatalf("the server ended with code %d instead of serving", n.code())
	case <-time.After(longEnough):
		p.Fatal("the server does not serve")
	}
	return n
}

// longEnough is how long a test waits for what must come; a loaded machine is slow.
const longEnough = 60 * time.Second

// log is what the process has said so far.
func (n *node) log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.said.String()
}

// code waits for the end and returns the exit code, -1 after a signal.
func (n *node) code() int {
	n.Helper()
	select {
	case <-n.ended:
	case <-time.After(longEnough):
		n.Fatal("the process does not end")
	}
	return n.cmd.ProcessState.ExitCode()
}

// died waits until the process has killed itself.
func (n *node) died() {
	n.Helper()
	code := n.code()
	if status, ok := n.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		n.Fatalf("the process ended with code %d and was not killed", code)
	}
}

// kill ends the process as kill -9 does.
func (n *node) kill() {
	n.Helper()
	n.must(n.cmd.Process.Kill())
	<-n.ended
}

// stop ends the process as a service manager does.
func (n *node) stop() {
	n.Helper()
	n.must(n.cmd.Process.Signal(syscall.SIGTERM))
	if code := n.code(); code != 0 {
		n.Errorf("SIGTERM ended the server with code %d", code)
	}
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

// call sends one request with a token and decodes the answer where into is not nil.
func (n *node) call(method, path, token string, body, into any) (int, error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(n.Context(), method, n.url+path, in)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := n.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, err
	}
	return res.StatusCode, json.NewDecoder(res.Body).Decode(into)
}

// text reads an answer that is no JSON.
func (n *node) text(path, token string, into io.Writer) (int, error) {
	req, err := http.NewRequestWithContext(n.Context(), http.MethodGet, n.url+path, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := n.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(into, res.Body)
	return res.StatusCode, err
}

// submit sends a task as ann, under a key.
func (n *node) submit(agent, repository, key string) (client.Submitted, error) {
	var s client.Submitted
	status, err := n.call(http.MethodPost, "/api/v1/tasks", n.asker, client.Submission{Agent: agent, Text: "Do " + key, Repository: repository, Key: key}, &s)
	if err == nil && status != http.StatusAccepted && status != http.StatusOK {
		err = fmt.Errorf("the task was refused with status %d", status)
	}
	return s, err
}

// send is submit where nothing may go wrong; it returns the task's id.
func (n *node) send(agent, repository, key string) string {
	n.Helper()
	s, err := n.submit(agent, repository, key)
	n.must(err)
	return s.ID
}

// decide gives bob's verdict on what a request shows.
func (n *node) decide(r approval.Request) (int, error) {
	return n.call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", n.approver, client.Verdict{Verdict: "approve", Digest: r.Revision.Digest}, nil)
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

// through approves what a task asks for on this node until the task has ended, and
// returns its root.
func (n *node) through(taskID string) orchestrator.Delegation {
	n.Helper()
	var root orchestrator.Delegation
	n.until("the end of "+taskID, func() bool {
		for _, r := range n.requests(taskID, approval.Pending) {
			if status, err := n.decide(r); err != nil || status != http.StatusOK {
				n.Fatalf("the yes was answered with status %d, %v", status, err)
			}
		}
		root = n.root(taskID)
		return root.State.Ended()
	})
	return root
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

// landedOnce checks that a task which asked for one change has ended well: one
// request, one decision, one commit.
func (p *place) landedOnce(taskID string) {
	p.Helper()
	root := p.root(taskID)
	if root.State != orchestrator.Completed {
		p.Fatalf("the task is %s: %v", root.State, root.Error)
	}
	events := p.events(taskID)
	requests := p.requests(taskID)
	if len(requests) != 1 || requests[0].State != approval.Landed || len(requests[0].Decisions) != 1 {
		p.Errorf("want one landed request with one decision: %+v", requests)
	}
	for typ, want := range map[event.Type]int{event.Requested: 1, event.PatchLanded: 1} {
		if got := count(events, typ, ""); got != want {
			p.Errorf("%d events %s, want %d", got, typ, want)
		}
	}
	if got := count(events, event.Decided, "bob"); got != 1 {
		p.Errorf("%d decisions of bob in the history, want 1", got)
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
