package agenttest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
)

// soon is how long a run may take to end after its context ended.
const soon = 3 * time.Second

// Case is a job that makes an agent of the kind under test behave in one way.
type Case struct {
	Job  agent.Job
	Text string // the answer that must come, when one must
}

// Behaviours says how the kind under test is brought to each behaviour. A nil one
// does not exist for the kind, and is not asked for.
type Behaviours struct {
	// Answers ends with Case.Text.
	Answers func(t *testing.T) Case
	// Fails ends with a *agent.Failure.
	Fails func(t *testing.T) Case
	// Progresses shows Case.Text as progress.
	Progresses func(t *testing.T) Case
	// Hangs works until its context ends. It shows progress once it has begun.
	Hangs func(t *testing.T) Case
	// Left returns what a run of Hangs left running; the suite polls it.
	Left func() []string
	// Delegates hands "look" to "helper" and answers with what helper said.
	Delegates func(t *testing.T) Case
	// Refused hands "look" to "helper" and answers with a text that holds the code of
	// the refusal.
	Refused func(t *testing.T) Case
}

// Suite is the contract that every kind of agent fulfils.
func Suite(t *testing.T, newRunner func(t *testing.T) agent.Runner, b Behaviours) {
	run := func(name string, makeCase func(*testing.T) Case, story func(*testing.T, agent.Runner, Case)) {
		if makeCase != nil {
			t.Run(name, func(t *testing.T) { story(t, newRunner(t), makeCase(t)) })
		}
	}
	run("it answers", b.Answers, answers)
	run("runs at once do not mix", b.Answers, func(t *testing.T, r agent.Runner, _ Case) { concurrent(t, r, b.Answers) })
	run("a failure has a code and a sentence", b.Fails, fails)
	run("progress reaches the host", b.Progresses, progresses)
	run("the end of the context ends it and all it started", b.Hangs, func(t *testing.T, r agent.Runner, c Case) { ends(t, r, c, b.Left) })
	run("a host that has stopped ends it", b.Progresses, stopped)
	run("the child's answer comes back", b.Delegates, delegates)
	run("a child's failure comes back as data", b.Refused, childFails)
	run("a refusal comes back as data", b.Refused, refused)
}

// Drive runs a job until its result, making hops and waiting for children where
// the agent parks.
//
// An agent that stores turns is given those that the host has and the children that no turn
// has carried; the others are given all children.
func Drive(ctx context.Context, r agent.Runner, job agent.Job, host *Host) (agent.Result, error) {
	for {
		if r.Traits().Turns {
			job.Turns, job.Children = host.Turns(), host.Untaken()
		}
		out, err := r.Run(ctx, job, host)
		switch {
		case err != nil:
			return agent.Result{}, err
		case (out.Result == nil) == (out.Park == nil):
			return agent.Result{}, errors.New("exactly one of Result and Park must be set")
		case out.Result != nil:
			return *out.Result, nil
		}
		job.Memo = out.Park.Memo
		for _, hop := range out.Park.Hops {
			child, err := host.Delegate(ctx, hop)
			if err == nil && !child.Ended {
				child, err = host.Await(ctx, child.ID)
			}
			if err != nil {
				return agent.Result{}, err
			}
			job.Children = append(job.Children, child)
		}
		if out.Park.ForSpawned && len(out.Park.Hops) == 0 {
			if err := host.AwaitSpawned(ctx); err != nil {
				return agent.Result{}, err
			}
		}
	}
}

func answers(t *testing.T, r agent.Runner, c Case) {
	res, err := Drive(t.Context(), r, c.Job, NewHost())
	if err != nil || res.Text != c.Text {
		t.Fatalf("answer %q, %v; want %q", res.Text, err, c.Text)
	}
}

func concurrent(t *testing.T, r agent.Runner, makeCase func(*testing.T) Case) {
	var wg sync.WaitGroup
	for range 4 {
		c := makeCase(t)
		wg.Go(func() {
			res, err := Drive(t.Context(), r, c.Job, NewHost())
			if err != nil || res.Text != c.Text {
				t.Errorf("answer %q, %v; want %q", res.Text, err, c.Text)
			}
		})
	}
	wg.Wait()
}

func fails(t *testing.T, r agent.Runner, c Case) {
	_, err := Drive(t.Context(), r, c.Job, NewHost())
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Code == "" || f.Message == "" {
		t.Fatalf("ended with %v; want a *agent.Failure with a code and a sentence", err)
	}
}

func progresses(t *testing.T, r agent.Runner, c Case) {
	host := NewHost()
	if _, err := Drive(t.Context(), r, c.Job, host); err != nil {
		t.Fatal(err)
	}
	if shown, _ := host.Shown(); !strings.Contains(shown, c.Text) {
		t.Fatalf("progress %q lacks %q", shown, c.Text)
	}
}

func ends(t *testing.T, r agent.Runner, c Case, left func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	host := NewHost()
	done := make(chan error, 1)
	go func() {
		_, err := Drive(ctx, r, c.Job, host)
		done <- err
	}()
	Eventually(t, "it began", func() bool { shown, _ := host.Shown(); return shown != "" })
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("ended with %v; want the context's error", err)
		}
	case <-time.After(soon):
		t.Fatalf("still running %s after its context ended", soon)
	}
	if left != nil {
		if l := left(); len(l) > 0 {
			t.Fatalf("left running: %v", l)
		}
	}
}

func stopped(t *testing.T, r agent.Runner, c Case) {
	host := NewHost()
	host.Err = func(method string) error {
		if method == "Progress" {
			return agent.ErrStopped
		}
		return nil
	}
	if _, err := Drive(t.Context(), r, c.Job, host); !errors.Is(err, agent.ErrStopped) {
		t.Fatalf("ended with %v; want ErrStopped", err)
	}
}

func delegates(t *testing.T, r agent.Runner, c Case) {
	host := NewHost()
	host.Child = func(agent.Hop) agent.Child {
		return agent.Child{ID: "dlg_helper", State: "queued"}
	}
	done := make(chan struct{})
	var res agent.Result
	var err error
	go func() {
		defer close(done)
		res, err = Drive(t.Context(), r, c.Job, host)
	}()
	Eventually(t, "the hop was made", func() bool { return len(host.Hops()) == 1 })
	host.End("dlg_helper", "it looks fine", nil)
	<-done
	if err != nil || !strings.Contains(res.Text, "it looks fine") {
		t.Fatalf("answer %q, %v; want the child's", res.Text, err)
	}
	if hop := host.Hops()[0]; hop.To != "helper" || !strings.Contains(hop.Text, "look") {
		t.Fatalf("handed %q to %q", hop.Text, hop.To)
	}
}

func childFails(t *testing.T, r agent.Runner, c Case) {
	host := NewHost()
	host.Child = func(agent.Hop) agent.Child {
		return agent.Child{State: "failed", Ended: true, Error: agent.Fail(agent.CodeExit, "helper ended with code 3.")}
	}
	dataNotCrash(t, r, c, host, agent.CodeExit)
}

func refused(t *testing.T, r agent.Runner, c Case) {
	host := NewHost()
	host.Child = func(agent.Hop) agent.Child {
		return agent.Child{State: agent.Refused, Ended: true, Error: agent.Fail("cycle", "helper is already in the chain.")}
	}
	dataNotCrash(t, r, c, host, "cycle")
}

// dataNotCrash holds K11: what goes wrong with a hop is for the caller to read.
func dataNotCrash(t *testing.T, r agent.Runner, c Case, host *Host, code string) {
	t.Helper()
	res, err := Drive(t.Context(), r, c.Job, host)
	if err != nil || !strings.Contains(res.Text, code) {
		t.Fatalf("answer %q, %v; want one with %q", res.Text, err, code)
	}
}

// Eventually polls until ok, for at most 10 seconds.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}
