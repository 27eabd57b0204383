package placetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/sqlstore"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// Variables that make the program of the tests a server that dies; the product knows none.
const (
	KillAt = "GATEHOUSE_TEST_KILL" // "POINT#N": at the N-th time of a trace point
	Idle   = "idle"                // in place of a point: answers, and works on nothing
)

// Greeting is what a server says on standard error before its address.
const Greeting = "Gatehouse is at "

// Node is one running process.
type Node struct {
	*Place
	Cmd   *exec.Cmd
	URL   string
	HTTP  *http.Client
	Ended chan struct{} // closed when the process is gone and all it said is in said
	mu    sync.Mutex
	said  bytes.Buffer
}

// Launch starts the program with a configuration, and returns before it serves.
func (p *Place) Launch(config, point string, args ...string) (*Node, <-chan string) {
	p.Helper()
	return p.LaunchBy(nil, config, point, args...)
}

// LaunchBy is launch by way of another program and its arguments, such as env.
func (p *Place) LaunchBy(by []string, config, point string, args ...string) (*Node, <-chan string) {
	p.Helper()
	path, err := exec.LookPath("gatehouse")
	p.Must(err)
	if os.Getenv(LightEnv) != "" && (point != "" || strings.HasPrefix(p.Database, "sqlite:")) {
		path = Watched(path)
	}
	line := slices.Concat(by, []string{path, "serve"}, args)
	n := &Node{Place: p, Cmd: exec.Command(line[0], line[1:]...), HTTP: http.DefaultClient, Ended: make(chan struct{})}
	n.Cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir, "TMPDIR=" + os.TempDir(), "GATEHOUSE_CONFIG=" + config, KillAt + "=" + point,
		LightEnv + "=" + os.Getenv(LightEnv), "GORACE=" + NoSleep}
	n.Cmd.Dir = p.Dir
	n.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that is cut off leaves no server
	stderr, err := n.Cmd.StderrPipe()
	p.Must(err)
	p.Must(n.Cmd.Start())
	address := make(chan string, 1)
	go func() {
		defer close(n.Ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			n.mu.Lock()
			n.said.WriteString(lines.Text() + "\n")
			n.mu.Unlock()
			if at, ok := strings.CutPrefix(lines.Text(), Greeting); ok {
				address <- at
			}
		}
		n.Cmd.Wait() //nolint:errcheck // code tells how it ended
	}()
	p.Cleanup(func() {
		n.Cmd.Process.Kill() //nolint:errcheck // it may be gone
		<-n.Ended
		if strings.Contains(n.Log(), "DATA RACE") || p.Failed() {
			p.Errorf("%s said:\n%s", filepath.Base(config), n.Log())
		}
	})
	return n, address
}

// Start starts the node with a configuration and waits until it serves. With a point
// it kills itself there.
func (p *Place) Start(config, point string) *Node {
	p.Helper()
	n, address := p.Launch(config, point)
	select {
	case n.URL = <-address:
	case <-n.Ended:
		p.Fatalf("the server ended with code %d instead of serving", n.Code())
	case <-time.After(LongEnough):
		p.Fatal("the server does not serve")
	}
	return n
}

// LongEnough is how long a test waits for what must come; a loaded machine is slow.
const LongEnough = 60 * time.Second

// Log is what the process has said so far.
func (n *Node) Log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.said.String()
}

// Code waits for the end and returns the exit code, -1 after a signal.
func (n *Node) Code() int {
	n.Helper()
	select {
	case <-n.Ended:
	case <-time.After(LongEnough):
		n.Fatal("the process does not end")
	}
	return n.Cmd.ProcessState.ExitCode()
}

// Died waits until the process has killed itself.
func (n *Node) Died() {
	n.Helper()
	code := n.Code()
	if status, ok := n.Cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		n.Fatalf("the process ended with code %d and was not killed", code)
	}
}

// Kill ends the process as kill -9 does.
func (n *Node) Kill() {
	n.Helper()
	n.Must(n.Cmd.Process.Kill())
	<-n.Ended
}

// Stop ends the process as a service manager does.
func (n *Node) Stop() {
	n.Helper()
	n.Must(n.Cmd.Process.Signal(syscall.SIGTERM))
	if code := n.Code(); code != 0 {
		n.Errorf("SIGTERM ended the server with code %d", code)
	}
}

// Call sends one request with a token and decodes the answer where into is not nil.
func (n *Node) Call(method, path, token string, body, into any) (int, error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(n.Context(), method, n.URL+path, in)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := n.HTTP.Do(req)
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

// Text reads an answer that is no JSON.
func (n *Node) Text(path, token string, into io.Writer) (int, error) {
	req, err := http.NewRequestWithContext(n.Context(), http.MethodGet, n.URL+path, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := n.HTTP.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(into, res.Body)
	return res.StatusCode, err
}

// Submit sends a task as ann, under a key.
func (n *Node) Submit(agent, repository, key string) (wire.Submitted, error) {
	var s wire.Submitted
	status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: agent, Text: "Do " + key, Repository: repository, Key: key}, &s)
	if err == nil && status != http.StatusAccepted && status != http.StatusOK {
		err = fmt.Errorf("the task was refused with status %d", status)
	}
	return s, err
}

// Send is submit where nothing may go wrong; it returns the task's id.
func (n *Node) Send(agent, repository, key string) string {
	n.Helper()
	s, err := n.Submit(agent, repository, key)
	n.Must(err)
	return s.ID
}

// Decide gives bob's yes to what a request shows, with every tick.
func (n *Node) Decide(r approval.Request) (int, error) {
	return n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", n.Approver, wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest, Revision: r.Revision.N, Ticked: approval.Ticks(r)}, nil)
}

// Through approves what a task asks for on this node until the task has ended, and
// returns its root.
func (n *Node) Through(taskID string) orchestrator.Delegation {
	n.Helper()
	var root orchestrator.Delegation
	n.Until("the end of "+taskID, func() bool {
		for _, r := range n.Requests(taskID, approval.Pending) {
			if status, err := n.Decide(r); err != nil || status != http.StatusOK {
				n.Fatalf("the yes was answered with status %d, %v", status, err)
			}
		}
		root = n.Root(taskID)
		return root.State.Ended()
	})
	return root
}

// Cli runs one command of the program against n as bob, and returns all that it said.
func (p *Place) Cli(n *Node, args ...string) (string, int) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "gatehouse", args...)
	cmd.Dir = p.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir, "GATEHOUSE_URL=" + n.URL, "GATEHOUSE_TOKEN=" + p.Approver, "GORACE=" + NoSleep}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// SignedIn makes the code of a one-time link for a person; the store gets only its hash.
func SignedIn(ctx context.Context, s *sqlstore.Store, u people.User) (string, error) {
	code, hash := signin.NewLinkCode()
	l := people.SigninLink{Hash: hash, UserID: u.ID, ExpiresAt: time.Now().Add(time.Minute)}
	return code, s.CreateSigninLink(ctx, "test", l)
}
