package cli

import (
	"context"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
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
func (c *HoldSetCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	named := 0
	for _, is := range []bool{c.ID != "", c.Repository != "", c.Everything} {
		if is {
			named++
		}
	}
	if named != 1 {
		return console.Usage("Say what is held: an ID, --repository NAME or --everything; one of them.")
	}
	in := wire.NewHold{Repository: c.Repository, Everything: c.Everything, Reason: c.Reason}
	if strings.HasPrefix(c.ID, wire.RequestPrefix) {
		in.Request = c.ID
	} else {
		in.Task = c.ID
	}
	got, err := api.SetHold(ctx, in)
	return act(sh, got, err, func(h retention.Hold) error {
		sh.Hint("Held: %s. Retention removes nothing of it until: gatehouse hold lift %s --reason …", heldThing(h), console.Line(h.ID))
		return sh.Say("%s", console.Line(h.ID))
	})
}

// heldThing is what a hold covers, in words.
func heldThing(h retention.Hold) string {
	switch h.Kind {
	case "everything":
		return "everything"
	case "repository":
		return "the repository " + console.Line(h.Subject)
	}
	if h.RequestID != "" {
		return "the request " + console.Line(h.RequestID) + " with its task " + console.Line(h.Subject)
	}
	return "the task " + console.Line(h.Subject)
}

// HoldListCmd lists holds.
type HoldListCmd struct {
	Lifted bool `help:"Also those that were lifted."`
}

// Run prints one line for each.
func (c *HoldListCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Holds(ctx, c.Lifted)
	return list(sh, got, err, func(h retention.Hold) []string {
		since := console.Line(h.By) + " on " + h.At.Format("2006-01-02")
		if h.LiftedAt != nil {
			since += ", lifted by " + console.Line(h.LiftedBy) + " on " + h.LiftedAt.Format("2006-01-02")
		}
		return []string{console.Line(h.ID), heldThing(h), since, console.Brief(h.Reason, 60)}
	}, "Nothing is held.")
}

// HoldLiftCmd ends a hold.
type HoldLiftCmd struct {
	ID     string `arg:"" help:"The hold."`
	Reason string `required:"" help:"Why." placeholder:"R"`
}

// Run says what is free again.
func (c *HoldLiftCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.LiftHold(ctx, c.ID, c.Reason)
	return act(sh, got, err, func(h retention.Hold) error {
		return sh.Say("Lifted: %s. What is old of it goes with the next run of retention.", heldThing(h))
	})
}
