package cli

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// CancelCmd stops a tree, or with --all everything.
type CancelCmd struct {
	ID     string `arg:"" optional:"" help:"An id, or its last 6 characters or more."`
	All    bool   `help:"Stop everything that runs or waits; for admins. It is counted first."`
	Agent  string `help:"With --all: only the work of this agent, and what is below it." placeholder:"NAME"`
	Reason string `help:"Why; it is stored with who cancelled, for everybody who looks later." placeholder:"TEXT"`
	Yes    bool   `help:"With --all: do not ask. Needed where standard input is no terminal."`
}

// Run cancels it and says so.
func (c *CancelCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	switch {
	case c.All && c.ID != "":
		return console.Usage("--all stops everything, and %s is one task. Leave one of them out.", console.Line(c.ID))
	case c.All:
		return c.all(ctx, sh, api)
	case c.ID == "":
		return console.Usage("Say what to cancel: an id, or --all for everything that runs or waits.")
	case c.Agent != "" || c.Yes:
		return console.Usage("--agent and --yes go with --all. Leave them out to cancel %s.", console.Line(c.ID))
	}
	got, err := api.Cancel(ctx, c.ID, c.Reason)
	return act(sh, got, err, sayChanged(sh))
}

// RetryCmd runs a failed one again.
type RetryCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run queues it again and says how to follow it.
func (c *RetryCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Retry(ctx, c.ID)
	return act(sh, got, err, func(d wire.Delegation) error {
		return sh.Then(sayChanged(sh)(d), "%s  follow: gatehouse wait %s", console.Line(d.Message), handle(d))
	})
}

// sayChanged prints what a delegation has become.
func sayChanged(sh *console.Shell) func(wire.Delegation) error {
	return func(d wire.Delegation) error {
		return sh.Say("%s %s", console.Line(d.ID), strings.ReplaceAll(console.Line(d.State), "_", " "))
	}
}

// all counts what runs or waits, asks, and stops what was counted.
func (c *CancelCmd) all(ctx context.Context, sh *console.Shell, api *client.Client) error {
	first, err := api.StopAll(ctx, wire.Stop{Agent: c.Agent, DryRun: true})
	if err != nil {
		return err
	}
	would := first.Value
	if !c.Yes && (would.Delegations > 0 || !sh.Stdin) {
		if !sh.Stdin || sh.JSON {
			return console.Usage("%s. Nothing was stopped: nobody can be asked here, so say --yes.", underway(would))
		}
		if !sure(sh, would) {
			return console.Fail(console.ExitFailed, "Nothing was stopped.")
		}
	}
	got, err := api.StopAll(ctx, wire.Stop{Agent: c.Agent, Reason: c.Reason, Until: &would.Until})
	return act(sh, got, err, func(did wire.Stopped) error {
		sh.Hint("%s.", underway(would))
		if did.Landing > 0 {
			sh.Hint("Left alone: %s, because a change lands at this moment. Run this again when it has landed.", console.Counted(did.Landing, "delegation"))
		}
		return sh.Say("stopped %s in %s", console.Counted(did.Delegations, "delegation"), console.Counted(did.Tasks, "task"))
	})
}

// underway says how much runs or waits.
func underway(n wire.Stopped) string {
	verb := "run or wait"
	if n.Delegations == 1 {
		verb = "runs or waits"
	}
	of := ""
	if n.Agent != "" {
		of = " of " + console.Line(n.Agent)
	}
	return fmt.Sprintf("%s%s in %s %s", console.Counted(n.Delegations, "delegation"), of, console.Counted(n.Tasks, "task"), verb)
}

// sure says what would be stopped and reads the answer; only a yes is one.
func sure(sh *console.Shell, would wire.Stopped) bool {
	fmt.Fprintf(sh.Errs, "%s. Stop all of it? It cannot be taken back. [y/N] ", underway(would))
	agreed, answered := yes(sh)
	if !answered {
		fmt.Fprintln(sh.Errs)
	}
	return agreed
}

// PauseCmd holds a task.
type PauseCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run holds it and says how it goes on.
func (c *PauseCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Pause(ctx, c.ID)
	return act(sh, got, err, func(d wire.Delegation) error {
		return sh.Then(sh.Say("%s paused", console.Line(d.TaskID)), "  go on: gatehouse resume %s", handle(d))
	})
}

// ResumeCmd lets a paused task go on.
type ResumeCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run lets it go on.
func (c *ResumeCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Resume(ctx, c.ID)
	return act(sh, got, err, func(d wire.Delegation) error {
		return sh.Then(sh.Say("%s goes on", console.Line(d.TaskID)), "  follow: gatehouse wait %s", handle(d))
	})
}

// ForkCmd makes a task that goes on from a turn of a model's conversation.
type ForkCmd struct {
	ID   string `arg:"" help:"An id, or its last 6 characters or more."`
	Turn int    `help:"The last turn that is kept; without it the newest."`
}

// Run makes it and prints what send prints.
func (c *ForkCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Fork(ctx, c.ID, c.Turn)
	return act(sh, got, err, func(t wire.Submitted) error {
		return started(sh, api, t.ID, "sent to "+console.Line(t.Agent))
	})
}
