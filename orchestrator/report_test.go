package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// What a program tells of its work is in the task's events, bounded and without secrets, and
// whether it asked about its calls is with its run.
func TestWhatAProgramReportsIsStored(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		no := false
		const key = "ghp_0123456789abcdefghijklmnopqrstuvwxyzA"
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			call := agent.ToolCall{ID: "c1", Tool: "Edit", Title: "Edit a.txt", Input: json.RawMessage(`{"path":"a.txt","key":"` + key + `"}`)}
			ended := agent.ToolCall{ID: "c1", Tool: "Edit", Title: "Edit a.txt", Ended: true, OK: true,
				Diffs: []agent.FileDiff{{Path: "a.txt", Old: "one", New: strings.Repeat("two ", 10_000)}}}
			for _, r := range []agent.Report{{Call: &call}, {Plan: []agent.PlanStep{{Text: "read", State: "completed"}, {Text: "write it", State: "in_progress"}}}, {Call: &ended}, {}, {Asked: &no}} {
				if err := host.Report(ctx, r); err != nil {
					return agent.Outcome{}, err
				}
			}
			return agenttest.Done("done"), nil
		})
		w.start()
		root := w.state(w.send("coder", "go").ID, orchestrator.Completed)
		if !root.Work.NeverAsked {
			t.Error("nobody knows that it never asked")
		}
		var said []string
		for _, e := range w.events(root.TaskID) {
			switch d := e.Payload().(type) {
			case event.ToolCalledData, event.PlanChangedData, event.ToolCompletedData:
				said = append(said, event.Sentence(e, event.Words{}))
				if strings.Contains(string(e.Data), key) || len(e.Data) > 8<<10 {
					t.Errorf("stored: %s", e.Data)
				}
				if c, ok := d.(event.ToolCompletedData); ok && (len(c.Diffs) != 1 || c.Diffs[0].Old != "one" || !strings.HasPrefix(c.Diffs[0].New, "two two")) {
					t.Errorf("its changes: %+v", c.Diffs)
				}
			}
		}
		if want := []string{"calls Edit: Edit a.txt", "has done 1 of 2 steps of its plan, now: write it", "Edit: Edit a.txt"}; !slices.Equal(said, want) {
			t.Errorf("said %q", said)
		}
	})
}

// A program's session goes with its work into the next attempt and the next revision, and
// not where the work begins anew.
func TestAProgramsSessionIsKept(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		given := make(chan string, 9)
		n := 0
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			given <- fmt.Sprintf("%d:%s", job.Generation, job.Session)
			n++
			if err := host.KeepSession(ctx, fmt.Sprint("s", n)); err != nil {
				return agent.Outcome{}, err
			}
			if n == 1 {
				return agent.Outcome{}, errors.New("the machine is on fire")
			}
			if f, ok := errors.AsType[*agent.Failure](host.KeepSession(ctx, strings.Repeat("x", 2000))); !ok {
				t.Errorf("an endless name is kept: %v", f)
			}
			return writes("core/a.txt", fmt.Sprint(n))(ctx, job, host)
		})
		w.start()
		root := w.send("coder", "go")
		for i, c := range []struct {
			startOver bool
			want      []string
		}{{false, []string{"0:", "0:s1"}}, {true, []string{"1:s2"}}, {false, []string{"2:"}}} {
			r := w.request(root.TaskID, i+1)
			for _, want := range c.want {
				if got := <-given; got != want {
					t.Errorf("revision %d: the run was given %q, want %q", i+1, got, want)
				}
			}
			b := w.ballot(w.bob, r, approval.RequestChanges)
			b.Comment, b.StartOver = "again", c.startOver
			if _, err := w.gateway.Decide(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-given; got != "3:s4" {
			t.Errorf("the last run was given %q", got)
		}
		r := w.request(root.TaskID, 4)
		if _, err := w.decide(r, approval.Reject, "no"); err != nil {
			t.Fatal(err)
		}
		w.state(root.ID, orchestrator.Rejected)
		if _, err := w.engine.Retry(t.Context(), root.ID, people.User{Name: "ann"}); err != nil {
			t.Fatal(err)
		}
		if got := <-given; got != "4:" {
			t.Errorf("after a retry the run was given %q", got)
		}
	})
}
