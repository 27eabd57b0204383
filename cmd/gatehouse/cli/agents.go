package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/each"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// AgentsCmd is the registry.
type AgentsCmd struct {
	List  AgentsListCmd  `cmd:"" default:"1" hidden:"" help:"List the agents."`
	Check AgentsCheckCmd `cmd:"" help:"Ask the guards whether one may hand to another; nothing is sent."`
}

// AgentsListCmd lists the agents.
type AgentsListCmd struct{}

// Run prints name, kind, role, state and capabilities.
func (c *AgentsListCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Agents(ctx)
	return list(sh, got, err, func(a wire.Agent) []string {
		role := cmp.Or(console.Line(a.Role), "–")
		can := each.Of(a.Capabilities, console.Line)
		said := strings.Join(can, ", ")
		if a.Breaker.State == "open" || a.Breaker.State == "half_open" {
			said = console.Parts(said, "breaker "+strings.ReplaceAll(a.Breaker.State, "_", " "))
		}
		if a.Inbox.Waiting > 0 {
			said = console.Parts(said, fmt.Sprintf("inbox %d of %d", a.Inbox.Waiting, a.Inbox.Size))
		}
		if a.LastError != "" {
			said = console.Parts(said, "last error: "+console.Brief(a.LastError, 60))
		}
		return []string{console.Line(a.Name), console.Line(a.Kind), role, sh.State(a.State, 0), said}
	}, "There are no agents. Add one under agents: in the configuration.")
}

// AgentsCheckCmd is a dry run of the guards.
type AgentsCheckCmd struct {
	From string `arg:"" help:"Who would hand on."`
	To   string `arg:"" help:"Who would get the work."`
	Task string `help:"The task in which that would be, as it stands; a new one without it." placeholder:"ID"`
}

// Run exits 0 when the hop may be made and 1 when a guard refuses it.
func (c *AgentsCheckCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.CheckHop(ctx, c.From, c.To, c.Task)
	return orFailed(got.Value.Allowed, act(sh, got, err, func(answer wire.HopAnswer) error {
		said := fmt.Sprintf("✓ %s may hand to %s.", console.Line(c.From), console.Line(c.To))
		if !answer.Allowed {
			said = fmt.Sprintf("%s %s: %s", sh.Icon("refused"), console.Line(answer.Code), console.Line(answer.Message))
		}
		if err := sh.Say("%s", said); err != nil {
			return err
		}
		for _, v := range answer.Verdicts {
			mark := "✓"
			switch {
			case v.Skipped:
				mark = "·"
			case !v.Allowed:
				mark = sh.Icon("refused")
			}
			sh.Hint("  %s %-11s %s", mark, console.Line(v.Guard), console.Line(v.Message))
		}
		return nil
	}))
}

// inboxOf says how full the queue of an agent is, "" where it is no agent any more.
func inboxOf(ctx context.Context, api *client.Client, name string) (string, error) {
	all, err := api.Agents(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range all.Items {
		if a.Name == name && a.Inbox.Size > 0 {
			return fmt.Sprintf("%d of %d wait for %s (%d %%)", a.Inbox.Waiting, a.Inbox.Size, console.Line(a.Name), a.Inbox.Percent), nil
		}
	}
	return "", nil
}
