package api

import (
	"net/http"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/sharedctx"

	"github.com/labstack/echo/v4"
)

// maxRules bounds what a request may ask to be tried.
const maxRules = approval.MaxRules

// triedRule is a rule as it is sent; it has the keys of gatehouse.yaml.
type triedRule struct {
	Name    string   `json:"name"`
	When    string   `json:"when"`
	Need    *int     `json:"need"`
	From    []string `json:"from"`
	Deny    bool     `json:"deny"`
	Shadow  bool     `json:"shadow"`
	Expires string   `json:"expires"`
}

// trial is the body of POST /policy/test. Without rules those in force are tried.
type trial struct {
	Since string       `json:"since"` // how far back, e.g. 30d
	Rules *[]triedRule `json:"rules"`
}

// PolicyTest answers GET and POST /policy/test: which past requests the rules in force,
// or those in the body, would decide otherwise. It writes nothing.
func (a *API) PolicyTest(c echo.Context) error {
	t := trial{Since: c.QueryParam("since")}
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
	policy := cfg.Policy
	if t.Rules != nil {
		if policy, err = compiled(*t.Rules, cfg.Groups); err != nil {
			return err
		}
	}
	b, err := a.Gateway.Backtest(c.Request().Context(), policy, since)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, b)
}

// compiled makes a policy of rules that were sent; what is wrong with them names the rule
// and the place within its condition.
func compiled(rules []triedRule, groups map[string][]string) (*approval.Policy, error) {
	if len(rules) > maxRules {
		return nil, bad("There are %d rules; %d is the limit.", len(rules), maxRules)
	}
	var configs []approval.RuleConfig
	for _, r := range rules {
		var expires time.Duration
		if r.Expires != "" {
			var err error
			if expires, err = sharedctx.ParseTTL(r.Expires); err != nil {
				return nil, bad("Rule %.80q: expires: %.80q is no length of time. Write a number with a unit, such as 72h.", r.Name, r.Expires)
			}
		}
		configs = append(configs, approval.RuleConfig{Name: r.Name, When: r.When, Need: r.Need, From: r.From, Deny: r.Deny, Shadow: r.Shadow, Expires: expires})
	}
	p, problems := approval.CompileRules(configs, groups)
	if len(problems) > 0 {
		return nil, orchestrator.Errorf(orchestrator.CodeBadRequest, "%s", handlers.RuleProblems(configs, problems))
	}
	return p, nil
}
