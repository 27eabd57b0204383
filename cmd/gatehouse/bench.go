package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/bench"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/store"
)

// BenchCmd measures the engine on a database that is made for it and removed.
type BenchCmd struct {
	Database string `help:"Measure beside this database, sqlite:PATH or postgres://…, in place of the configured one." placeholder:"URL"`
	Chains   int    `help:"How many chains, at each width." default:"200" placeholder:"N"`
	Parked   int    `help:"How many questions that wait for a person." default:"1000" placeholder:"N"`
}

// measured is what the command prints.
type measured struct {
	Dialect string                `json:"database"`
	Chains  []bench.Chains        `json:"chains"`
	Parked  bench.Parked          `json:"parked"`
	Peers   map[string]comparison `json:"peers"`
}

// comparison is a peer's figure, and ours divided by it.
type comparison struct {
	Figure float64 `json:"figure"`
	Ratio  float64 `json:"ratio"`
}

// Run makes the database, measures, removes it, and prints figures beside their yardsticks.
func (c *BenchCmd) Run(ctx context.Context, sh *console.Shell) error {
	if c.Chains < 1 || c.Parked < 1 {
		return &console.Failure{Code: console.ExitUsage, Message: "--chains and --parked need at least 1. Leave them out for the usual numbers."}
	}
	url := c.Database
	if url == "" {
		cfg, err := partOf(sh, "database")
		if err != nil {
			return err
		}
		url = cfg.Database
	}
	scratch, drop, err := store.Scratch(ctx, url)
	if err != nil {
		return databaseError(ctx, err)
	}
	m, err := c.measure(ctx, scratch)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := errors.Join(err, drop(last)); err != nil {
		return databaseError(ctx, err)
	}
	if sh.JSON {
		return sh.Document(m)
	}
	return m.print(sh)
}

func (c *BenchCmd) measure(ctx context.Context, url string) (m measured, err error) {
	n, err := bench.Start(ctx, url)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	for _, atOnce := range []int{1, 16} {
		chains, err := n.Chains(ctx, c.Chains, atOnce)
		if err != nil {
			return m, err
		}
		m.Chains = append(m.Chains, chains)
	}
	if m.Parked, err = n.Parked(ctx, c.Parked); err != nil {
		return m, err
	}
	m.Dialect, m.Peers = "PostgreSQL", map[string]comparison{
		"langgraph_chains_per_second":        beside(m.Chains[1].Pace, bench.LangGraphPostgres),
		"open_multi_agent_chains_per_second": beside(m.Chains[1].Pace, bench.OpenMultiAgentMemory),
		"langgraph_parked_bytes":             beside(m.Parked.Bytes, bench.LangGraphParkedPg),
	}
	if strings.HasPrefix(url, "sqlite:") {
		m.Dialect, m.Peers = "SQLite", map[string]comparison{
			"langgraph_chains_per_second": beside(m.Chains[0].Pace, bench.LangGraphSQLite),
			"langgraph_parked_bytes":      beside(m.Parked.Bytes, bench.LangGraphParkedLite),
		}
	}
	return m, nil
}

func beside(ours, theirs float64) comparison { return comparison{theirs, ours / theirs} }

// logged says how much a chain adds to the database's log, where the database tells.
func logged(bytes float64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f kB of the database's log", bytes/1000)
}

// least is how many statements of a kind a chain needs for a line of its own.
const least = 0.1

// print writes one line a figure.
func (m measured) print(sh *console.Shell) error {
	err := sh.Say("%s, on a database of its own; figures hold for this machine and this moment, ratios for longer.", m.Dialect)
	for _, c := range m.Chains {
		err = errors.Join(err, sh.Say("Chains of three agents, %2d at once: %.0f a second, %.1f durable commits each; %.1f times as long as as many bare commits (%.0f a second).",
			c.AtOnce, c.Pace, c.Commits, c.TimesBare, c.Bare))
		err = errors.Join(err, sh.Say("  Each of them: %.0f statements, %.0f rows written%s.", c.Statements, c.Rows, logged(c.Bytes)))
		for _, k := range c.Kinds {
			if k.Statements >= least {
				err = errors.Join(err, sh.Say("    %5.1f %-28s %5.1f rows, %6.2f ms", k.Statements, k.Name, k.Rows, k.MS))
			}
		}
	}
	err = errors.Join(err, sh.Say("A question that waits for a person: %.1f kB, all indexes and history included; %.1f ms from the yes to the end (median).", m.Parked.Bytes/1000, m.Parked.ResumeMS))
	for _, p := range []struct{ key, text string }{
		{"langgraph_chains_per_second", "LangGraph.js 1.2.9 with its checkpoints in the same kind of database: %.0f chains a second; this is %.1f times that."},
		{"open_multi_agent_chains_per_second", "open-multi-agent 1.16.1, which stores nothing: %.0f chains a second; this is %.2f times that."},
		{"langgraph_parked_bytes", "LangGraph.js keeps %.0f bytes for a run that waits for a person; this is %.2f times that."},
	} {
		if c, ok := m.Peers[p.key]; ok {
			err = errors.Join(err, sh.Say(p.text, c.Figure, c.Ratio))
		}
	}
	return errors.Join(err, sh.Say("The others were measured on 2 cores with PostgreSQL 15 and Node 20; only a run on one machine compares well."))
}
