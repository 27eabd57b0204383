package api

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Exports writes down that somebody took rows out of the log; the store does.
type Exports interface {
	RecordExport(ctx context.Context, actor string, what event.AuditExportedData) error
}

// exportPage is how many rows an export holds at once.
const exportPage = 200

// exportList answers GET /audit/export?list=…&filter=…&format=csv|jsonl with every row that
// the filter takes, newest first. What is committed after it began is not in it; that it
// was asked for is an event, without which nothing leaves.
func (a *API) exportList(c echo.Context) error {
	q, err := a.lineOf(c, "format")
	if err != nil {
		return err
	}
	format := cmp.Or(c.QueryParam("format"), "jsonl")
	if format != "csv" && format != "jsonl" {
		return bad("There is no format %.40q. Use jsonl or csv.", format)
	}
	// The line is written down as it was asked for; the end of the period is only ours.
	line, now := q.String(), a.Now()
	if q.To.IsZero() || q.To.After(now) {
		q.To = now
	}
	ctx := c.Request().Context()
	rows, err := a.History.HistoryTotal(ctx, q)
	if err != nil {
		return err
	}
	if format == "jsonl" {
		if err := a.canSeal(); err != nil {
			return err
		}
	}
	if err := a.Exports.RecordExport(ctx, caller(c).Name(), event.AuditExportedData{List: string(q.List), Format: format, Filter: event.Given(line), Rows: event.Given(rows)}); err != nil {
		return err
	}
	a.extend(c)
	name := "gatehouse-" + string(q.List) + "-" + now.UTC().Format("20060102-150405")
	if format == "csv" {
		start(c, "text/csv; charset=utf-8", name+".csv")
		return a.listCSV(c, q)
	}
	start(c, "application/jsonl; charset=utf-8", name+".jsonl")
	return a.listJSONL(c, q, line)
}

// each walks all pages of a list; a reader who goes away ends it.
func (a *API) each(c echo.Context, q history.Query, take func(row any) error) (rows int, err error) {
	for after := ""; ; {
		items, next, err := a.page(c, q, after, exportPage)
		if err != nil {
			return rows, err
		}
		for _, item := range items {
			if err := take(item); err != nil {
				return rows, err
			}
			rows++
		}
		if next == "" {
			return rows, nil
		}
		after = next
		c.Response().Flush()
		a.extend(c) // a long export outlives the usual time for one answer
	}
}

// countLine follows the rows of an export in JSON lines; the seal follows it.
type countLine struct {
	Type   string    `json:"type"` // always "count"
	List   string    `json:"list"`
	Filter string    `json:"filter"`
	Rows   int       `json:"rows"`
	At     time.Time `json:"at"`
}

func (a *API) listJSONL(c echo.Context, q history.Query, line string) error {
	zone := cmp.Or(c.QueryParam("zone"), time.UTC.String())
	w := proof.NewSelectionWriter(c.Response(), proof.Selection{List: string(q.List), Filter: patch.Shown(line), Zone: zone, By: patch.Shown(caller(c).Name())})
	rows, err := a.each(c, q, func(row any) error { return writeLine(w.Row, row) })
	if err != nil {
		return err
	}
	if err := writeLine(w.Note, countLine{Type: "count", List: string(q.List), Filter: line, Rows: rows, At: a.Now().UTC()}); err != nil {
		return err
	}
	return w.Seal(a.Seal, a.Now())
}

// writeLine writes one value as a line in which nothing hides: the same JSON, with what a
// reader could not see as escapes.
func writeLine(write func(line string) error, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return write(escapeHidden(string(b)))
}

func escapeHidden(s string) string {
	hides := func(r rune) bool { return r >= 0x7f && patch.Shown(string(r)) != string(r) }
	if !strings.ContainsFunc(s, hides) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hides(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// listColumns are the columns of each list's CSV.
var listColumns = map[history.List][]string{
	history.Requests: {"id", "task_id", "at", "title", "state", "requester", "via", "agent", "chain", "repository", "target", "rule", "need", "files", "added", "removed",
		"warnings", "flags", "decided_by", "decided_at", "landed", "usd"},
	history.Delegations: {"id", "task_id", "parent_id", "created_at", "started_at", "ended_at", "state", "from", "to", "depth", "repository", "requester", "text",
		"error_code", "error_message", "input_tokens", "output_tokens", "usd", "approval_id"},
	history.Events: {"at", "task_id", "n", "id", "type", "delegation_id", "actor", "data", "hash"},
}

func (a *API) listCSV(c echo.Context, q history.Query) error {
	columns := listColumns[q.List]
	w := csv.NewWriter(c.Response())
	if err := w.Write(columns); err != nil {
		return err
	}
	rows, err := a.each(c, q, func(row any) error {
		if err := w.Write(cells(row)); err != nil {
			return err
		}
		w.Flush()
		return w.Error()
	})
	if err != nil {
		return err
	}
	last := make([]string, len(columns))
	last[0] = "# rows: " + strconv.Itoa(rows)
	if err := w.Write(last); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// cells is a row of a list's CSV. Every text is foreign, ids and hashes too: all go
// through Cell.
func cells(row any) []string {
	var out []string
	switch r := row.(type) {
	case history.Row:
		var deciders []string
		for _, d := range r.Deciders {
			deciders = append(deciders, strings.TrimSpace(d.Name+" "+string(d.Channel)+" "+d.Verdict+" "+stamp(&d.At)))
		}
		out = []string{r.ID, r.TaskID, stamp(&r.At), r.Title, r.State, r.Requester, r.Via.String(), r.Agent, r.Chain.String(), r.Repository, r.Target, r.Rule, strconv.Itoa(r.Need),
			strconv.Itoa(r.Files), strconv.Itoa(r.Added), strconv.Itoa(r.Removed), strings.Join(r.Warnings, " "), strings.Join(r.Flags, " "), strings.Join(deciders, "; "),
			stamp(r.DecidedAt), r.Landed, money(r.USD)}
	case wire.Delegation:
		code, message := "", ""
		if r.Error != nil {
			code, message = r.Error.Code, r.Error.Message
		}
		out = []string{r.ID, r.TaskID, string(r.ParentID), stamp(&r.CreatedAt), stamp(r.StartedAt), stamp(r.EndedAt), r.State, r.From, r.To, strconv.Itoa(r.Depth),
			r.Repository, r.Requester, r.Text, code, message, strconv.FormatInt(r.Usage.InputTokens, 10), strconv.FormatInt(r.Usage.OutputTokens, 10), money(r.Usage.USD), string(r.ApprovalID)}
	case history.Found:
		out = []string{stamp(&r.At), r.TaskID, strconv.FormatInt(r.N, 10), r.ID, r.Type, r.DelegationID, r.Actor, string(r.Data), r.Hash}
	}
	for i := range out {
		out[i] = Cell(out[i])
	}
	return out
}

// stamp is a time in a file; nil is none.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// money is US dollars in a file; what nobody reported is empty and not 0.
func money(usd *float64) string {
	if usd == nil {
		return ""
	}
	return strconv.FormatFloat(*usd, 'f', -1, 64)
}

// recordOrdered writes down an export in the order of the log.
func (a *API) recordOrdered(c echo.Context, format string) error {
	pos, err := a.Reader.LastPosition(c.Request().Context())
	if err != nil {
		return err
	}
	asked := func(key string) string {
		if c.QueryParam(key) == "" {
			return ""
		}
		return strings.Join(c.QueryParams()[key], ",")
	}
	return a.Exports.RecordExport(c.Request().Context(), caller(c).Name(), event.AuditExportedData{List: "log", Format: format, UpTo: event.Given(pos),
		Type: asked("type"), Actor: asked("actor"), TaskID: asked("task_id"), From: asked("from"), To: asked("to")})
}
