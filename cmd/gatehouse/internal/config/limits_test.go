package config

import (
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
)

func TestLimitsOfTheEngine(t *testing.T) {
	c, err := Parse("", nil, env())
	if err != nil {
		t.Fatal(err)
	}
	s := c.Engine.Settings
	// H11, H19–H21: the figures of the sources are the defaults.
	if *s.Budget.Tokens != 150_000 || *s.Budget.MicroUSD != 5_000_000 || s.Budget.Agents != nil || s.Budget.Time != nil {
		t.Errorf("the budget is %+v", s.Budget)
	}
	for name, want := range map[string][3]int64{"simple": {0, 10_000, 1}, "medium": {2, 25_000, 3}, "complex": {5, 150_000, 5}} {
		tier := s.Tiers[name]
		if int64(*tier.Handoffs) != want[0] || *tier.Tokens != want[1] || int64(*tier.Agents) != want[2] {
			t.Errorf("%s is %+v, want %v", name, tier, want)
		}
	}
	if s.Breaker.Failures != 3 || s.Breaker.Cooldown != time.Minute || s.MaxRemote != 3 || s.Classify || s.OptIn {
		t.Errorf("breaker %+v, remote %d, classify %v", s.Breaker, s.MaxRemote, s.Classify)
	}
	// P45, X6b: the sources leave these open; X5: their 120 seconds for an acknowledgement.
	if s.Spawn.Children != 5 || s.Spawn.Timeout != 5*time.Minute || s.KillAfter != 10*time.Second || s.AckTimeout != 2*time.Minute {
		t.Errorf("spawn %+v, kill after %s, acknowledged within %s", s.Spawn, s.KillAfter, s.AckTimeout)
	}
	// P45, P50, A34, A35: no limit of one agent's own, a day, off, and the source's 50.
	if s.Spawn.PerAgent != 0 || s.Spawn.Remember != 24*time.Hour || s.QueueTimeout != 0 || s.Inbox != 50 {
		t.Errorf("spawn %+v, queued for %s, inbox of %d", s.Spawn, s.QueueTimeout, s.Inbox)
	}
	if s.Asks != (orchestrator.AskSettings{PerRun: 100, OpenPerTask: 20, PerMinute: 60}) {
		t.Errorf("asks %+v", s.Asks)
	}
	text := "engine:\n  budget: {usd: 0.5, agents: 2, time: 90s}\n  tiers: {simple: {tokens: 7}}\n  complexity: auto\n  cycle: bounded\n  handoffs: opt_in\n  breaker: {failures: 0, cooldown: 5s}\n  max_remote_hops: 0\n  spawn: {children: 2, timeout: 7s, per_agent: 4, remember: 8s}\n  queue_timeout: 6s\n  inbox: 9\n  kill_after: 3s\n  ack_timeout: 9s\n  asks: {per_run: 7, open_per_task: 3, per_minute: 2}\n"
	if c, err = Parse("", []byte(text), env()); err != nil {
		t.Fatal(err)
	}
	s = c.Engine.Settings
	if *s.Budget.Tokens != 150_000 || *s.Budget.MicroUSD != 500_000 || *s.Budget.Agents != 2 || *s.Budget.Time != 90*time.Second {
		t.Errorf("the budget is %+v", s.Budget)
	}
	if s.Spawn.Children != 2 || s.Spawn.Timeout != 7*time.Second || s.KillAfter != 3*time.Second || s.AckTimeout != 9*time.Second {
		t.Errorf("spawn %+v, kill after %s, acknowledged within %s", s.Spawn, s.KillAfter, s.AckTimeout)
	}
	if s.Spawn.PerAgent != 4 || s.Spawn.Remember != 8*time.Second || s.QueueTimeout != 6*time.Second || s.Inbox != 9 {
		t.Errorf("spawn %+v, queued for %s, inbox of %d", s.Spawn, s.QueueTimeout, s.Inbox)
	}
	if s.Asks != (orchestrator.AskSettings{PerRun: 7, OpenPerTask: 3, PerMinute: 2}) {
		t.Errorf("asks %+v", s.Asks)
	}
	if simple := s.Tiers["simple"]; *simple.Tokens != 7 || *simple.Handoffs != 0 {
		t.Errorf("simple is %+v", simple)
	}
	if s.Breaker.Failures != 0 || s.Breaker.Cooldown != 5*time.Second || s.MaxRemote != 0 || !s.Classify || !s.OptIn || s.Cycle != "bounded" {
		t.Errorf("breaker %+v, remote %d, classify %v", s.Breaker, s.MaxRemote, s.Classify)
	}
}

func TestLimitsThatAreNone(t *testing.T) {
	for text, says := range map[string]string{
		"budget: {tokens: -1}":            "budget",
		"budget: {usd: -0.1}":             "usd",
		"budget: {agents: 0}":             "budget",
		"budget: {token: 5}":              "tokens",
		"tiers: {hard: {tokens: 5}}":      "hard",
		"tiers: {simple: {handoffs: -1}}": "budget",
		"complexity: sometimes":           "sometimes",
		"spawn: {per_agent: -1}":          "out of range",
		"asks: {per_minute: -1}":          "out of range",
		"asks: {per_hour: 1}":             "per_hour",
		"queue_timeout: 0s":               "no length of time",
		"inbox: -1":                       "out of range",
		"handoffs: sometimes":             "on or opt_in",
		"breaker: {failures: -1}":         "out of range",
		"breaker: {cooldown: 0s}":         "no length of time",
		"max_remote_hops: -1":             "out of range",
		"budget: {time: soon}":            "soon",
	} {
		_, err := Parse("", []byte("engine:\n  "+text+"\n"), env())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
