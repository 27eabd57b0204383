package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/handlers"
)

// ConfigShowCmd prints every value and where it comes from.
type ConfigShowCmd struct{}

// Run prints one line a value.
func (c *ConfigShowCmd) Run(sh *console.Shell) error {
	cfg, err := partOf(sh)
	if err != nil {
		return err
	}
	values := cfg.Values()
	document := map[string]any{"file": cfg.Path, "items": values, "next": nil}
	return console.List(sh, document, values, "", func(v config.Value) []string {
		return []string{console.Line(v.Key), console.Line(v.Value), console.Line(setIn(cfg.Path, v))}
	})
}

// setIn says where a value comes from: gatehouse.yaml:12, ${PORT}, or default.
func setIn(path string, v config.Value) string {
	if v.Line == 0 {
		return "default"
	}
	from := filepath.Base(path) + ":" + strconv.Itoa(v.Line)
	for _, name := range v.Env {
		from += ", ${" + name + "}"
	}
	return from
}

// loaded is a configuration and when it was read.
type loaded struct {
	cfg *config.Config
	at  time.Time
}

// configuration is what is in force, for the settings: as it was loaded last, but for what
// is read at the start only; and what the file would change now.
func (h *house) configuration(ctx context.Context) (handlers.Configuration, error) {
	now := h.loaded.Load()
	why, _, err := h.behind(ctx)
	if err != nil {
		return handlers.Configuration{}, err
	}
	c := handlers.Configuration{File: now.cfg.Path, LoadedAt: now.at, Warnings: append(append([]string{}, now.cfg.Warnings...), now.cfg.Hints()...)}
	if why != "" {
		c.Warnings = append([]string{why}, c.Warnings...)
	}
	start := byKey(h.cfg)
	for _, v := range now.cfg.Values() {
		s := handlers.Setting{Key: v.Key, Value: v.Value, Line: v.Line, Env: v.Env, Restart: v.Restart}
		if was := start[v.Key]; v.Restart && was.Value != v.Value {
			s.Value, s.Line, s.Env, s.Pending = was.Value, was.Line, was.Env, v.Value
		}
		if v.Key == "server.listen" && s.Value != h.cfg.Listen {
			s.Value, s.Line, s.Flag = h.cfg.Listen, 0, "--listen"
		}
		c.Settings = append(c.Settings, s)
	}
	if now.cfg.Path == "" {
		return c, nil
	}
	disk, err := config.Load(now.cfg.Path, os.LookupEnv)
	if err != nil {
		c.Problem = err.Error()
		return c, nil
	}
	c.Changed = changes(byKey(now.cfg), byKey(disk))
	return c, nil
}

// byKey is a configuration's values by their keys.
func byKey(c *config.Config) map[string]config.Value {
	all := map[string]config.Value{}
	for _, v := range c.Values() {
		all[v.Key] = v
	}
	return all
}

// changes names the keys that differ. Of a secret nobody can tell here whether it does.
func changes(was, is map[string]config.Value) []string {
	var all []string
	for key, v := range is {
		if old, ok := was[key]; !ok || old.Value != v.Value {
			all = append(all, key)
		}
	}
	for key := range was {
		if _, ok := is[key]; !ok {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}
