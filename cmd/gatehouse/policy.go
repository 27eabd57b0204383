package main

import (
	"context"
	"fmt"

	"gatehouse/cmd/gatehouse/internal/config"
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

// Run prints one line for each request that would have gone otherwise, and a summary.
func (c *PolicyTestCmd) Run(ctx context.Context, sh *shell) error {
	if d, err := sharedctx.ParseTTL(c.Since); err != nil || d <= 0 {
		return usage("--since %s: write a time with a unit, such as 30d or 12h.", line(c.Since))
	}
	rules, err := c.rules(sh)
	if err != nil {
		return err
	}
	return act(ctx, sh, func(api *client.Client) (client.Answer[wire.PolicyTrial], error) {
		return api.PolicyTest(ctx, c.Since, rules)
	}, func(_ *client.Client, trial wire.PolicyTrial) error {
		return c.tell(sh, trial)
	})
}

func (c *PolicyTestCmd) tell(sh *shell, trial wire.PolicyTrial) error {
	rows := [][]string{{"request", "agent", "was", "would be", "change", "title"}}
	for _, ch := range trial.Changes {
		rows = append(rows, []string{line(ch.ID), line(ch.Agent) + " → " + line(ch.Repository), ruled(ch.Was), ruled(ch.Would), effectWords(ch.Effect), brief(ch.Title, 40)})
	}
	if len(trial.Changes) > 0 {
		if err := table(sh.out, rows); err != nil {
			return err
		}
	}
	changed := trial.Requests - trial.Same
	summary := fmt.Sprintf("%s in %s: %d would go otherwise (%d stricter, %d looser, %d decided by others).", counted(trial.Requests, "request"), line(c.Since),
		changed, trial.Effects["stricter"], trial.Effects["looser"], trial.Effects["others"]+trial.Effects["other_rule"])
	if changed > len(trial.Changes) {
		summary += fmt.Sprintf(" The newest %d are shown.", len(trial.Changes))
	}
	return sh.say("%s", summary)
}

// rules are those of a file; nil when there is none, so that the server tries its own. A
// mistake in them names file:line:column.
func (c *PolicyTestCmd) rules(sh *shell) ([]wire.PolicyRule, error) {
	written, err := c.written(sh)
	if err != nil {
		return nil, &failure{code: exitUsage, message: block(err.Error()), cause: err}
	}
	if written == nil {
		return nil, nil
	}
	rules := []wire.PolicyRule{}
	for _, r := range written {
		rules = append(rules, wire.PolicyRule{Name: r.Name, When: r.When, Need: r.Need, From: r.From, Deny: r.Deny, Shadow: r.Shadow, Expires: r.Expires})
	}
	return rules, nil
}

// written are the rules as a file has them; nil where there is no file.
func (c *PolicyTestCmd) written(sh *shell) ([]config.Rule, error) {
	if c.Rules != "" {
		rules, err := config.LoadRules(c.Rules, sh.env)
		return append([]config.Rule{}, rules...), err
	}
	cfg, err := config.LoadFor(sh.Globals.Config, sh.env, "approval", "groups")
	if err != nil || cfg.Path == "" && len(cfg.File.Approval.Rules) == 0 {
		return nil, err
	}
	return append([]config.Rule{}, cfg.File.Approval.Rules...), nil
}

// ruled says what a rule asks for.
func ruled(r wire.Ruled) string {
	switch {
	case r.Deny:
		return line(r.Name) + ": denied"
	case r.Need == 0:
		return line(r.Name) + ": passes"
	case len(r.From) == 0:
		return fmt.Sprintf("%s: %d of all approvers", line(r.Name), r.Need)
	default:
		return fmt.Sprintf("%s: %d of %s", line(r.Name), r.Need, line(joined(r.From, "or")))
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
