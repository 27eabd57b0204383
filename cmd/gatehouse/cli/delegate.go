package cli

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// How a run outlives an outage of its server. A run dies with its attempt, so more
// patience than this would help nobody.
const (
	outage     = 2 * time.Minute
	firstRetry = 200 * time.Millisecond
	lastRetry  = 3 * time.Second
)

// DelegateCmd hands work on from inside a run.
type DelegateCmd struct {
	Agent      string   `arg:"" help:"The agent that gets the work."`
	Text       []string `arg:"" optional:"" help:"What is to be done; - reads it from standard input."`
	Capability string   `help:"The agent must have this capability." placeholder:"CAP"`
}

// Run hands on, waits for the answer and prints it.
func (c *DelegateCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	text, err := sh.Words(c.Text)
	if err != nil {
		return err
	}
	h, err := handOn(sh, api, "delegate")
	if err != nil {
		return err
	}
	d, err := h.handOn(ctx, wire.Hop{To: c.Agent, Capability: c.Capability, Text: text})
	if err == nil {
		d, err = h.await(ctx, d)
	}
	if err != nil {
		return notHandedOn(err)
	}
	return answer(sh, d)
}

// handOn gets ready to hand work on inside a run.
func handOn(sh *console.Shell, api *client.Client, command string) (*hop, error) {
	if sh.Token == "" {
		return nil, console.Usage("%s works inside a run, which has a token in GATEHOUSE_TOKEN. From outside, use gatehouse send.", command)
	}
	return &hop{api: api, patience: patience{now: sh.Now}}, nil
}

// notHandedOn is a refusal as a program reads it: its code first.
func notHandedOn(err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code != "" {
		return &console.Failure{Code: console.ExitFailed, Message: console.Line(refused.Code) + ": " + console.Line(refused.Error()), Cause: err}
	}
	return err
}

// answer prints what the child said, or why it did not complete.
func answer(sh *console.Shell, child client.Answer[wire.Delegation]) error {
	d := child.Value
	if sh.JSON {
		if err := sh.Document(child.Raw); err != nil {
			return err
		}
	}
	if d.State != "completed" {
		why := cmp.Or(reason(d), console.Line(d.State)+": "+console.Line(d.To)+" ended as "+console.Line(d.State)+".")
		return console.Fail(console.ExitFailed, "%s", why)
	}
	if sh.JSON || d.Result == nil || d.Result.Text == "" {
		return nil
	}
	return sh.Foreign(d.Result.Text)
}

// hop is one hand-over of a run.
type hop struct {
	api      *client.Client
	patience patience
}

// handOn makes the hop. It is repeated only where the request never left, or where the
// server says that its database is away: else the same hop would be a second child.
func (h *hop) handOn(ctx context.Context, in wire.Hop) (client.Answer[wire.Delegation], error) {
	for {
		d, err := h.api.Delegate(ctx, in)
		op, _ := errors.AsType[*net.OpError](err)
		unsent := op != nil && op.Op == "dial"
		if err == nil || !unsent && !isStatus(err, http.StatusServiceUnavailable) {
			return d, err
		}
		if err := h.patience.wait(ctx, err); err != nil {
			return d, err
		}
	}
}

// await asks until the child has ended and this run may go on.
func (h *hop) await(ctx context.Context, d client.Answer[wire.Delegation]) (client.Answer[wire.Delegation], error) {
	for {
		next, done, err := h.api.Await(ctx, d.Value.ID)
		var refused *client.Error
		switch {
		case err == nil && done:
			return next, nil
		case err == nil:
			h.patience.reset()
			continue
		case ctx.Err() != nil:
			return d, err
		case errors.As(err, &refused) && refused.Status < 500 && refused.Status != 429:
			return d, err
		}
		if err := h.patience.wait(ctx, err); err != nil {
			return d, err
		}
	}
}

// patience waits between tries, longer each time, until an outage has lasted too long.
type patience struct {
	now   func() time.Time
	since time.Time
	pause time.Duration
}

func (p *patience) reset() { p.since, p.pause = time.Time{}, 0 }

// wait returns the reason once there was no answer for the whole outage.
func (p *patience) wait(ctx context.Context, reason error) error {
	if p.since.IsZero() {
		p.since, p.pause = p.now(), firstRetry
	}
	if p.now().Sub(p.since) > outage {
		return reason
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(p.pause):
	}
	p.pause = min(2*p.pause, lastRetry)
	return nil
}
