package llm

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// Options say how model agents are run on this node.
type Options struct {
	// Models finds the client of an agent's models; it sets Request.Model itself. An error
	// is a sentence for people.
	Models func(spec agent.Spec) (model.Client, error)
	// Settings are read when a run begins; nil is the defaults.
	Settings func() Settings
	// Hooks make a run's further hooks; they stand behind the loop detector.
	Hooks []func(job agent.Job) Hook
	// Toolboxes are further tools, opened for each run and closed with it.
	Toolboxes []Opener
	// Commands run what run_command is asked to, and hooks; nil: nobody is given the tool, and
	// there are no hooks.
	Commands Commands
	// MayFetch says to which addresses fetch_url may connect; nil: those of the public internet.
	MayFetch func(netip.Addr) error
	Log      *slog.Logger
	Now      func() time.Time
}

// Settings are the engine's figures that a run needs.
type Settings struct {
	Loop LoopLimits
	// HideAtDepth takes the delegating tools from an agent that may hand on no deeper
	// (P24); without it they stay and answer with the refusal (P59).
	HideAtDepth bool
	// Hooks are programs around every call; they stand behind the other hooks.
	Hooks []HookProgram
}

// Traits are those of this kind.
var Traits = agent.Traits{Files: true, Conversation: true, Turns: true, Prompted: true, Timed: true, Hears: func(agent.Spec) bool { return true }}

// Runner runs agents of kind llm. It is safe for concurrent use, keeps nothing between
// runs, and needs no closing.
type Runner struct {
	o Options
}

func New(o Options) *Runner {
	if o.Settings == nil {
		o.Settings = func() Settings { return Settings{} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Runner{o: o}
}

func (*Runner) Traits() agent.Traits { return Traits }

// Run takes the conversation as far as it goes. It returns a *agent.Failure when the
// model or the run failed; agent.ErrPaused and agent.ErrStopped as the host gave them;
// and the cause of ctx when that ended.
func (r *Runner) Run(ctx context.Context, job agent.Job, host agent.Host) (out agent.Outcome, err error) {
	client, err := r.o.Models(job.Agent)
	if err != nil {
		return agent.Outcome{}, agent.Fail(agent.CodeUnavailable, "%s cannot be run: %v", job.Agent.Name, err)
	}
	late, cancel := limited(ctx, job)
	defer cancel()
	c := &conversation{job: job, host: host, client: client, settings: r.o.Settings(), log: r.o.Log, now: r.o.Now, turns: slices.Clone(job.Turns)}
	defer func() {
		if failed := c.close(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	if err := c.confined(ctx, r.o.Commands); err != nil {
		return agent.Outcome{}, err
	}
	if err := c.open(late, r.o); err != nil {
		return agent.Outcome{}, ended(ctx, late, err)
	}
	out, err = c.run(late)
	return out, ended(ctx, late, err)
}

// limited ends a run that takes longer than its agent may. What the stored turns took
// counts, so that the limit holds over restarts; waiting for children does not.
func limited(ctx context.Context, job agent.Job) (context.Context, context.CancelFunc) {
	limit := job.Agent.Timeout
	if limit <= 0 {
		return ctx, func() {}
	}
	left := limit
	for _, t := range job.Turns[job.Carried:] {
		left -= t.Took
	}
	return context.WithTimeoutCause(ctx, max(left, 0), agent.Fail(agent.CodeTimeout,
		"%s ran for %s, which is its limit, and was ended. Raise its `timeout`, or send a smaller task.", job.Agent.Name, limit))
}

// ended says why a run ended: the end of a context goes before what it brought about.
func ended(ctx, late context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case late.Err() != nil:
		return context.Cause(late)
	}
	return err
}
