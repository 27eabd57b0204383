package orchestrator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
)

// Whoever wants a landing tried again that is being tried has what they want: that is no
// error, and nothing changes. One that waits for a person is taken up by it.
func TestARetryOfALanding(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("new.txt", "new\n"))
		reached, letGo := w.held("landing planned")
		w.start()
		root := w.send("coder", "write")
		r := w.request(root.TaskID, 1)
		w.git("branch", "-m", "main", "away") // a branch that is gone does not come back by itself
		w.approve(r)
		w.until(root.ID, "held up", func(d orchestrator.Delegation) bool {
			return d.Work.Problem != "" && d.Holder == "" && d.ReadyAt.Sub(w.now()) > 24*time.Hour
		})
		w.git("branch", "-m", "away", "main")
		d, err := w.engine.Retry(t.Context(), root.ID, w.ann)
		if err != nil || d.State != orchestrator.Landing || d.LandsNow() {
			t.Fatalf("the retry of a held landing: %s held by %q, %v", d.State, d.Holder, err)
		}
		<-reached
		again := func() int {
			return strings.Count(w.history(root.TaskID), "landing is tried again")
		}
		before := again()
		for name, ask := range map[string]func(context.Context, string, string) (orchestrator.Delegation, error){"land": w.engine.LandAgain, "retry": func(ctx context.Context, id, _ string) (orchestrator.Delegation, error) {
			return w.engine.Retry(ctx, id, w.ann)
		}} {
			if d, err := ask(t.Context(), root.ID, "ann"); err != nil || !d.LandsNow() {
				t.Errorf("%s while it is tried: %s held by %q, %v", name, d.State, d.Holder, err)
			}
		}
		if before != 1 || again() != 1 {
			t.Errorf("it was tried again %d times, then %d\n%s", before, again(), w.history(root.TaskID))
		}
		letGo()
		w.state(root.ID, orchestrator.Completed)
		if n := w.count(root.TaskID, event.PatchLanded); n != 1 {
			t.Errorf("it landed %d times", n)
		}
		if _, err := w.engine.Retry(t.Context(), root.ID, w.ann); orchestrator.CodeOf(err) != orchestrator.CodeEnded {
			t.Errorf("a retry of what has landed: %v", err)
		}
	})
}

// Whoever has only the id of a task means the landings below it that are held up: they are
// tried again, and the yes stands. Where none is, it is said what the task waits for.
func TestARetryOfATaskTriesTheLandingsBelowIt(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "lead"}, agent.Spec{Name: "coder", Repository: "app"}) // coder's change is its own
		w.script("lead", agenttest.HandOn("coder"))
		w.script("coder", writes("new.txt", "new\n"))
		w.start()
		root := w.sendTo("lead", "have it written")
		r := w.request(root.TaskID, 1)
		_, err := w.engine.Retry(t.Context(), root.TaskID, w.ann)
		if orchestrator.CodeOf(err) != orchestrator.CodeNotEnded || !strings.Contains(err.Error(), "coder is awaiting approval") || strings.Contains(err.Error(), "Cancel") {
			t.Errorf("the retry of what waits for people: %v", err)
		}
		w.git("branch", "-m", "main", "away")
		w.approve(r)
		w.until(r.DelegationID, "held up", func(d orchestrator.Delegation) bool {
			return d.Work.Problem != "" && d.Holder == "" && d.ReadyAt.Sub(w.now()) > 24*time.Hour
		})
		w.git("branch", "-m", "away", "main")
		d, err := w.engine.Retry(t.Context(), root.TaskID, w.ann)
		if err != nil || d.ID != r.DelegationID || d.State != orchestrator.Landing {
			t.Fatalf("the retry of the task: %s is %s, %v", d.ID, d.State, err)
		}
		w.state(root.ID, orchestrator.Completed)
		if n := w.count(root.TaskID, event.PatchLanded); n != 1 || w.count(root.TaskID, event.Requested) != 1 {
			t.Errorf("it landed %d times\n%s", n, w.history(root.TaskID))
		}
	})
}
