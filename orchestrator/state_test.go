package orchestrator

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawn is the diagram of doc.go as a reader copies it out, arrow by arrow. Cancelled
// and failed stand at its foot and are reached from every live state.
var drawn = []struct {
	from  State
	arrow string
	to    State
}{
	{Queued, "claim", Running},
	{Running, "delegate", Waiting},
	{Waiting, "last child ended", Queued},
	{Running, "lease lost", Queued},
	{Running, "answer, nothing changed", Completed},
	{Running, "tree changed", Checking},
	{Checking, "", AwaitingApproval},
	{AwaitingApproval, "yes", Landing},
	{AwaitingApproval, "no", Rejected},
	{AwaitingApproval, "late", Expired},
	{AwaitingApproval, "changes asked:", Queued},
	{AwaitingApproval, "revised", Checking},
	{Landing, "base moved: asked again", Checking},
	{Landing, "", Completed},
}

// undrawn are the moves that the diagram leaves out, each with its reason.
var undrawn = []struct {
	from, to State
	why      string
}{
	{Queued, Waiting, "a run that was woken hands on again before it took its slot"},
	{Waiting, Running, "the agent ended while children of it were open"},
	{Checking, Landing, "a rule says yes, or the yes that made the revision is enough"},
	{Checking, Rejected, "a rule says no"},
	{Landing, Queued, "the base moved so that the agent must work again"},
	{Queued, AwaitingApproval, "the yes to a hand-over is withdrawn before anybody works on it"},
	{Running, Rejected, "the no was to what it handed on, and nothing was to go on then"},
	{Running, Expired, "nobody decided on a hand-over below, and its rule ends the task"},
	{Queued, Rejected, "a no to a hand-over below ends the task"},
	{Queued, Expired, "nobody decided on a hand-over below, and its rule ends the task"},
	{Waiting, Rejected, "a no to a hand-over below ends the task"},
	{Waiting, Expired, "nobody decided on a hand-over below, and its rule ends the task"},
	{Landing, AwaitingApproval, "the yes is withdrawn before the intent"},
}

// diagram cuts the drawing out of doc.go.
func diagram(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			lines = append(lines, rest)
		}
	}
	return strings.Join(lines, "")
}

func TestTheDiagramAndTheMovesAreOne(t *testing.T) {
	d := diagram(t)
	for _, s := range States() {
		if !regexp.MustCompile(`\b` + string(s) + `\b`).MatchString(d) {
			t.Errorf("doc.go does not draw %s", s)
		}
	}
	said := map[State][]State{}
	for _, m := range drawn {
		if !strings.Contains(d, m.arrow) {
			t.Errorf("doc.go no longer has the arrow %q from %s to %s", m.arrow, m.from, m.to)
		}
		said[m.from] = append(said[m.from], m.to)
	}
	for _, m := range undrawn {
		if m.why == "" {
			t.Errorf("%s → %s has no reason", m.from, m.to)
		}
		said[m.from] = append(said[m.from], m.to)
	}
	for _, from := range States() {
		for _, to := range States() {
			if got, want := slices.Contains(moves[from], to), slices.Contains(said[from], to); got != want {
				t.Errorf("%s → %s: moves has it %v, the diagram %v", from, to, got, want)
			}
		}
	}
	// Every word of the diagram that looks like a state is one.
	for _, w := range regexp.MustCompile(`[a-z]+_[a-z]+`).FindAllString(d, -1) {
		if !slices.Contains(States(), State(w)) {
			t.Errorf("doc.go draws %s, which is no state", w)
		}
	}
}

// TestRandomWalksStayInTheDiagram walks from queued by whatever MayMove allows.
// Whatever the walk, an ended state is left only as Retry leaves it, to be queued,
// only what a worker holds completes, nothing lands that did not wait for a yes or pass a
// rule after its checks, and no yes becomes a no.
func TestRandomWalksStayInTheDiagram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, path := Queued, []State{Queued}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			to := rapid.SampledFrom(States()).Draw(t, "to")
			if !MayMove(s, to) {
				continue
			}
			switch {
			case s.Ended() && to != Queued:
				t.Fatalf("%v: %s is left for %s", path, s, to)
			case to == Completed && s != Running && s != Landing:
				t.Fatalf("%v: %s completes", path, s)
			case to == Landing && s != AwaitingApproval && s != Checking:
				t.Fatalf("%v: %s lands without a question", path, s)
			case (to == Rejected || to == Expired) && s == Landing: // a no below may end whoever else works or waits
				t.Fatalf("%v: people said yes, yet it is %s", path, to)
			case to == s:
				t.Fatalf("%v: %s follows itself", path, s)
			}
			s, path = to, append(path, to)
		}
	})
}

func TestEveryLiveStateCanEnd(t *testing.T) {
	for _, s := range States() {
		if s.Ended() {
			if len(moves[s]) > 0 {
				t.Errorf("%s has ended and yet moves to %v", s, moves[s])
			}
			continue
		}
		if !MayMove(s, Cancelled) || !MayMove(s, Failed) || len(moves[s]) == 0 {
			t.Errorf("%s is a dead end", s)
		}
	}
}
