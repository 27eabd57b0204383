package agenttest

import (
	"context"
	"slices"
	"sync"

	"gatehouse/orchestrator/agent"
)

// Script is what a Scripted agent does with a job.
type Script func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error)

// Scripted is an agent.Runner that follows a script, for tests of the engine
// without a process. It is safe for concurrent use.
type Scripted struct {
	script Script

	mu      sync.Mutex
	jobs    []agent.Job
	started chan agent.Job
}

var _ agent.Runner = (*Scripted)(nil)

// Traits are those of a program.
func (s *Scripted) Traits() agent.Traits { return agent.Traits{Files: true} }

// Like is a runner that has the traits of another kind.
type Like struct {
	agent.Runner
	Of agent.Traits
}

// Traits implements agent.Runner.
func (l Like) Traits() agent.Traits { return l.Of }

// NewScripted makes an agent that follows the script.
func NewScripted(script Script) *Scripted {
	return &Scripted{script: script, started: make(chan agent.Job, 1024)}
}

// Run records the job and follows the script.
func (s *Scripted) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	s.mu.Lock()
	s.jobs = append(s.jobs, job)
	s.mu.Unlock()
	select {
	case s.started <- job:
	default:
	}
	return s.script(ctx, job, host)
}

// Runs returns how often Run was called.
func (s *Scripted) Runs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs)
}

// Jobs returns the jobs that Run was called with, oldest first.
func (s *Scripted) Jobs() []agent.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.jobs)
}

// Started delivers the job of each Run as it begins, up to 1,024 unread ones.
func (s *Scripted) Started() <-chan agent.Job { return s.started }

// Done is the outcome of an agent that answered.
func Done(text string) agent.Outcome {
	return agent.Outcome{Result: &agent.Result{Text: text}}
}

// Answer is a script that answers at once.
func Answer(text string) Script {
	return func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) { return Done(text), nil }
}

// Fail is a script that fails at once.
func Fail(code, sentence string) Script {
	return func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
		return agent.Outcome{}, &agent.Failure{Code: code, Message: sentence}
	}
}

// HandOn is a script that hands the task on, waits, and answers with the child's
// text, or with "CODE: sentence" of its failure or refusal.
func HandOn(to string) Script {
	return func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		child, err := host.Delegate(ctx, agent.Hop{To: to, Text: job.Text})
		if err == nil && !child.Ended && child.State != agent.Refused {
			child, err = host.Await(ctx, child.ID)
		}
		switch {
		case err != nil:
			return agent.Outcome{}, err
		case child.Error != nil:
			return Done(child.Error.Error()), nil
		case child.Result == nil:
			return Done(""), nil
		}
		return Done(child.Result.Text), nil
	}
}

// Park is a script that hands the task on and parks, then answers with the texts
// of its children.
func Park(to ...string) Script {
	return func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		if len(job.Children) == 0 {
			park := &agent.Park{Memo: []byte(`{"step":1}`)}
			for _, name := range to {
				park.Hops = append(park.Hops, agent.Hop{Ref: "to-" + name, To: name, Text: job.Text})
			}
			return agent.Outcome{Park: park}, nil
		}
		var text string
		for _, c := range job.Children {
			switch {
			case c.Error != nil:
				text += c.Error.Error()
			case c.Result != nil:
				text += c.Result.Text
			}
		}
		return Done(text), nil
	}
}

// Gate blocks runs until Open is called.
type Gate struct {
	once sync.Once
	open chan struct{}
}

// NewGate makes a closed gate.
func NewGate() *Gate { return &Gate{open: make(chan struct{})} }

// Open lets all runs pass, now and later.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Then is a script that waits at the gate before it follows the next one. It ends
// with the cause of ctx when that ends first.
func (g *Gate) Then(next Script) Script {
	return func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		select {
		case <-g.open:
			return next(ctx, job, host)
		case <-ctx.Done():
			return agent.Outcome{}, context.Cause(ctx)
		}
	}
}
