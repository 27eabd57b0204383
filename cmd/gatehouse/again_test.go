package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
)

// againTeam is an agent that makes its first revision at once, and a later one when it is let.
const againTeam = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    command: [sh, -c, 'test "$GATEHOUSE_REVISION" = 1 || until [ -e DIR/go ]; do sleep 0.05; done; cat > "note-$GATEHOUSE_TASK_ID.txt"']
`

// running is the command line while it works.
type running struct {
	*placetest.Place
	cmd  *exec.Cmd
	mu   sync.Mutex
	said bytes.Buffer
	gone chan struct{}
}

// Write takes what it prints.
func (c *running) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Write(b)
}

func (c *running) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String()
}

// begin runs the command line with bob's token and does not wait.
func begin(p *placetest.Place, n *placetest.Node, args ...string) *running {
	p.Helper()
	c := &running{Place: p, cmd: exec.Command("gatehouse", args...), gone: make(chan struct{})}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = p.Dir, c, c
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir, "GATEHOUSE_URL=" + n.URL, "GATEHOUSE_TOKEN=" + p.Approver, "GORACE=" + placetest.NoSleep}
	p.Must(c.cmd.Start())
	go func() {
		defer close(c.gone)
		c.cmd.Wait() //nolint:errcheck // end says how it ended
	}()
	p.Cleanup(func() {
		c.cmd.Process.Kill() //nolint:errcheck // it may be gone
		<-c.gone
	})
	return c
}

// says waits until it has printed something.
func (c *running) says(words string) {
	c.Helper()
	c.Until("the command to say "+words, func() bool { return strings.Contains(c.log(), words) })
}

// end waits for its end and returns all that it has printed with its exit code.
func (c *running) end() (string, int) {
	c.Helper()
	select {
	case <-c.gone:
	case <-time.After(placetest.LongEnough):
		c.Fatalf("the command does not end:\n%s", c.log())
	}
	return c.log(), c.cmd.ProcessState.ExitCode()
}

// between is a way to the server on which something happens before a verdict gets there, and
// its answer comes back once the server is so far.
func between(n *placetest.Node, happens func(), soFar func() bool) *placetest.Node {
	n.Helper()
	to, err := url.Parse(n.URL)
	n.Must(err)
	isVerdict := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/decision") }
	way := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(a *http.Response) error {
			for late := time.Now().Add(placetest.LongEnough / 3); isVerdict(a.Request) && !soFar(); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(late) {
					n.Error("the server does not get so far")
					break
				}
			}
			return nil
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isVerdict(r) {
			happens()
		}
		way.ServeHTTP(w, r)
	}))
	n.Cleanup(s.Close)
	return &placetest.Node{Place: n.Place, URL: s.URL}
}

// movedUnder is the event's sentence of a yes that became stale because of the task's file.
func movedUnder(task string) string {
	return "main moved and this change no longer applies as approved: note-" + task + ".txt."
}

// TestTheCommandLineSaysThatAYesIsMadeAgain: the branch changes between the look of
// `gatehouse approve` and its yes. The command ends with 1 and says that nothing landed and who
// works on it again, or, where that is done already, as which revision it is asked again; who
// waits for the task is told both.
func TestTheCommandLineSaysThatAYesIsMadeAgain(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, againTeam)
		n := p.Start(p.Config, "")
		task := n.Send("coder", "app", "again")
		r := p.Asked(task)
		waits := begin(p, n, "wait", task, "--timeout", "2m")
		waits.says("gatehouse review")

		moved := movedUnder(task)
		out, code := p.Cli(between(n, func() { overtake(p, task) }, func() bool { return p.Root(task).State == orchestrator.Running }),
			"approve", r.ID, "--digest", r.Revision.Digest)
		worked := moved + " coder works on it again; gatehouse wait " + console.Short(task)
		if code != 1 || !strings.Contains(out, "Nothing landed: main changed note-"+task+".txt meanwhile.") || !strings.Contains(out, worked) {
			t.Errorf("approve: exit %d, %q is not in\n%s", code, worked, out)
		}
		waits.says(worked)
		p.Touch("go")
		asked := moved + " Asked again as revision 2; gatehouse review " + console.Short(r.ID)
		waits.says(asked)
		again := p.Revised(task, 2)
		if out, code := p.Cli(n, "approve", r.ID, "--digest", again.Revision.Digest); code != 0 || strings.Contains(out, "sked again") {
			t.Errorf("approve of revision 2: exit %d\n%s", code, out)
		}
		if out, code := waits.end(); code != 0 || strings.Count(out, worked) != 1 || strings.Count(out, asked) != 1 || !strings.Contains(out, "completed") {
			t.Errorf("wait: exit %d\n%s", code, out)
		}

		// Who answers late hears of the question that there is.
		task = n.Send("coder", "app", "late")
		r = p.Asked(task)
		moved = movedUnder(task)
		out, code = p.Cli(between(n, func() { overtake(p, task) }, func() bool {
			all := p.Requests(task, approval.Pending)
			return len(all) == 1 && all[0].Revision.N == 2
		}), "approve", r.ID, "--digest", r.Revision.Digest)
		if asked := moved + " Asked again as revision 2; gatehouse review " + console.Short(r.ID); code != 1 || !strings.Contains(out, asked) {
			t.Errorf("approve: exit %d, %q is not in\n%s", code, asked, out)
		}
		n.Stop()
	})
}
