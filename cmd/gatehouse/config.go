package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/orchestrator/agent"
)

// ConfigCmd looks at the configuration.
type ConfigCmd struct {
	Check  ConfigCheckCmd  `cmd:"" help:"Print what the configuration says; nothing is made or started."`
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
	FourEyes     bool             `json:"four_eyes"`
	Repositories []understoodRepo `json:"repositories"`
	Agents       []understoodHand `json:"agents"`
	Rules        []string         `json:"rules"`
	Warnings     []string         `json:"warnings"`
}

type understoodRepo struct {
	Name    string   `json:"name"`
	Source  string   `json:"source"`
	Branch  string   `json:"branch"` // "" is what the source's HEAD names
	Deliver string   `json:"deliver"`
	Checks  []string `json:"checks"`
}

type understoodHand struct {
	Name         string   `json:"name"`
	Kind         string   `json:"kind"`
	Role         string   `json:"role"`
	Repository   string   `json:"repository"`
	Approval     string   `json:"approval"`
	AnalysisOnly bool     `json:"analysis_only"`
	DelegatesTo  []string `json:"delegates_to"` // null: anyone
}

// Run prints it, with what deserves a look.
func (c *ConfigCheckCmd) Run(sh *shell) error {
	cfg, err := sh.config()
	if err != nil {
		return err
	}
	u := understand(cfg)
	if sh.JSON {
		return sh.document(u)
	}
	return u.print(sh)
}

func understand(c *config.Config) understood {
	u := understood{
		File: c.Path, Listen: c.Listen, PublicURL: c.PublicURL, Database: withoutPassword(c.Database), Data: c.Data, FourEyes: c.FourEyes,
		Workers: c.Engine.Settings.Workers, MaxDepth: c.Engine.Settings.MaxDepth,
		Repositories: []understoodRepo{}, Agents: []understoodHand{}, Rules: []string{}, Warnings: append(append([]string{}, c.Warnings...), c.Hints()...),
	}
	for _, name := range slices.Sorted(maps.Keys(c.Engine.Repositories)) {
		r := c.Engine.Repositories[name]
		u.Repositories = append(u.Repositories, understoodRepo{name, withoutPassword(r.Source), r.Branch, r.Deliver, append([]string{}, r.Checks...)})
	}
	for _, a := range c.Engine.Agents.All() {
		u.Agents = append(u.Agents, understandAgent(a))
	}
	for _, r := range c.File.Approval.Rules {
		need := 1
		if r.Need != nil {
			need = *r.Need
		}
		text := fmt.Sprintf("%s: %d of %s", r.Name, need, strings.Join(r.From, ", "))
		switch {
		case r.Deny:
			text = r.Name + ": deny"
		case need == 0:
			text = r.Name + ": passes by itself"
		case len(r.From) == 0:
			text = fmt.Sprintf("%s: %s", r.Name, counted(need, "approver"))
		}
		u.Rules = append(u.Rules, text+" when "+r.When)
	}
	return u
}

func understandAgent(a agent.Spec) understoodHand {
	h := understoodHand{Name: a.Name, Kind: string(a.Kind), Role: string(a.Role), Repository: a.Repository, Approval: a.Approval, AnalysisOnly: a.AnalysisOnly}
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

func (u understood) print(sh *shell) error {
	file := line(u.File)
	if file == "" {
		file = "no file; these are the defaults"
	}
	rows := [][]string{
		{"configuration", file}, {"listen", line(u.Listen)}, {"public URL", line(u.PublicURL)},
		{"database", line(u.Database)}, {"data", line(u.Data)},
		{"engine", fmt.Sprintf("%s, %s deep", counted(u.Workers, "worker"), counted(u.MaxDepth, "hop"))},
		{"four eyes", map[bool]string{true: "on: nobody approves what they asked for", false: "off: one person may ask and approve"}[u.FourEyes]},
	}
	for _, r := range u.Repositories {
		branch := line(r.Branch)
		if branch == "" {
			branch = "the branch of its HEAD"
		}
		rows = append(rows, []string{"repository", parts(line(r.Name), line(r.Source), branch, counted(len(r.Checks), "check"))})
	}
	for _, a := range u.Agents {
		hands := "hands to anyone"
		if a.DelegatesTo != nil {
			hands = "hands to " + line(joined(a.DelegatesTo, "or"))
			if len(a.DelegatesTo) == 0 {
				hands = "hands to nobody"
			}
		}
		only := ""
		if a.AnalysisOnly {
			only = "analysis only"
		}
		rows = append(rows, []string{"agent", parts(line(a.Name), line(a.Kind), line(a.Role), line(a.Repository), only, hands)})
	}
	for _, r := range u.Rules {
		rows = append(rows, []string{"rule", line(r)})
	}
	if err := table(sh.out, rows); err != nil {
		return err
	}
	for _, w := range u.Warnings {
		sh.hint("⚠ %s", line(w))
	}
	return nil
}
