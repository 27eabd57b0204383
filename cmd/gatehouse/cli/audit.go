package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/record/history"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// AuditExportCmd prints the history.
type AuditExportCmd struct {
	ID     string `arg:"" optional:"" help:"One request: the evidence on it, as a bundle."`
	From   string `help:"From this time or day (UTC) on." placeholder:"2026-07-01"`
	To     string `help:"Before this time or day (UTC)." placeholder:"2026-10-01"`
	Filter string `help:"Only what this line takes, newest first; days are UTC." placeholder:"approver:bob time:30d"`
	List   string `help:"What the line is for: requests, delegations or events." enum:",requests,delegations,events" default:"" placeholder:"requests"`
	Format string `help:"jsonl (sealed, audit verify checks it) or csv (no seal)." enum:"jsonl,csv" default:"jsonl" placeholder:"jsonl"`
}

// Run streams the history to stdout.
func (c *AuditExportCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if sh.JSON && c.Format == "csv" {
		return console.Usage("--json and --format csv exclude each other. Leave one out.")
	}
	if c.ID != "" {
		if c.Filter+c.List+c.From+c.To != "" || c.Format == "csv" {
			return console.Usage("The evidence on one request is a bundle of its own. Leave the other flags out.")
		}
		return api.ExportRequest(ctx, c.ID, rawOut(sh))
	}
	if c.Filter != "" || c.List != "" {
		if c.From != "" || c.To != "" {
			return console.Usage("--filter and --list exclude --from and --to. Write the period into the line: time:2026-07-01..2026-09-30")
		}
		return api.ExportLine(ctx, client.Line{List: c.List, Filter: c.Filter}, c.Format, rawOut(sh))
	}
	return api.Export(ctx, c.Format, c.From, c.To, rawOut(sh))
}

// rawOut is stdout without the plain signs of ui.md: an export is exact.
func rawOut(sh *console.Shell) io.Writer {
	if w, ok := sh.Out.(console.AsciiWriter); ok {
		return w.To
	}
	return sh.Out
}

// AuditListCmd searches the history.
type AuditListCmd struct {
	Filter []string `arg:"" optional:"" help:"key:value, key:a,b for either, -key:value for not, time:30d or time:A..B (days are UTC), and words."`
	List   string   `help:"What is listed." enum:"requests,delegations,events" default:"requests" placeholder:"requests"`
	Limit  int      `help:"At most so many." default:"50" placeholder:"N"`
}

// Run prints one line for each row, newest first.
func (c *AuditListCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Limit < 1 {
		return console.Usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	found, err := api.Audit(ctx, client.Line{List: c.List, Filter: typed(c.Filter)}, c.Limit)
	if err != nil || sh.JSON {
		return list(sh, found, err, nil, "")
	}
	rows := client.List[[]string]{List: wire.List[[]string]{Next: found.Next}}
	for _, item := range found.Items {
		row, err := c.row(sh, item)
		if err != nil {
			return fmt.Errorf("read the answer of the server: %w", err)
		}
		rows.Items = append(rows.Items, row)
	}
	asIs := func(row []string) []string { return row }
	return page(sh, rows, nil, asIs, "Nothing matches. Leave a filter out to see more.", 2*c.Limit)
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
	return []string{when(r.At), outcome, console.Line(r.ID), console.Line(r.Requester), console.Line(r.Chain.String()), console.Line(r.Repository), console.Line(r.Rule), strings.Join(by, ", "), console.Brief(r.Title, 40)}, err
}

// when is a moment in a list: UTC, to the minute.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
