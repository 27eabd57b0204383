package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/orchestrator/record/event"
)

// crashTeam hands on three deep. The first run of coder may be told to stay for ever,
// with a child and an orphan, by a file. Leases are longer than any test: only a
// restart that takes back what it had itself is fast enough.
const crashTeam = `
engine: {workers: 4, lease: 10m}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f hello.txt"]}
agents:
  kik:
    kind: workflow
    steps: [{id: change, agent: coder, task: "{{.Task}}"}]
  coder:
    kind: command
    repository: app
    delegates_to: [reviewer]
    env: {PLACE: MARK, GORACE: NO_SLEEP}
    writable: ["DIR/signs"]
    command:
      - sh
      - -c
      - |
        if [ -e DIR/signs/stay ]; then
          (setsid sleep 1000 &)
          touch DIR/signs/stays
          sleep 1000
        fi
        echo hello > hello.txt
        gatehouse delegate reviewer "Look at it"
  reviewer:
    kind: command
    repository: app
    analysis_only: true
    approval: auto
    env: {PLACE: MARK}
    command: [cat, hello.txt]
`

// crashes are the points at which the server dies. kik is claimed and run first and
// last, coder second, reviewer third.
var crashes = []struct {
	name, point string
	decide      bool // the point is behind the yes
}{
	{"task committed", "task committed#1", false},
	{"coder claimed", "claimed#2", false},
	{"coder started", "agent started#2", false},
	{"reviewer answered, coder not yet told", "answered#1", false},
	{"coder ended, tree not yet taken", "agent ended#2", false},
	{"tree stored, request not yet", "tree stored#1", false},
	{"request committed", "request committed#1", false},
	{"intent committed", "intent committed#1", true},
	{"ref moved, not yet recorded", "ref moved#1", true},
	{"landed, parent woken and not yet claimed", "landed#1", true},
}

// TestAKilledServerGoesOn: wherever kill -9 strikes, the next start of the server
// brings the task to its one commit by its one decision (A36, P50).
func TestAKilledServerGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			places(t, func(t *testing.T, database string) {
				p := newPlace(t, database, crashTeam)
				p.must(os.Mkdir(filepath.Join(p.dir, "signs"), 0o700))
				n := p.start(p.config, c.point)
				first, err := n.submit("kik", "app", "once") // the server may die before it answers
				if c.decide {
					p.must(err)
					n.decide(p.asked(first.ID)) //nolint:errcheck // the server may die before it answers
				}
				n.died()
				p.nothingLeft()
				p.recovers(first.ID)
			})
		})
	}
}

// recovers starts the server again and checks that the task that was sent under the
// key "once" gets to its end, once.
func (p *place) recovers(taskID string) {
	p.Helper()
	n := p.start(p.config, "")
	again := n.send("kik", "app", "once")
	if taskID != "" && again != taskID {
		p.Fatalf("the key gives another task, %s, than before, %s", again, taskID)
	}
	n.through(again)
	p.landedOnce(again)
	if text := git(p.T, p.repo, "show", "main:hello.txt"); text != "hello" {
		p.Errorf("main has hello.txt with %q", text)
	}
	if commits := git(p.T, p.repo, "rev-list", "--count", "main"); commits != "3" {
		p.Errorf("main has %s commits, want the first, the agent's and the merge", commits)
	}
	if got := count(p.events(again), event.Delegated, ""); got != 2 {
		p.Errorf("%d hand-overs, want 2", got)
	}
	p.nothingLeft(p.data)
	n.stop()
}

// TestAServerKilledAtWorkLeavesNoProcess (A39): an agent that is in the middle of its work,
// with children of its own, ends with the server, and its work is done again.
func TestAServerKilledAtWorkLeavesNoProcess(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, database string) {
		p := newPlace(t, database, crashTeam)
		p.must(os.Mkdir(filepath.Join(p.dir, "signs"), 0o700))
		p.touch("signs/stay")
		n := p.start(p.config, "")
		task := n.send("kik", "app", "once")
		p.until("coder to be at work", func() bool { return p.exists("signs/stays") })
		p.until("the shell, its child and its orphan to be there", func() bool { return p.marked() >= 3 })
		n.kill()
		p.nothingLeft()
		p.must(os.Remove(filepath.Join(p.dir, "signs/stay")))
		p.recovers(task)
	})
}

// TestADecisionSurvivesTheServerThatTookIt: the yes is committed by a server that
// works on nothing and dies; the next one lands it.
func TestADecisionSurvivesTheServerThatTookIt(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, database string) {
		p := newPlace(t, database, crashTeam)
		p.must(os.Mkdir(filepath.Join(p.dir, "signs"), 0o700))
		n := p.start(p.config, "request committed#1")
		task := n.send("kik", "app", "once")
		n.died()
		n = p.start(p.config, idle)
		if status, err := n.decide(p.asked(task)); err != nil || status != http.StatusOK {
			t.Fatalf("the yes was answered with status %d, %v", status, err)
		}
		n.kill()
		p.recovers(task)
	})
}
