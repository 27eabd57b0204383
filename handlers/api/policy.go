package api

import (
	"net/http"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// maxRules bounds what a request may ask to be tried.
const maxRules = policy.MaxRules

// PolicyTest answers GET and POST /policy/test: which past requests the rules in force,
// or those in the body, would decide otherwise. It writes nothing.
func (a *API) PolicyTest(c echo.Context) error {
	t := wire.PolicyTest{Since: c.QueryParam("since")}
	if c.Request().Method == http.MethodPost {
		if err := read(c, &t); err != nil {
			return err
		}
	} else if err := only(c.QueryParams(), "since"); err != nil {
		return err
	}
	since, err := handlers.Ago(t.Since, a.Now())
	if err != nil {
		return err
	}
	cfg := a.Gateway.Config()
	rules, calls := cfg.Policy, cfg.Actions
	if t.Rules != nil {
		if rules, err = compiled(*t.Rules, cfg.Groups, policy.CompileRules); err != nil {
			return err
		}
	}
	if t.Actions != nil {
		if calls, err = compiled(*t.Actions, cfg.Groups, policy.CompileActions); err != nil {
			return err
		}
	}
	b, err := a.Gateway.Backtest(c.Request().Context(), rules, since)
	if err != nil {
		return err
	}
	called, err := a.Gateway.BacktestCalls(c.Request().Context(), calls, since)
	return send(c, http.StatusOK, trialOf(b, called), err)
}

// compiled makes a policy of rules that were sent; what is wrong with them names the rule
// and the place within its condition.
func compiled[P any](rules []wire.PolicyRule, groups map[string][]string, compile func([]policy.RuleConfig, map[string][]string) (*P, []policy.Problem)) (*P, error) {
	if len(rules) > maxRules {
		return nil, bad("There are %d rules; %d is the limit.", len(rules), maxRules)
	}
	var configs []policy.RuleConfig
	for _, r := range rules {
		c, err := handlers.RuleOf(r)
		if err != nil {
			return nil, bad("Rule %w.", err)
		}
		configs = append(configs, c)
	}
	p, problems := compile(configs, groups)
	if len(problems) > 0 {
		return nil, orchestrator.Errorf(orchestrator.CodeBadRequest, "%s", handlers.RuleProblems(configs, problems))
	}
	return p, nil
}

// trialOf is what is published of backtests.
func trialOf(b approval.Backtest, called approval.CallTrial) wire.PolicyTrial {
	t := wire.PolicyTrial{Since: b.Since, Version: b.Version, Requests: b.Requests, Same: b.Same, Rules: b.Rules}
	t.Effects, t.Changes = changesOf(b)
	t.Calls = wire.CallTrial{Version: called.Version, Requests: called.Requests, Denied: called.Denied, Asked: called.Asked, Passed: called.Passed, Same: called.Same, Rules: called.Rules}
	t.Calls.Effects, t.Calls.Changes = changesOf(called.Backtest)
	return t
}

func changesOf(b approval.Backtest) (effects map[string]int, changes []wire.PolicyChange) {
	effects, changes = map[string]int{}, []wire.PolicyChange{}
	for effect, n := range b.Effects {
		effects[string(effect)] = n
	}
	for _, c := range b.Changes {
		changes = append(changes, wire.PolicyChange{
			ID: c.RequestID, At: c.At, Title: c.Title, Agent: c.Agent, Repository: c.Repository, State: string(c.State),
			Was: wire.Ruled(c.Was), Would: wire.Ruled(c.Would), Effect: string(c.Effect), Notes: c.Notes,
		})
	}
	return effects, changes
}
