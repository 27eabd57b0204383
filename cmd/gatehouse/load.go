package main

import (
	"context"
	"fmt"
	"path/filepath"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/record/event"
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
func rulesOf(sh *console.Shell, file string) (wire.PolicyTest, error) {
	if file != "" {
		return config.LoadRules(file, sh.Env)
	}
	cfg, err := config.LoadFor(sh.Globals.Config, sh.Env, "approval", "groups")
	if err != nil || cfg.Path == "" && len(cfg.File.Approval.Rules)+len(cfg.File.Approval.Actions) == 0 {
		return wire.PolicyTest{}, err
	}
	return config.Tried(cfg.File), nil
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

// systemActor is who the audit names for what a server does by itself.
const systemActor = "system"

// record writes into the history that this node takes a configuration, where it differs
// from the one that any node took last. It reports whether its rules count; see
// Store.RecordConfiguration.
func (h *house) record(ctx context.Context, c *config.Config, by event.Taken) (counts bool, err error) {
	by.Node = h.node
	if c.Path != "" {
		by.File = filepath.Base(c.Path)
	}
	if counts, err = h.store.RecordConfiguration(ctx, by, c.Recorded()); err != nil {
		return false, fmt.Errorf("the configuration could not be recorded: %w", err)
	}
	h.older.Store(!counts)
	return counts, nil
}

// take makes the rules of the start count, once this node listens and before it works: one
// that does not come up changes nothing for the others.
func (h *house) take(ctx context.Context) error {
	counts, err := h.record(ctx, h.cfg, event.Taken{Actor: systemActor, How: event.AtStart})
	if err == nil && !counts {
		h.log.Warn("the rules of this configuration were in force before, and another node works by those that took their place; this node counts no yes and lands nothing. " + makeCount)
	}
	return err
}

// makeCount says what to do on a node that has started with rules of before.
const makeCount = "Give it the configuration of the others and have it load that (SIGHUP, or Settings → Configuration); if the rules that it has shall count again, have it load them as they are"

// behind says why this node counts no yes and lands nothing, "" where it does; older is set
// where it started with rules of before.
func (h *house) behind(ctx context.Context) (why string, older bool, err error) {
	refused, err := h.gateway.Behind(ctx)
	switch {
	case err != nil || refused == nil:
		return "", false, err
	case !h.older.Load():
		return refused.Message, false, nil
	}
	return "The rules of this node were in force before, and another node worked by those that took their place when this one started. It counts no yes and lands nothing. " + makeCount + ".", true, nil
}

// reloadFor is reload for a person.
func (h *house) reloadFor(ctx context.Context, actor string) error {
	return h.reload(ctx, event.Taken{Actor: actor, How: "reload"})
}
