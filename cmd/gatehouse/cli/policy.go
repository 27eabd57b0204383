package cli

import (
	"context"
	"fmt"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// PolicyCmd is about the rules of approval.
type PolicyCmd struct {
	Test PolicyTestCmd `cmd:"" help:"Show which past requests the rules would decide otherwise."`
}

// PolicyTestCmd tries rules on past requests. Nothing is written.
type PolicyTestCmd struct {
	Since string `help:"How far back." default:"30d" placeholder:"30d"`
	Rules string `help:"Try the rules of this file, a gatehouse.yaml or the list of rules alone; without it those of --config, else those that the server has in force." type:"path" placeholder:"FILE"`
}

// RuleReader reads the rules of a file or, where none is named, of the configuration; nil when there are none, so that
// the server tries its own. A mistake in them names file:line:column.
type RuleReader func(sh *console.Shell, file string) ([]wire.PolicyRule, error)

// Run prints one line for each request that would have gone otherwise, and a summary.
func (c *PolicyTestCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client, read RuleReader) error {
	if d, err := sharedctx.ParseTTL(c.Since); err != nil || d <= 0 {
		return console.Usage("--since %s: write a time with a unit, such as 30d or 12h.", console.Line(c.Since))
	}
	rules, err := read(sh, c.Rules)
	if err != nil {
		return &console.Failure{Code: console.ExitUsage, Message: console.Block(err.Error()), Cause: err}
	}
	got, err := api.PolicyTest(ctx, c.Since, rules)
	return act(sh, got, err, func(trial wire.PolicyTrial) error {
		return c.tell(sh, trial)
	})
}

func (c *PolicyTestCmd) tell(sh *console.Shell, trial wire.PolicyTrial) error {
	rows := [][]string{{"request", "agent", "was", "would be", "change", "title"}}
	for _, ch := range trial.Changes {
		rows = append(rows, []string{console.Line(ch.ID), console.Line(ch.Agent) + " → " + console.Line(ch.Repository), ruled(ch.Was), ruled(ch.Would), effectWords(ch.Effect), console.Brief(ch.Title, 40)})
	}
	if len(trial.Changes) > 0 {
		if err := console.Table(sh.Out, rows); err != nil {
			return err
		}
	}
	changed := trial.Requests - trial.Same
	summary := fmt.Sprintf("%s in %s: %d would go otherwise (%d stricter, %d looser, %d decided by others).", console.Counted(trial.Requests, "request"), console.Line(c.Since),
		changed, trial.Effects["stricter"], trial.Effects["looser"], trial.Effects["others"]+trial.Effects["other_rule"])
	if changed > len(trial.Changes) {
		summary += fmt.Sprintf(" The newest %d are shown.", len(trial.Changes))
	}
	return sh.Say("%s", summary)
}

// ruled says what a rule asks for.
func ruled(r wire.Ruled) string {
	switch {
	case r.Deny:
		return console.Line(r.Name) + ": denied"
	case r.Need == 0:
		return console.Line(r.Name) + ": passes"
	case len(r.From) == 0:
		return fmt.Sprintf("%s: %d of all approvers", console.Line(r.Name), r.Need)
	default:
		return fmt.Sprintf("%s: %d of %s", console.Line(r.Name), r.Need, console.Line(console.Joined(r.From, "or")))
	}
}

func effectWords(effect string) string {
	switch effect {
	case "stricter", "looser":
		return effect
	case "others":
		return "other people"
	default:
		return "other rule"
	}
}
