package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gatehouse/orchestrator/agent"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

const (
	// DefaultAck is how long an agent may take to acknowledge a task (A34).
	DefaultAck = 120 * time.Second
	// DefaultPoll is between two questions after a task (A31).
	DefaultPoll = 3 * time.Second
	// defaultQuiet is how long a stream may be silent before the task is asked for instead:
	// a connection that is dead looks the same as an agent that thinks.
	defaultQuiet = 30 * time.Second
	// askTime is the limit of one question after a task.
	askTime = 30 * time.Second
	// byeTime is the limit of a cancellation, which holds up the end of the run.
	byeTime = 2 * time.Second
)

// Options say how remote agents are run on this node. The zero value is the defaults.
type Options struct {
	// Ack is how long an agent may take to acknowledge, read when a run begins. It is also
	// how long an agent that has acknowledged may be out of reach.
	Ack func() time.Duration
	// Poll is the pause between two questions, Quiet the longest silence of a stream.
	Poll, Quiet time.Duration
	// Transport makes the connections; nil is one of the runner's own.
	Transport http.RoundTripper
	Now       func() time.Time
}

// Traits are those of this kind.
var Traits = agent.Traits{Turns: true, Timed: true, Elsewhere: true}

// Runner runs agents of kind remote. It is safe for concurrent use and needs no closing.
type Runner struct {
	o Options
}

func New(o Options) *Runner {
	if o.Ack == nil {
		o.Ack = func() time.Duration { return DefaultAck }
	}
	o.Poll = cmp.Or(max(o.Poll, 0), DefaultPoll)
	o.Quiet = cmp.Or(max(o.Quiet, 0), defaultQuiet)
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Runner{o: o}
}

func (*Runner) Traits() agent.Traits { return Traits }

// Run takes the task to its end elsewhere. It returns a *agent.Failure when the agent
// failed, did not acknowledge (no_ack) or got out of reach; agent.ErrPaused and
// agent.ErrStopped as the host gave them; and the cause of ctx when that ended. A task
// whose delegation is over is cancelled there, which takes at most 2 s.
func (r *Runner) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	s := &session{o: r.o, job: job, host: host, patience: r.o.Ack()}
	s.patience = cmp.Or(max(s.patience, 0), DefaultAck)
	result, err := s.guarded(ctx)
	if err == nil {
		return agent.Outcome{Result: result}, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	s.callOff(ctx, err)
	if failed, ok := errors.AsType[*agent.Failure](err); ok && s.hide(failed.Message) != failed.Message {
		err = &agent.Failure{Code: failed.Code, Message: s.hide(failed.Message)} // the library quotes what came
	}
	return agent.Outcome{}, err
}

// guarded turns a panic into a failure of the agent: the library's conversions read what
// it sent, and no agent elsewhere may end this server with an answer.
func (s *session) guarded(ctx context.Context) (result *agent.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, s.strange("its answer could not be read (%s)", title(fmt.Sprint(p)))
		}
	}()
	return s.run(ctx)
}

// run goes on where the stored turns end.
func (s *session) run(ctx context.Context) (*agent.Result, error) {
	if result, done, err := stored(s.job.Turns); done {
		return result, err
	}
	if err := s.acknowledged(s.job.Turns); err != nil {
		return nil, err
	}
	if s.id == "" && s.reply == nil {
		if err := s.begin(ctx); err != nil {
			return nil, err
		}
	}
	if s.reply == nil && s.final == nil {
		if err := s.follow(ctx); err != nil {
			return nil, err
		}
	}
	return s.conclude(ctx)
}

// callOff cancels the task elsewhere when nobody will want its answer: the delegation is
// over, a limit ended the run, or what came from there made it fail. A node that stops, a
// lease that was lost or a database that is away leave it alone: another run goes on.
func (s *session) callOff(ctx context.Context, why error) {
	if s.id == "" || s.client == nil || s.final != nil && s.final.Status.State.Terminal() {
		return
	}
	bye, cancel := context.WithTimeout(quietly(context.WithoutCancel(ctx)), byeTime)
	defer cancel()
	if _, failed := errors.AsType[*agent.Failure](why); !failed {
		if over, err := s.host.Over(bye); err != nil || !over {
			return
		}
	}
	// Whether it obeys is shown on its own pages; here nothing depends on it.
	_, _ = s.client.CancelTask(bye, &a2a.CancelTaskRequest{ID: s.id})
}
