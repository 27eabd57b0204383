package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"gatehouse/orchestrator/agent"
)

// watcher is a Host that only listens; a workflow needs no more of it.
type watcher struct {
	agent.Host
	lines []string
}

func (w *watcher) Progress(_ context.Context, text string) error {
	w.lines = append(w.lines, text)
	return nil
}

// team answers hops as the engine would hand the answers back.
type team func(h agent.Hop) agent.Child

// says is an agent that completes with the text, and data when there is some.
func says(text string, data ...string) agent.Child {
	c := agent.Child{State: "completed", Result: &agent.Result{Text: text}}
	if len(data) > 0 {
		c.Result.Data = json.RawMessage(data[0])
	}
	return c
}

// ends is an agent that does not complete.
func ends(state, code, message string) agent.Child {
	return agent.Child{State: state, Error: agent.Fail(code, "%s", message)}
}

// byRef answers each hop as the table says.
func byRef(t *testing.T, answers map[string]agent.Child) team {
	return func(h agent.Hop) agent.Child {
		c, ok := answers[h.Ref]
		if !ok {
			t.Errorf("nobody expected the hop %s → %s", h.Ref, h.To)
			return ends("failed", "test", "unexpected")
		}
		return c
	}
}

// story is all that a workflow did.
type story struct {
	hops   []agent.Hop
	parks  int
	result *agent.Result
	err    error
	lines  []string
}

// refs lists the hops that were made, in order.
func (s story) refs() []string {
	var refs []string
	for _, h := range s.hops {
		refs = append(refs, h.Ref)
	}
	return refs
}

// judged lists the hops that were told what the plan said, and what.
func (s story) judged() []string {
	var all []string
	for _, h := range s.hops {
		switch {
		case h.Handover == nil:
		case h.Handover.Update.Context.Judged.Retry:
			all = append(all, h.Ref+" retry: "+h.Handover.Update.Context.Judged.Reason)
		default:
			all = append(all, fmt.Sprintf("%s validated %t: %s", h.Ref, *h.Handover.Update.Context.Judged.Validated, h.Handover.Update.Context.Judged.Reason))
		}
	}
	return all
}

// text is the task that the hop was given.
func (s story) text(ref string) string {
	for _, h := range s.hops {
		if h.Ref == ref {
			return h.Text
		}
	}
	return "no hop " + ref
}

// follow runs a workflow to its end. Every single state is run again, as after a crash
// between any two commits: with no child of the park there yet, with the first ones,
// with all of them open; each time it must give the same, and hop nothing twice.
func follow(t *testing.T, job agent.Job, answer team) story {
	t.Helper()
	var s story
	r := New(Options{})
	for range 2 * MaxSteps {
		host := &watcher{}
		out, err := r.Run(t.Context(), job, host)
		again, errAgain := r.Run(t.Context(), job, &watcher{})
		if !reflect.DeepEqual(out, again) || !reflect.DeepEqual(err, errAgain) {
			t.Fatalf("run again, it did otherwise:\n%+v %v\n%+v %v", out, err, again, errAgain)
		}
		s.lines = append(s.lines, host.lines...)
		if err != nil || out.Result != nil {
			s.result, s.err = out.Result, err
			return s
		}
		s.parks++
		job.Memo = out.Park.Memo
		for i, h := range out.Park.Hops {
			for _, c := range job.Children {
				if c.Ref == h.Ref {
					t.Fatalf("hop %s was made twice", h.Ref)
				}
			}
			s.hops = append(s.hops, h)
			c := answer(h)
			c.Ref, c.To, c.Text, c.Ended = h.Ref, h.To, h.Text, true
			open := c
			open.State, open.Ended, open.Result, open.Error = "running", false, nil, nil
			waiting := job
			waiting.Children = append(append([]agent.Child{}, job.Children...), open)
			still, err := r.Run(t.Context(), waiting, &watcher{})
			if err != nil || still.Park == nil || len(still.Park.Hops) != len(out.Park.Hops)-i-1 {
				t.Fatalf("with %s open: %+v, %v", h.Ref, still, err)
			}
			job.Children = append(job.Children, c)
		}
	}
	t.Fatal("the workflow did not end")
	return s
}

// job is a task for a workflow with these steps.
func job(steps ...agent.Step) agent.Job {
	return agent.Job{Agent: agent.Spec{Name: "release", Kind: agent.Workflow, Steps: steps}, Text: "the retry loop"}
}
