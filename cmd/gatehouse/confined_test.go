package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// confinedTeam are agents that go over each of their limits, one that must be confined, and
// one that fills the disk.
const confinedTeam = `
engine: {workers: 4, agent_defaults: {limits: {memory: 1G, processes: 100}}}
repositories:
  app: {path: "REPO", branch: main}
agents:
  fat: {kind: command, repository: app, limits: {memory: 40M}, command: [sh, -c, "x=$(head -c 90000000 /dev/zero | tr '\\0' x); sleep 600"]}
  many: {kind: command, repository: app, limits: {processes: 8}, command: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 600 & done; wait']}
  long: {kind: command, repository: app, limits: {files: 2M}, command: [sh, -c, 'for i in 1 2 3; do head -c 1000000 /dev/zero > f$i; done']}
  good: {kind: command, repository: app, network: off, sandbox: required, command: [sh, -c, 'echo done > done; echo done']}
  nosy: {kind: command, repository: app, command: [sh, -c, 'touch DIR/here; cat DIR/one.yaml || echo it sees nothing'], writable: [DIR]}
  greedy: {kind: command, repository: app, command: [sh, -c, 'head -c 900000000 /dev/zero > big']}
  holder: {kind: command, repository: app, command: [sh, -c, 'head -c 45000000 /dev/zero > big; touch DIR/signs/holds; until test -e DIR/enough; do sleep 0.05; done; rm big'], writable: [DIR/signs]}
hooks:
  - {name: prying, at: before_call, command: ["true"], writable: [DIR]}
approval: {four_eyes: false}
`

// What a run had and what it hit is on its page, by the code that the program's end has.
func TestARunOverItsLimitsSaysWhichOne(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, confinedTeam)
		n := p.Start(p.Config, "")
		ann := n.Browser("ann")
		for name, want := range map[string][]string{
			"fat":  {agent.CodeMemory, "40 MB are allowed", "40 MB of memory, 100 processes"},
			"many": {agent.CodeProcesses, "8 are allowed", "1 GB of memory, 8 processes"},
			"long": {agent.CodeDisk, "2 MB are allowed", "1 GB of memory, 100 processes, 2 MB of files"},
		} {
			task := n.Send(name, "app", name)
			root := n.Through(task)
			if root.State != orchestrator.Failed || root.Error == nil || root.Error.Code != want[0] || !strings.Contains(root.Error.Message, want[1]) {
				t.Errorf("%s is %s: %v", name, root.State, root.Error)
			}
			if root.Work.Sandbox == "" {
				t.Errorf("nobody knows what confined %s", name)
			}
			page := n.Page(ann, "/delegations/"+root.ID)
			for _, words := range []string{want[0], want[2], "used at most", root.Work.Sandbox} {
				if !strings.Contains(page, words) {
					t.Errorf("the page of %s lacks %q", name, words)
				}
			}
		}
		// Where nothing confines a program, who must be confined does not run.
		root := n.Through(n.Send("good", "app", "good"))
		switch {
		case root.Work.Sandbox == "none" || root.Error != nil:
			if root.Error == nil || root.Error.Code != agent.CodeNoSandbox {
				t.Errorf("good is %s in %q: %v", root.State, root.Work.Sandbox, root.Error)
			}
		case root.Work.Confined == nil || root.Work.Confined.Network != agent.NetworkOff:
			t.Errorf("good had %+v", root.Work.Confined)
		}
		if page := n.Page(ann, "/agents/good"); !strings.Contains(page, "1 GB of memory, 100 processes") || !strings.Contains(page, "a burst between two looks passes") {
			t.Error("the agent's page does not say its limits and how they hold")
		}
	})
}

// A folder that may be written has the server's configuration in it: nothing of that is shown.
// Landlock alone cannot hide it there, so the program is not started, and doctor says so with
// the place in the configuration.
func TestAWritableFolderShowsNothingThatIsHidden(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), confinedTeam)
	n := p.Start(p.Config, "")
	root := n.Through(n.Send("nosy", "app", "nosy"))
	page := n.Page(n.Browser("ann"), "/delegations/"+root.ID)
	out, _ := p.Cli(n, "--config", p.Config, "doctor")
	if strings.Contains(page, p.Database) {
		t.Error("the page has what the configuration says")
	}
	if root.Error == nil { // bubblewrap puts an empty file in its place
		if root.Work.Sandbox != "bubblewrap" || root.Result == nil || !strings.Contains(root.Result.Text, "it sees nothing") && root.Result.Text != "" || !p.Exists("here") {
			t.Errorf("in %s it is %s: %+v", root.Work.Sandbox, root.State, root.Result)
		}
		if strings.Contains(out, "is hidden") {
			t.Errorf("doctor says\n%s", out)
		}
		return
	}
	for _, words := range []string{"nosy may write " + p.Dir, "is hidden from programs", "Install bubblewrap"} {
		if !strings.Contains(root.Error.Message, words) || !strings.Contains(page, words) || !strings.Contains(out, words) {
			t.Errorf("%q is not on the page, in the error or in what doctor says: %v\n%s", words, root.Error, out)
		}
	}
	if root.Error.Code != agent.CodeStart || p.Exists("here") || !strings.Contains(out, "one.yaml:") || !strings.Contains(out, "prying may write "+p.Dir) {
		t.Errorf("%v, or it ran, or doctor does not say where, or not of the hook:\n%s", root.Error, out)
	}
}

// A folder of runs on a small disk of its own is emptied at the start and never removed; a
// run that fills it fails with its reason, the server says that it is not ready, and all of
// it heals when the run is gone.
func TestTheFolderOfRunsMayBeADiskOfItsOwn(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), confinedTeam)
	runs := filepath.Join(p.Data, "runs")
	p.Must(os.MkdirAll(filepath.Join(p.Dir, "signs"), 0o700))
	p.Must(os.MkdirAll(filepath.Join(runs, "left-1", "checkout"), 0o700))
	before, err := os.Stat(runs)
	p.Must(err)
	mount := []string{"unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=64m none "$0" && mkdir "$0/left-2" && exec "$@"`, runs}
	if out, err := exec.Command(mount[0], append(mount[1:], "true")...).CombinedOutput(); err != nil {
		t.Logf("this machine mounts nothing for a test (%s); the folder is an ordinary one", out)
		n := p.Start(p.Config, "")
		after, err := os.Stat(runs)
		p.Must(err)
		if entries, err := os.ReadDir(runs); err != nil || len(entries) > 0 || !os.SameFile(before, after) {
			t.Errorf("%v, %v; the same folder: %v", entries, err, os.SameFile(before, after))
		}
		n.Through(n.Send("good", "app", "good"))
		return
	}
	n, address := p.LaunchBy(mount, p.Config, "")
	select {
	case n.URL = <-address:
	case <-n.Ended:
		t.Fatalf("the server ended with code %d instead of serving", n.Code())
	case <-time.After(placetest.LongEnough):
		t.Fatal("the server does not serve")
	}
	if got := status(n, "/readyz"); got != http.StatusOK {
		t.Errorf("readyz answers %d", got)
	}
	holder := n.Send("holder", "app", "holder")
	p.Until("the disk to fill", func() bool { return p.Exists("signs/holds") })
	p.Until("the server to say that it is not ready", func() bool { return status(n, "/readyz") == http.StatusServiceUnavailable })
	root := n.Through(n.Send("greedy", "app", "greedy"))
	if root.Error == nil || root.Error.Code != agent.CodeDisk || !strings.Contains(root.Error.Message, "is full") {
		t.Errorf("greedy is %s: %v", root.State, root.Error)
	}
	p.Touch("enough")
	n.Through(holder)
	p.Until("the server to be ready again", func() bool { return status(n, "/readyz") == http.StatusOK })
	if root := n.Through(n.Send("good", "app", "good")); root.State != orchestrator.Completed {
		t.Errorf("after the disk healed: %s, %v", root.State, root.Error)
	}
	if !strings.Contains(n.Log(), "is full") {
		t.Error("the log does not say why the server was not ready")
	}
}
