package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/web/wire"

	"golang.org/x/sync/errgroup"
)

// Variables that make the test binary a server that dies; the product knows none.
const (
	killAt = "GATEHOUSE_TEST_KILL" // "POINT#N": at the N-th time of a trace point
	idle   = "idle"                // in place of a point: answers, and works on nothing
)

// gatehouse is the program as the tests start it: the product, or one that dies. What either starts of itself, for each
// run and each call of an agent, is the program without the race detector.
func gatehouse() {
	if light := os.Getenv(placetest.LightEnv); light != "" {
		executable = func() (string, error) { return light, nil }
	}
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
	site, err := h.arrive(ctx, l, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s%s\n", greeting, "http://"+l.Addr().String())
	if point != idle {
		return h.work(ctx, site, l)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.store.Run(ctx) })
	g.Go(func() error { return site.Serve(ctx, l) })
	return g.Wait()
}

// greeting is what a server says on standard error before its address.
const greeting = "Gatehouse is at "

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
	if os.Getenv(placetest.LightEnv) != "" && strings.HasPrefix(p.database, "sqlite:") {
		path = placetest.Watched(path)
	}
	line := slices.Concat(by, []string{path, "serve"}, args)
	n := &node{place: p, cmd: exec.Command(line[0], line[1:]...), http: http.DefaultClient, ended: make(chan struct{})}
	n.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + os.TempDir(), "GATEHOUSE_CONFIG=" + config, killAt + "=" + point,
		placetest.LightEnv + "=" + os.Getenv(placetest.LightEnv), "GORACE=" + placetest.NoSleep}
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
func (n *node) submit(agent, repository, key string) (wire.Submitted, error) {
	var s wire.Submitted
	status, err := n.call(http.MethodPost, "/api/v1/tasks", n.asker, wire.Submission{Agent: agent, Text: "Do " + key, Repository: repository, Key: key}, &s)
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

// decide gives bob's yes to what a request shows, with every tick.
func (n *node) decide(r approval.Request) (int, error) {
	return n.call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", n.approver, wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest, Revision: r.Revision.N, Ticked: approval.Ticks(r)}, nil)
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
