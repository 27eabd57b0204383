package main

import (
	"fmt"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/wire"
)

// configOf reads the file that --config names, with everything that the server needs.
func configOf(sh *console.Shell) (*config.Config, error) {
	return taken(config.Load(sh.Globals.Config, sh.Env))
}

// partOf reads it for a command that uses only what stands at the keys; a secret that is
// missing elsewhere is the server's matter.
func partOf(sh *console.Shell, keys ...string) (*config.Config, error) {
	return taken(config.LoadFor(sh.Globals.Config, sh.Env, keys...))
}

func taken(c *config.Config, err error) (*config.Config, error) {
	if err == nil {
		return c, nil
	}
	return nil, &console.Failure{Code: console.ExitUsage, Message: console.Block(err.Error()), Cause: err}
}

// rulesOf reads rules of approval for `policy test`: those of a file or, where none is named,
// those of --config. It is nil where there are none, so that the server tries its own.
func rulesOf(sh *console.Shell, file string) ([]wire.PolicyRule, error) {
	var written []config.Rule
	if file != "" {
		rules, err := config.LoadRules(file, sh.Env)
		if err != nil {
			return nil, err
		}
		written = rules
	} else {
		cfg, err := config.LoadFor(sh.Globals.Config, sh.Env, "approval", "groups")
		if err != nil || cfg.Path == "" && len(cfg.File.Approval.Rules) == 0 {
			return nil, err
		}
		written = cfg.File.Approval.Rules
	}
	rules := make([]wire.PolicyRule, len(written))
	for i, r := range written {
		rules[i] = wire.PolicyRule{Name: r.Name, When: r.When, Need: r.Need, From: r.From, Deny: r.Deny, Shadow: r.Shadow, Expires: r.Expires}
	}
	return rules, nil
}

// unset has a line for each text of the configuration that cannot be known here: the
// server's environment may have it.
func unset(c *config.Config) []string {
	var all []string
	for _, u := range c.Unset() {
		all = append(all, fmt.Sprintf("%s: %s is not looked at: %s The server does not start without it.", u.Place, u.Key, u.Why))
	}
	return all
}
