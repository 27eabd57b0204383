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

// RuleReader reads the rules of a file or, where none is named, of the configuration; those that it has none of are
// absent, so that the server tries its own. A mistake in them names file:line:column.
type RuleReader func(sh *console.Shell, file string) (wire.PolicyTest, error)

// Run prints one line for each request that would have gone otherwise, and a summary.
func (c *PolicyTestCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client, read RuleReader) error {
	if d, err := sharedctx.ParseTTL(c.Since); err != nil || d <= 0 {
		return console.Usage("--since %s: write a time with a unit, such as 30d or 12h.", console.Line(c.Since))
	}
	rules, err := read(sh, c.Rules)
	if err != nil {
		return &console.Failure{Code: console.ExitUsage, Message: console.Block(err.Error()), Cause: err}
	}
	rules.Since = c.Since
	got, err := api.PolicyTest(ctx, rules)
	return act(sh, got, err, func(trial wire.PolicyTrial) error {
		return c.tell(sh, trial)
	})
}

func (c *PolicyTestCmd) tell(sh *console.Shell, trial wire.PolicyTrial) error {
	if err := c.changes(sh, "request", trial.Requests, trial.Same, trial.Effects, trial.Changes); err != nil || trial.Calls.Requests == 0 {
		return err
	}
	calls := trial.Calls
	if err := sh.Say(""); err != nil {
		return err
	}
	if err := c.changes(sh, "call", calls.Requests, calls.Same, calls.Effects, calls.Changes); err != nil {
		return err
	}
	return sh.Say("Of these calls %d would be denied, %d asked about, and %d pass. Calls that nobody was asked about are not kept with their input.", calls.Denied, calls.Asked, calls.Passed)
}

// changes lists what would have gone otherwise, and sums it up.
func (c *PolicyTestCmd) changes(sh *console.Shell, what string, all, same int, effects map[string]int, changes []wire.PolicyChange) error {
	rows := [][]string{{what, "agent", "was", "would be", "change", "title"}}
	for _, ch := range changes {
		agent := console.Line(ch.Agent)
		if ch.Repository != "" || what == "request" {
			agent += " → " + console.Line(ch.Repository)
		}
		rows = append(rows, []string{console.Line(ch.ID), agent, ruled(ch.Was), ruled(ch.Would), effectWords(ch.Effect), console.Brief(ch.Title, 40)})
	}
	if len(changes) > 0 {
		if err := console.Table(sh.Out, rows); err != nil {
			return err
		}
	}
	changed := all - same
	summary := fmt.Sprintf("%s in %s: %d would go otherwise (%d stricter, %d looser, %d decided by others).", console.Counted(all, what), console.Line(c.Since),
		changed, effects["stricter"], effects["looser"], effects["others"]+effects["other_rule"])
	if changed > len(changes) {
		summary += fmt.Sprintf(" The newest %d are shown.", len(changes))
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
