package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
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
			placetest.Places(t, func(t *testing.T, database string) {
				p := placetest.New(t, database, crashTeam)
				p.Must(os.Mkdir(filepath.Join(p.Dir, "signs"), 0o700))
				n := p.Start(p.Config, c.point)
				first, err := n.Submit("kik", "app", "once") // the server may die before it answers
				if c.decide {
					p.Must(err)
					n.Decide(p.Asked(first.ID)) //nolint:errcheck // the server may die before it answers
				}
				n.Died()
				p.NothingLeft()
				recovers(p, first.ID)
			})
		})
	}
}

// recovers starts the server again and checks that the task that was sent under the
// key "once" gets to its end, once.
func recovers(p *placetest.Place, taskID string) {
	p.Helper()
	n := p.Start(p.Config, "")
	again := n.Send("kik", "app", "once")
	if taskID != "" && again != taskID {
		p.Fatalf("the key gives another task, %s, than before, %s", again, taskID)
	}
	n.Through(again)
	p.LandedOnce(again)
	if text := placetest.Git(p.T, p.Repo, "show", "main:hello.txt"); text != "hello" {
		p.Errorf("main has hello.txt with %q", text)
	}
	if commits := placetest.Git(p.T, p.Repo, "rev-list", "--count", "main"); commits != "3" {
		p.Errorf("main has %s commits, want the first, the agent's and the merge", commits)
	}
	if got := placetest.Count(p.Events(again), event.Delegated, ""); got != 2 {
		p.Errorf("%d hand-overs, want 2", got)
	}
	p.NothingLeft(p.Data)
	n.Stop()
}

// TestAServerKilledAtWorkLeavesNoProcess (A39): an agent that is in the middle of its work,
// with children of its own, ends with the server, and its work is done again.
func TestAServerKilledAtWorkLeavesNoProcess(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, crashTeam)
		p.Must(os.Mkdir(filepath.Join(p.Dir, "signs"), 0o700))
		p.Touch("signs/stay")
		n := p.Start(p.Config, "")
		task := n.Send("kik", "app", "once")
		p.Until("coder to be at work", func() bool { return p.Exists("signs/stays") })
		p.Until("the shell, its child and its orphan to be there", func() bool { return p.Marked() >= 3 })
		n.Kill()
		p.NothingLeft()
		p.Must(os.Remove(filepath.Join(p.Dir, "signs/stay")))
		recovers(p, task)
	})
}

// TestADecisionSurvivesTheServerThatTookIt: the yes is committed by a server that
// works on nothing and dies; the next one lands it.
func TestADecisionSurvivesTheServerThatTookIt(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, crashTeam)
		p.Must(os.Mkdir(filepath.Join(p.Dir, "signs"), 0o700))
		n := p.Start(p.Config, "request committed#1")
		task := n.Send("kik", "app", "once")
		n.Died()
		n = p.Start(p.Config, placetest.Idle)
		if status, err := n.Decide(p.Asked(task)); err != nil || status != http.StatusOK {
			t.Fatalf("the yes was answered with status %d, %v", status, err)
		}
		n.Kill()
		recovers(p, task)
	})
}
