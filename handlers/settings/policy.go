package settings

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"gatehouse/approval/policy"
	"gatehouse/handlers"
	"gatehouse/views"
	view "gatehouse/views/settings"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
	"go.yaml.in/yaml/v3"
)

// Policy answers GET /settings/policy: the rules, what they did, and what would have gone
// otherwise under the ones in force.
func (p *Pages) Policy(c echo.Context) error {
	return p.policy(c, "", nil)
}

// TryPolicy answers POST /settings/policy: it tries other rules and saves nothing.
func (p *Pages) TryPolicy(c echo.Context) error {
	text := c.FormValue("rules")
	rules, err := handlers.ParseRules(text)
	if err != nil {
		return p.policy(c, text, []string{err.Error()})
	}
	return p.policy(c, text, nil, rules...)
}

// writeRules is the list as it may stand in gatehouse.yaml.
func writeRules(rules []policy.RuleConfig) (string, error) {
	var written []wire.PolicyRule
	for _, r := range rules {
		w := wire.PolicyRule{Name: r.Name, When: r.When, Need: r.Need, From: r.From, Deny: r.Deny, Shadow: r.Shadow}
		if r.Expires > 0 {
			w.Expires = r.Expires.String()
		}
		written = append(written, w)
	}
	if len(written) == 0 {
		return "", nil
	}
	b, err := yaml.Marshal(written)
	return string(b), err
}

// policy shows the page. text and problems are those of rules that were tried.
func (p *Pages) policy(c echo.Context, text string, problems []string, tried ...policy.RuleConfig) error {
	f, err := p.Begin(c, views.SectionSettings, "Policy")
	if err != nil {
		return err
	}
	cfg := p.Gateway.Config()
	page := view.PolicyPage{Chrome: f.Chrome, Since: c.FormValue("since"), Text: text, Problems: problems, Trying: len(tried) > 0, Version: cfg.Policy.Version()}
	since, err := handlers.Ago(page.Since, p.Now())
	if err != nil {
		return err
	}
	rules := cfg.Policy
	if len(tried) > 0 {
		var wrong []policy.Problem
		if rules, wrong = policy.CompileRules(tried, cfg.Groups); len(wrong) > 0 {
			page.Problems, page.Trying, rules = strings.Split(handlers.RuleProblems(tried, wrong), "\n"), false, cfg.Policy
		}
	}
	if page.Text == "" {
		if page.Text, err = writeRules(cfg.Policy.Rules()); err != nil {
			return err
		}
	}
	b, err := p.Gateway.Backtest(f.Ctx, rules, since)
	if err != nil {
		return err
	}
	for _, h := range rules.Hints(cfg.Groups, cfg.FourEyes) {
		page.Hints = append(page.Hints, h.Message)
	}
	page.Trial = b
	repositories := slices.Sorted(maps.Keys(p.Engine.Config().Repositories))
	outcome := func(r policy.Rule) string { return Outcome(r, cfg.Approvers, repositories) }
	for _, r := range rules.Rules() {
		page.Rules = append(page.Rules, ruleRow(r, b.Rules[r.Name], outcome))
	}
	page.Rules = append(page.Rules, view.PolicyRule{Name: "default", When: "nothing above", Outcome: outcome(policy.Rule{Need: 1}), Matched: b.Rules["default"]})
	status := http.StatusOK
	if len(page.Problems) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return handlers.Render(c, status, view.Policy(page))
}

// Outcome says in words what a rule does. One that names no groups asks those of the
// repository; approvers are these by repository, repositories all that there are.
func Outcome(r policy.Rule, approvers map[string][]string, repositories []string) string {
	if r.Deny || r.Need == 0 || len(r.From) > 0 || len(approvers) == 0 {
		return r.Outcome()
	}
	var asked []string // each outcome once, with its repositories
	where := map[string][]string{}
	elsewhere := ""
	for _, name := range repositories {
		if len(approvers[name]) == 0 {
			elsewhere = r.Outcome()
			continue
		}
		words := policy.Rule{Need: r.Need, From: approvers[name]}.Outcome()
		if where[words] == nil {
			asked = append(asked, words)
		}
		where[words] = append(where[words], name)
	}
	switch {
	case len(asked) == 0:
		return r.Outcome()
	case len(asked) == 1 && elsewhere == "":
		return asked[0]
	}
	for i, words := range asked {
		asked[i] = words + " in " + strings.Join(where[words], ", ")
	}
	if elsewhere != "" {
		asked = append(asked, elsewhere+" elsewhere")
	}
	return strings.Join(asked, "; ")
}

func ruleRow(r policy.RuleConfig, matched int, outcome func(policy.Rule) string) view.PolicyRule {
	row := view.PolicyRule{Name: r.Name, When: r.When, Shadow: r.Shadow, Matched: matched}
	rule := policy.Rule{Need: 1, From: r.From, Deny: r.Deny}
	if r.Need != nil {
		rule.Need = *r.Need
	}
	row.Outcome = outcome(rule)
	return row
}
