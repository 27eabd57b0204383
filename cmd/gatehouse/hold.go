package main

import (
	"context"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// HoldCmd is about legal holds.
type HoldCmd struct {
	Set  HoldSetCmd  `cmd:"" help:"Keep retention from removing something."`
	List HoldListCmd `cmd:"" help:"List what is held, newest first."`
	Lift HoldLiftCmd `cmd:"" help:"End a hold."`
}

// HoldSetCmd sets a hold.
type HoldSetCmd struct {
	ID         string `arg:"" optional:"" help:"A task or delegation, or a request with its task."`
	Repository string `help:"All tasks on this repository." placeholder:"NAME"`
	Everything bool   `help:"All tasks."`
	Reason     string `required:"" help:"Why." placeholder:"R"`
}

// Run prints the hold's id, alone on stdout.
func (c *HoldSetCmd) Run(ctx context.Context, sh *shell) error {
	named := 0
	for _, is := range []bool{c.ID != "", c.Repository != "", c.Everything} {
		if is {
			named++
		}
	}
	if named != 1 {
		return usage("Say what is held: an ID, --repository NAME or --everything; one of them.")
	}
	in := wire.NewHold{Repository: c.Repository, Everything: c.Everything, Reason: c.Reason}
	if strings.HasPrefix(c.ID, orchestrator.RequestPrefix) {
		in.Request = c.ID
	} else {
		in.Task = c.ID
	}
	return act(ctx, sh, func(api *client.Client) (client.Answer[retention.Hold], error) { return api.SetHold(ctx, in) }, func(_ *client.Client, h retention.Hold) error {
		sh.hint("Held: %s. Retention removes nothing of it until: gatehouse hold lift %s --reason …", heldThing(h), line(h.ID))
		return sh.say("%s", line(h.ID))
	})
}

// heldThing is what a hold covers, in words.
func heldThing(h retention.Hold) string {
	switch h.Kind {
	case "everything":
		return "everything"
	case "repository":
		return "the repository " + line(h.Subject)
	}
	if h.RequestID != "" {
		return "the request " + line(h.RequestID) + " with its task " + line(h.Subject)
	}
	return "the task " + line(h.Subject)
}

// HoldListCmd lists holds.
type HoldListCmd struct {
	Lifted bool `help:"Also those that were lifted."`
}

// Run prints one line for each.
func (c *HoldListCmd) Run(ctx context.Context, sh *shell) error {
	return list(ctx, sh, func(api *client.Client) (client.List[retention.Hold], error) { return api.Holds(ctx, c.Lifted) }, func(h retention.Hold) []string {
		since := line(h.By) + " on " + h.At.Format("2006-01-02")
		if h.LiftedAt != nil {
			since += ", lifted by " + line(h.LiftedBy) + " on " + h.LiftedAt.Format("2006-01-02")
		}
		return []string{line(h.ID), heldThing(h), since, brief(h.Reason, 60)}
	}, "Nothing is held.")
}

// HoldLiftCmd ends a hold.
type HoldLiftCmd struct {
	ID     string `arg:"" help:"The hold."`
	Reason string `required:"" help:"Why." placeholder:"R"`
}

// Run says what is free again.
func (c *HoldLiftCmd) Run(ctx context.Context, sh *shell) error {
	return act(ctx, sh, func(api *client.Client) (client.Answer[retention.Hold], error) {
		return api.LiftHold(ctx, c.ID, c.Reason)
	}, func(_ *client.Client, h retention.Hold) error {
		return sh.say("Lifted: %s. What is old of it goes with the next run of retention.", heldThing(h))
	})
}
