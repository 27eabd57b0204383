package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/workflow"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
	"gatehouse/web/wire"

	"go.yaml.in/yaml/v3"
)

// server reads where to listen.
func (b *builder) server(c *Config) {
	s := b.file.Server
	c.Listen = s.Listen
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		b.bad(at("server", "listen"), "%q is no address to listen on. Write host:port, such as 127.0.0.1:8080.", c.Listen)
	}
	c.PublicURL = cmp.Or(strings.TrimSuffix(s.PublicURL, "/"), Site(c.Listen))
	if u, ok := webAddress(c.PublicURL); !ok || u.Path != "" {
		b.bad(at("server", "public_url"), "%q is no address of a site. Write http:// or https:// with a host and no path.", s.PublicURL)
	}
	location, err := time.LoadLocation(s.Timezone)
	if err != nil {
		b.bad(at("server", "timezone"), "there is no time zone %q. Write a name such as Europe/Berlin.", s.Timezone)
		location = time.UTC
	}
	c.Location = location
}

// settings reads the engine's figures.
func (b *builder) settings() orchestrator.Settings {
	e := b.file.Engine
	s := orchestrator.Settings{
		Workers: e.Workers, MaxAttempts: e.MaxAttempts, MaxDepth: cmp.Or(e.MaxDepth, chain.DefaultMaxDepth), MaxHandoffs: *e.MaxHandoffs,
		Lease: span(e.Lease), AckTimeout: span(e.AckTimeout), CheckTime: span(e.CheckTime), Cycle: e.Cycle, Capacity: e.Capacity,
		Spawn:        orchestrator.SpawnSettings{Children: e.Spawn.Children, PerAgent: e.Spawn.PerAgent, Timeout: span(e.Spawn.Timeout), Remember: span(e.Spawn.Remember)},
		Asks:         orchestrator.AskSettings{PerRun: e.Asks.PerRun, OpenPerTask: e.Asks.OpenPerTask, PerMinute: e.Asks.PerMinute},
		QueueTimeout: span(e.QueueTime), Inbox: e.Inbox, KillAfter: span(e.KillAfter), RecordEnds: *e.RecordEnds, DailyUSD: e.DailyUSD,
	}
	if s.MaxHandoffs < 0 {
		b.bad(at("engine", "max_handoffs"), "max_handoffs: %d is below 0.", s.MaxHandoffs)
	}
	if e.DailyUSD < 0 || e.DailyUSD > 1e9 || math.IsNaN(e.DailyUSD) {
		b.bad(at("engine", "daily_usd"), "daily_usd: %v is no amount of money. Write USD, 0 or more.", e.DailyUSD)
	}
	if s.Lease < time.Second {
		b.bad(at("engine", "lease"), "lease: %s is too short. Write 1s or more.", s.Lease)
	}
	b.limits(&s)
	return s
}

func (b *builder) oneOf(path []any, value string, allowed ...string) { b.among(path, value, allowed) }

func (b *builder) among(path []any, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		b.bad(path, "%q is unknown here. Write %s.", value, strings.Join(allowed, " or "))
	}
}

// agents makes the registry.
func (b *builder) agents() *agent.Registry {
	names := slices.Sorted(maps.Keys(b.file.Agents))
	specs := each.Of(names, func(name string) agent.Spec { return b.agent(name, b.file.Agents[name]) })
	registry, err := agent.NewRegistry(specs)
	if err != nil {
		b.bad(at("agents"), "%v.", err)
		registry, _ = agent.NewRegistry(nil)
		return registry
	}
	for _, s := range specs {
		b.references(s, registry, names)
	}
	if err := workflow.Reaches(specs); err != nil {
		b.bad(at("agents"), "%v.", err)
	}
	return registry
}

// agent makes one agent's declaration.
func (b *builder) agent(name string, a Agent) agent.Spec {
	where := at("agents", name)
	s := agent.Spec{
		Name: name, Kind: agent.Kind(a.Kind), Role: agent.Role(a.Role), Capabilities: a.Capabilities, Repository: a.Repository, Writes: a.Writes,
		AnalysisOnly: a.AnalysisOnly, AskFirst: a.AskFirst, TrustCheckout: a.TrustCheckout, Approval: a.Approval, Owner: a.Owner, Prompt: a.Prompt, Command: a.Command, Protocol: a.Protocol,
		Env: a.Env, OutputLimit: a.OutputLimit, Model: a.Model, URL: a.URL, Token: a.Token, Card: a.Card,
		Timeout: span(a.Timeout),
	}
	if a.DelegatesTo != nil {
		s.DelegatesTo, s.Restricted = *a.DelegatesTo, true
	}
	if a.Reads != nil {
		s.Reads = append([]string{}, *a.Reads...)
	}
	s.Writable = each.Of(a.Writable, b.path)
	b.modelKeys(where, a, &s)
	s.Output = b.output(append(where, "output"), s.Name, a.Output)
	s.Steps = each.Of(a.Steps, stepOf)
	b.kind(where, a, s)
	b.elsewhere(where, a, s)
	b.among(append(where, "approval"), s.Approval, origin.Modes())
	if s.Approval == "auto" && !s.AnalysisOnly {
		b.bad(append(where, "approval"), "agent %s: approval: auto is only for agents with analysis_only: true. A patch needs a person, or a rule with need: 0.", name)
	}
	b.confine(where, a, &s)
	if a.OutputLimit < 0 {
		b.bad(append(where, "output_limit"), "output_limit: %d is below 0. Write bytes.", a.OutputLimit)
	}
	return s
}

func stepOf(s Step) agent.Step {
	return agent.Step{ID: s.ID, Agent: s.Agent, Task: s.Task, If: s.If, Goto: s.Goto, Limit: s.Limit,
		Produces: s.Produces,
		Parallel: each.Of(s.Parallel, stepOf)}
}

// references checks what an agent names elsewhere.
func (b *builder) references(s agent.Spec, registry *agent.Registry, names []string) {
	where := at("agents", s.Name)
	for i, to := range s.DelegatesTo {
		if _, ok := registry.Get(to); !ok {
			b.bad(append(where, "delegates_to", i), "agent %s may hand to %q, which is no agent.%s", s.Name, to, hint(to, names))
		}
	}
	if s.Repository != "" {
		if _, ok := b.file.Repositories[s.Repository]; !ok {
			b.bad(append(where, "repository"), "agent %s works on %q, which is no repository. Add it under repositories.", s.Name, s.Repository)
		}
	}
	if s.Kind != agent.Workflow {
		return
	}
	known := func(name string) bool { _, ok := registry.Get(name); return ok }
	for _, p := range workflow.Validate(s.Steps, known) {
		b.bad(append(where, stepPath(p.Step)...), "agent %s: %s: %s", s.Name, p.Step, p.Message)
	}
}

func hint(word string, names []string) string {
	if near := Nearest(word, names); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	return " Add it under agents, or take it out."
}

// stepPath reads "steps[2].parallel[0].if" as a path of the file.
func stepPath(s string) []any {
	var path []any
	for part := range strings.SplitSeq(s, ".") {
		name, index, has := strings.Cut(part, "[")
		path = append(path, name)
		if has {
			var i int
			if _, err := fmt.Sscanf(index, "%d]", &i); err == nil {
				path = append(path, i)
			}
		}
	}
	return path
}

// policy compiles the rules.
func (b *builder) policy() *policy.Policy {
	rules := b.rulesOf("rules", b.file.Approval.Rules)
	policy, problems := policy.CompileRules(rules, b.file.Groups)
	b.ruleProblems("rules", rules, problems)
	return policy
}

// onNo checks what a no to a hand-over does.
func (b *builder) onNo(path []any, s string) {
	if err := policy.CheckOnNo(s); err != nil {
		b.bad(path, "%v.", err)
	}
}

// handovers compiles the rules about hand-overs.
func (b *builder) handovers() *policy.HandoverPolicy {
	b.onNo(at("approval", "on_no"), b.file.Approval.OnNo)
	var rules []policy.RuleConfig
	for i, r := range b.file.Approval.Handovers {
		b.onNo(at("approval", "handovers", i, "on_no"), r.OnNo)
		rules = append(rules, policy.RuleConfig{Name: r.Name, When: r.When, Need: r.Need, From: r.From, Deny: r.Deny, OnNo: r.OnNo,
			Expires: b.duration(at("approval", "handovers", i, "expires"), r.Expires, 0)})
	}
	policy, problems := policy.CompileHandovers(rules, b.file.Groups)
	b.ruleProblems("handovers", rules, problems)
	return policy
}

// actions compiles the rules about calls of tools.
func (b *builder) actions() *policy.ActionPolicy {
	rules := b.rulesOf("actions", b.file.Approval.Actions)
	policy, problems := policy.CompileActions(rules, b.file.Groups)
	b.ruleProblems("actions", rules, problems)
	return policy
}

// rulesOf are the rules of a list as they are compiled.
func (b *builder) rulesOf(list string, written []wire.PolicyRule) []policy.RuleConfig {
	var rules []policy.RuleConfig
	for i, r := range written {
		rules = append(rules, policy.RuleConfig{Name: r.Name, When: r.When, Need: r.Need, From: r.From, Deny: r.Deny, Shadow: r.Shadow,
			Expires: b.duration(at("approval", list, i, "expires"), r.Expires, 0)})
	}
	return rules
}

// ruleProblems adds what is wrong with the rules of a list, each at its place in the file.
func (b *builder) ruleProblems(list string, rules []policy.RuleConfig, problems []policy.Problem) {
	for _, p := range problems {
		path := at("approval", list, p.Rule, p.Field)
		problem := b.doc.at(b.doc.find(path...), fmt.Sprintf("rule %q: %s", rules[p.Rule].Name, p.String()))
		if n := b.doc.find(path...); p.Column > 0 && n != nil && n.Kind == yaml.ScalarNode {
			problem.Line, problem.Column = b.doc.inside(n, p.Line, p.Column)
		}
		b.note(b.doc.find(path...), problem)
	}
}

// webAddress reads an address of the web; ok is false where it is none.
func webAddress(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Site is how people of this machine open a server that listens there, where no public_url
// says how others do: by one name, because a browser that signed in at localhost is a
// stranger at 127.0.0.1. The server's start line, sign-in links, pages, cards and what the
// command line prints all begin with it.
func Site(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	ip, err := netip.ParseAddr(host)
	if host == "" || err == nil && (ip.IsUnspecified() || ip == netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
