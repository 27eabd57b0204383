package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
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
func (c *AuditListCmd) Run(ctx context.Context, sh *console.Shell) error {
	if c.Limit < 1 {
		return console.Usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	api, err := sh.Client(ctx)
	if err != nil {
		return err
	}
	found, err := api.Audit(ctx, client.Line{List: c.List, Filter: typed(c.Filter)}, c.Limit)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(found.Raw)
	}
	if len(found.Items) == 0 {
		sh.Hint("Nothing matches. Leave a filter out to see more.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, item := range found.Items {
		if rows[i], err = c.row(sh, item); err != nil {
			return fmt.Errorf("read the answer of the server: %w", err)
		}
	}
	if err := console.Table(sh.Out, rows); err != nil {
		return err
	}
	if found.Next != "" {
		sh.Hint("There are more: --limit %d", 2*c.Limit)
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
func (c *AuditListCmd) row(sh *console.Shell, item json.RawMessage) ([]string, error) {
	switch history.List(c.List) {
	case history.Delegations:
		var d wire.Delegation
		err := json.Unmarshal(item, &d)
		return []string{when(d.CreatedAt), sh.State(d.State, 0), console.Line(d.ID), console.Line(d.To), console.Brief(d.Text, 48)}, err
	case history.Events:
		var e history.Found
		err := json.Unmarshal(item, &e)
		return []string{when(e.At), console.Line(e.Type), console.Line(e.Actor), console.Line(e.TaskID), fmt.Sprint(e.N)}, err
	}
	var r history.Row
	err := json.Unmarshal(item, &r)
	var by []string
	for _, d := range r.Deciders {
		who := strings.TrimSpace(console.Line(d.Name + " " + string(d.Channel)))
		if d.Verdict != "approve" {
			who += " (" + strings.ReplaceAll(console.Line(d.Verdict), "_", " ") + ")"
		}
		by = append(by, who)
	}
	outcome := sh.State(badge.Arrived(r.State, r.Pushed != ""), 0)
	if r.Landed != "" {
		outcome += " " + console.Line(r.Landed[:min(7, len(r.Landed))])
	}
	return []string{when(r.At), outcome, console.Line(r.ID), console.Line(r.Requester), console.Line(r.Chain), console.Line(r.Repository), console.Line(r.Rule), strings.Join(by, ", "), console.Brief(r.Title, 40)}, err
}

// when is a moment in a list: UTC, to the minute.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
