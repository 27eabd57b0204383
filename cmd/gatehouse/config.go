package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/handlers/settings"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/trigger"
)

// ConfigCmd looks at the configuration.
type ConfigCmd struct {
	Check  ConfigCheckCmd  `cmd:"" help:"Print what the configuration says; nothing is made or started."`
	Show   ConfigShowCmd   `cmd:"" help:"Print every value and where it comes from; secrets are not shown."`
	Schema ConfigSchemaCmd `cmd:"" help:"Print the JSON schema of gatehouse.yaml, for editors."`
}

// ConfigCheckCmd prints what was understood.
type ConfigCheckCmd struct{}

// understood is the configuration as the program takes it, without its secrets.
type understood struct {
	File         string           `json:"file"` // "" when there is none
	Listen       string           `json:"listen"`
	PublicURL    string           `json:"public_url"`
	Database     string           `json:"database"`
	Data         string           `json:"data"`
	Workers      int              `json:"workers"`
	MaxDepth     int              `json:"max_depth"`
	Handoffs     string           `json:"handoffs"` // on, or opt_in: a task has to enable them
	FourEyes     bool             `json:"four_eyes"`
	Repositories []understoodRepo `json:"repositories"`
	Providers    []understoodMind `json:"providers"`
	Agents       []understoodHand `json:"agents"`
	Rules        []string         `json:"rules"`
	Approval     approvalShape    `json:"approval"`
	Channels     []string         `json:"channels"`
	Triggers     []string         `json:"triggers"`
	Removed      []string         `json:"removed"` // by retention, and after which age
	Warnings     []string         `json:"warnings"`
}

type understoodRepo struct {
	Name      string   `json:"name"`
	Approvers []string `json:"approvers"` // groups whose yes counts where a rule names none
	Source    string   `json:"source"`
	Branch    string   `json:"branch"` // "" is what the source's HEAD names
	Deliver   string   `json:"deliver"`
	Checks    []string `json:"checks"`
}

// understoodMind is a service with models, without its keys.
type understoodMind struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"` // the protocol that it speaks
	BaseURL string   `json:"base_url"`
	Keys    int      `json:"keys"`
	Prices  []string `json:"prices"` // models whose cost is known
}

type understoodHand struct {
	Name         string `json:"name"`
	Kind         string `json:"kind"`
	Model        string `json:"model"` // of kind llm
	Role         string `json:"role"`
	Repository   string `json:"repository"`
	Approval     string `json:"approval"`
	AnalysisOnly bool   `json:"analysis_only"`
	AskFirst     bool   `json:"ask_first"` // a person is asked before it is handed work
	// TrustCheckout: it runs in its caller's files as they are.
	TrustCheckout bool     `json:"trust_checkout"`
	Owner         string   `json:"owner"`        // who is asked first; "" nobody
	DelegatesTo   []string `json:"delegates_to"` // null: anyone
}

// Run prints it, with what deserves a look.
func (c *ConfigCheckCmd) Run(ctx context.Context, sh *console.Shell) error {
	cfg, err := partOf(sh)
	if err != nil {
		return err
	}
	u := understand(cfg)
	u.Warnings = append(u.Warnings, nobody(ctx, cfg)...)
	if sh.JSON {
		return sh.Document(u)
	}
	return u.print(sh)
}

func understand(c *config.Config) understood {
	u := understood{
		File: c.Path, Listen: c.Listen, PublicURL: c.PublicURL, Database: withoutPassword(c.Database), Data: c.Data, FourEyes: c.FourEyes,
		Workers: c.Engine.Settings.Workers, MaxDepth: c.Engine.Settings.MaxDepth, Handoffs: map[bool]string{true: "opt_in", false: "on"}[c.Engine.Settings.OptIn],
		Repositories: []understoodRepo{}, Providers: []understoodMind{}, Agents: []understoodHand{}, Warnings: slices.Concat([]string{}, unset(c), c.Warnings, c.Hints()),
	}
	for _, name := range slices.Sorted(maps.Keys(c.Engine.Repositories)) {
		r := c.Engine.Repositories[name]
		u.Repositories = append(u.Repositories, understoodRepo{name, append([]string{}, c.Approvers[name]...), withoutPassword(r.Source), r.Branch, r.Deliver, append([]string{}, r.Checks...)})
	}
	for _, p := range c.Providers {
		keys := len(slices.DeleteFunc(slices.Clone(p.Keys), func(k string) bool { return k == "" }))
		u.Providers = append(u.Providers, understoodMind{p.Name, p.Kind, withoutPassword(p.BaseURL), keys, append([]string{}, slices.Sorted(maps.Keys(p.Prices))...)})
	}
	for _, a := range c.Engine.Agents.All() {
		u.Agents = append(u.Agents, understandAgent(a))
	}
	u.Rules, u.Approval, u.Channels = understandRules(c), understandApproval(c), understandChannels(c)
	u.Triggers, u.Removed = understandTriggers(c), understandRetention(c.Engine.Retention)
	return u
}

func understandAgent(a agent.Spec) understoodHand {
	h := understoodHand{Name: a.Name, Kind: string(a.Kind), Role: string(a.Role), Repository: a.Repository, Approval: a.Approval, AnalysisOnly: a.AnalysisOnly, AskFirst: a.AskFirst, TrustCheckout: a.TrustCheckout, Owner: a.Owner}
	if a.Kind == agent.LLM {
		h.Model = a.Model
	}
	if a.Restricted {
		h.DelegatesTo = append([]string{}, a.DelegatesTo...)
	}
	return h
}

// withoutPassword hides what stands before the @ of an address.
func withoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	if _, secret := u.User.Password(); secret {
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	}
	return u.String()
}

func (u understood) print(sh *console.Shell) error {
	optIn := map[string]string{"opt_in": ", hand-overs opt_in: only in tasks that enable them"}[u.Handoffs]
	fourEyes := map[bool]string{true: "on: nobody approves what they asked for",
		false: "off: one person may ask and approve"}[u.FourEyes]
	rows := [][]string{
		{"configuration", cmp.Or(console.Line(u.File), "no file; these are the defaults")}, {"listen",
			console.Line(u.Listen)},
		{"public URL", console.Line(u.PublicURL)}, {"database", console.Line(u.Database)}, {"data", console.Line(u.Data)},
		{"engine", fmt.Sprintf("%s, %s deep%s", console.Counted(u.Workers, "worker"), console.Counted(u.MaxDepth,
			"hop"), optIn)},
		{"four eyes", fourEyes},
	}
	named := func(name string) func(string) []string {
		return func(text string) []string { return []string{name, console.Line(text)} }
	}
	rows = slices.Concat(rows, each.Of(u.Repositories, understoodRepo.row), each.Of(u.Providers, understoodMind.row),
		each.Of(u.Agents, understoodHand.row),
		each.Of(u.Rules, named("rule")), u.Approval.rows(), each.Of(u.Channels, named("channel")), each.Of(u.Triggers,
			named("trigger")))
	if len(u.Removed) > 0 {
		rows = append(rows, []string{"removes", console.Parts(u.Removed...)})
	}
	if err := console.Table(sh.Out, rows); err != nil {
		return err
	}
	for _, w := range u.Warnings {
		sh.Hint("⚠ %s", console.Line(w))
	}
	return nil
}

func (r understoodRepo) row() []string {
	branch, approvers := cmp.Or(console.Line(r.Branch), "the branch of its HEAD"), ""
	if r.Deliver == patch.DeliverBranch {
		branch += ", a yes pushes the agent's branch"
	}
	if len(r.Approvers) > 0 {
		approvers = "approvers " + console.Line(console.Joined(r.Approvers, "or"))
	}
	return []string{"repository", console.Parts(console.Line(r.Name), console.Line(r.Source), branch, console.Counted(len(r.Checks), "check"), approvers)}
}

func (p understoodMind) row() []string {
	priced := "no prices"
	if len(p.Prices) > 0 {
		priced = "prices of " + console.Line(console.Joined(p.Prices, "and"))
	}
	return []string{"provider", console.Parts(console.Line(p.Name), console.Line(p.Kind), console.Line(p.BaseURL), console.Counted(p.Keys, "key"), priced)}
}

func (a understoodHand) row() []string {
	hands := "hands to anyone"
	switch {
	case len(a.DelegatesTo) > 0:
		hands = "hands to " + console.Line(console.Joined(a.DelegatesTo, "or"))
	case a.DelegatesTo != nil:
		hands = "hands to nobody"
	}
	only, asked, trusts, owner, mode := "", "", "", "", ""
	if a.AnalysisOnly {
		only = "analysis only"
	}
	if a.AskFirst {
		asked = "a person is asked first"
	}
	if a.TrustCheckout {
		trusts = "runs its callers' files as they are"
	}
	if a.Owner != "" {
		owner = "owner " + console.Line(a.Owner)
	}
	if a.Approval != "any" {
		mode = "approval " + console.Line(a.Approval)
	}
	return []string{"agent", console.Parts(console.Line(a.Name), console.Line(a.Kind), console.Line(a.Model), console.Line(a.Role), console.Line(a.Repository),
		only, asked, trusts, hands, owner, mode)}
}

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

// understandHandovers has one line for each rule about hand-overs and about calls of tools; none
// where there are none.
func understandHandovers(c *config.Config) []string {
	all := []string{}
	said := func(what, name, when string, need *int, from []string, deny bool) {
		rule := policy.Rule{Need: 1, From: from, Deny: deny}
		if need != nil {
			rule.Need = *need
		}
		all = append(all, name+" ("+what+"): "+rule.Outcome()+" when "+when)
	}
	for _, r := range c.File.Approval.Handovers {
		said("hand-overs", r.Name, r.When, r.Need, r.From, r.Deny)
	}
	for _, r := range c.File.Approval.Actions {
		what := "calls of tools"
		if r.Shadow {
			what += ", on trial, decides nothing"
		}
		said(what, r.Name, r.When, r.Need, r.From, r.Deny)
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
		all = append(all, console.Parts("webhook "+w.Name, cmp.Or(w.Format, "standard"), host(w.URL), strings.Join(w.Events, " ")))
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
