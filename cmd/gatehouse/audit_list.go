package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/record/history"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// AuditListCmd searches the history.
type AuditListCmd struct {
	Filter []string `arg:"" optional:"" help:"key:value, key:a,b for either, -key:value for not, time:30d or time:A..B (days are UTC), and words."`
	List   string   `help:"What is listed." enum:"requests,delegations,events" default:"requests" placeholder:"requests"`
	Limit  int      `help:"At most so many." default:"50" placeholder:"N"`
}

// Run prints one line for each row, newest first.
func (c *AuditListCmd) Run(ctx context.Context, sh *shell) error {
	if c.Limit < 1 {
		return usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	found, err := api.Audit(ctx, client.Line{List: c.List, Filter: typed(c.Filter)}, c.Limit)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(found.Raw)
	}
	if len(found.Items) == 0 {
		sh.hint("Nothing matches. Leave a filter out to see more.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, item := range found.Items {
		if rows[i], err = c.row(sh, item); err != nil {
			return fmt.Errorf("read the answer of the server: %w", err)
		}
	}
	if err := table(sh.out, rows); err != nil {
		return err
	}
	if found.Next != "" {
		sh.hint("There are more: --limit %d", 2*c.Limit)
	}
	return nil
}

// typed is the line that the arguments are: what the shell's quotes kept together, such as
// via:"webhook ci-failed", stays together.
func typed(args []string) string {
	all := make([]string, len(args))
	for i, arg := range args {
		key, value, keyed := strings.Cut(arg, ":")
		if keyed && !strings.ContainsAny(key, " \"") && strings.Contains(value, " ") && !strings.Contains(value, `"`) {
			arg = key + `:"` + strings.ReplaceAll(value, `\`, `\\`) + `"`
		}
		all[i] = arg
	}
	return strings.Join(all, " ")
}

// row is one item as columns. Everything in it is foreign.
func (c *AuditListCmd) row(sh *shell, item json.RawMessage) ([]string, error) {
	switch history.List(c.List) {
	case history.Delegations:
		var d wire.Delegation
		err := json.Unmarshal(item, &d)
		return []string{when(d.CreatedAt), sh.state(d.State, 0), line(d.ID), line(d.To), brief(d.Text, 48)}, err
	case history.Events:
		var e history.Found
		err := json.Unmarshal(item, &e)
		return []string{when(e.At), line(e.Type), line(e.Actor), line(e.TaskID), fmt.Sprint(e.N)}, err
	}
	var r history.Row
	err := json.Unmarshal(item, &r)
	var by []string
	for _, d := range r.Deciders {
		who := strings.TrimSpace(line(d.Name + " " + string(d.Channel)))
		if d.Verdict != "approve" {
			who += " (" + strings.ReplaceAll(line(d.Verdict), "_", " ") + ")"
		}
		by = append(by, who)
	}
	outcome := sh.state(badge.Arrived(r.State, r.Pushed != ""), 0)
	if r.Landed != "" {
		outcome += " " + line(r.Landed[:min(7, len(r.Landed))])
	}
	return []string{when(r.At), outcome, line(r.ID), line(r.Requester), line(r.Chain.String()), line(r.Repository), line(r.Rule), strings.Join(by, ", "), brief(r.Title, 40)}, err
}

// when is a moment in a list: UTC, to the minute.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
