package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

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
func (c *AgentsListCmd) Run(ctx context.Context, sh *shell) error {
	return list(ctx, sh, func(api *client.Client) (client.List[wire.Agent], error) { return api.Agents(ctx) }, func(a wire.Agent) []string {
		role := cmp.Or(line(a.Role), "–")
		can := make([]string, len(a.Capabilities))
		for j, c := range a.Capabilities {
			can[j] = line(c)
		}
		said := strings.Join(can, ", ")
		if a.Breaker.State == "open" || a.Breaker.State == "half_open" {
			said = parts(said, "breaker "+strings.ReplaceAll(a.Breaker.State, "_", " "))
		}
		if a.Inbox.Waiting > 0 {
			said = parts(said, fmt.Sprintf("inbox %d of %d", a.Inbox.Waiting, a.Inbox.Size))
		}
		if a.LastError != "" {
			said = parts(said, "last error: "+brief(a.LastError, 60))
		}
		return []string{line(a.Name), line(a.Kind), role, sh.state(a.State, 0), said}
	}, "There are no agents. Add one under agents: in the configuration.")
}

// AgentsCheckCmd is a dry run of the guards.
type AgentsCheckCmd struct {
	From string `arg:"" help:"Who would hand on."`
	To   string `arg:"" help:"Who would get the work."`
	Task string `help:"The task in which that would be, as it stands; a new one without it." placeholder:"ID"`
}

// Run exits 0 when the hop may be made and 1 when a guard refuses it.
func (c *AgentsCheckCmd) Run(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	answer, err := api.CheckHop(ctx, c.From, c.To, c.Task)
	if err != nil {
		return err
	}
	got := answer.Value
	switch {
	case sh.JSON:
		err = sh.document(answer.Raw)
	case got.Allowed:
		err = sh.say("✓ %s may hand to %s.", line(c.From), line(c.To))
	default:
		err = sh.say("%s %s: %s", sh.icon("refused"), line(got.Code), line(got.Message))
	}
	if err == nil && !sh.JSON {
		for _, v := range got.Verdicts {
			mark := "✓"
			switch {
			case v.Skipped:
				mark = "·"
			case !v.Allowed:
				mark = sh.icon("refused")
			}
			sh.hint("  %s %-11s %s", mark, line(v.Guard), line(v.Message))
		}
	}
	if err == nil && !got.Allowed {
		err = &failure{code: exitFailed}
	}
	return err
}
