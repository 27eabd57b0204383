package main

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/handlers/settings"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/trigger"
)

// approvalShape is what the gate does beside its rules, in words.
type approvalShape struct {
	Expires  string   `json:"expires"`
	Remind   []string `json:"remind"`   // how long before the deadline
	Escalate []string `json:"escalate"` // "after 4 h to leads"
	Careful  []string `json:"careful"`
}

// understandRules has one line for each rule, and one for what no rule matches.
func understandRules(c *config.Config) []string {
	repositories := slices.Sorted(maps.Keys(c.Engine.Repositories))
	words := func(r policy.Rule) string { return settings.Outcome(r, c.Approvers, repositories) }
	all := understandHandovers(c)
	for _, r := range c.File.Approval.Rules {
		rule := policy.Rule{Need: 1, From: r.From, Deny: r.Deny}
		if r.Need != nil {
			rule.Need = *r.Need
		}
		trial := ""
		if r.Shadow {
			trial = " (on trial, decides nothing)"
		}
		all = append(all, r.Name+trial+": "+words(rule)+" when "+r.When)
	}
	return append(all, "default: "+words(policy.Rule{Need: 1})+" when no rule matches")
}

// understandHandovers has one line for each rule about hand-overs; none where there are none.
func understandHandovers(c *config.Config) []string {
	all := []string{}
	for _, r := range c.File.Approval.Handovers {
		rule := policy.Rule{Need: 1, From: r.From, Deny: r.Deny}
		if r.Need != nil {
			rule.Need = *r.Need
		}
		all = append(all, r.Name+" (hand-overs): "+rule.Outcome()+" when "+r.When)
	}
	return all
}

func understandApproval(c *config.Config) approvalShape {
	a := approvalShape{Expires: console.Length(c.Expires), Remind: []string{}, Escalate: []string{}, Careful: append([]string{}, c.File.Approval.Careful...)}
	for _, d := range c.Remind {
		a.Remind = append(a.Remind, console.Length(d))
	}
	for _, s := range c.Escalate {
		a.Escalate = append(a.Escalate, "after "+console.Length(s.After)+" to "+console.Joined(s.To, "and"))
	}
	return a
}

// understandRetention says what goes at which age; what is kept for ever is not named.
func understandRetention(r retention.Rules) []string {
	all := []string{}
	for _, one := range []struct {
		what string
		age  time.Duration
	}{{"texts and conversations", r.Data}, {"bundles of patches", r.Blobs}, {"what webhooks carried", r.Deliveries}} {
		if one.age > 0 {
			all = append(all, one.what+" after "+console.Length(one.age))
		}
	}
	return all
}

// rows are those of the table; what is not configured has none.
func (a approvalShape) rows() [][]string {
	rows := [][]string{{"expires", "after " + a.Expires}}
	for i, all := range [][]string{a.Remind, a.Escalate, a.Careful} {
		if len(all) > 0 {
			rows = append(rows, []string{[]string{"remind", "escalate", "careful"}[i], console.Line(strings.Join(all, ", "))})
		}
	}
	if len(a.Remind) > 0 {
		rows[1][1] += " before it expires"
	}
	return rows
}

// understandChannels names where requests are shown besides the web, without secrets.
func understandChannels(c *config.Config) []string {
	all := []string{}
	for _, key := range slices.Sorted(maps.Keys(c.Bots)) {
		all = append(all, console.Parts(c.Bots[key].Words()...))
	}
	for _, w := range c.Webhooks {
		all = append(all, console.Parts("webhook "+w.Name, cmp.Or(w.Format, "standard"), host(w.URL)))
	}
	return all
}

// understandTriggers names what makes tasks by itself, without secrets.
func understandTriggers(c *config.Config) []string {
	all := []string{}
	for _, t := range c.Triggers {
		what := "by " + string(t.Source) + " at " + c.PublicURL + "/hooks/" + t.Name
		if t.Kind == trigger.Schedule {
			what = t.Cron + " in " + t.Zone.String()
		}
		to := cmp.Or(t.Agent, "the first agent that can "+t.Capability)
		all = append(all, console.Parts(t.Name, string(t.Kind), what, "starts "+to, "owner "+t.Owner))
	}
	return all
}

// host is that of an address: the rest of a webhook's may be its secret.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
