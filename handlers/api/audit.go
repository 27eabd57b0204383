package api

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// auditFilter chooses events of the whole log.
type auditFilter struct {
	types    []string
	actor    string
	taskID   string
	from, to time.Time
}

var auditKeys = []string{"type", "actor", "task_id", "from", "to"}

func (a *API) auditFilterOf(c echo.Context, also ...string) (auditFilter, error) {
	q := asked(c, append(also, auditKeys...)...)
	f := auditFilter{types: manyOf(q.Values, "type"), actor: q.Get("actor"), from: q.time("from"), to: q.time("to")}
	if q.err != nil {
		return f, q.err
	}
	if id := q.Get("task_id"); id != "" {
		t, err := a.Ids.Task(c.Request().Context(), caller(c), id)
		if err != nil {
			return f, err
		}
		f.taskID = t.ID
	}
	return f, nil
}

func (f auditFilter) takes(e event.Event) bool {
	return (len(f.types) == 0 || slices.Contains(f.types, string(e.Type))) &&
		(f.actor == "" || e.Actor == f.actor) && (f.taskID == "" || e.TaskID == f.taskID) &&
		(f.from.IsZero() || !e.At.Before(f.from)) && (f.to.IsZero() || e.At.Before(f.to))
}

// auditScan is how many events one request reads at most while it looks for a page.
const auditScan = 20_000

// Audit answers GET /audit: events of all tasks in the order of the log, with their
// hashes. next may come with fewer items than asked for: the filter then goes on there.
func (a *API) Audit(c echo.Context) error {
	if asksLine(c) {
		return a.auditList(c)
	}
	f, err := a.auditFilterOf(c, "after", "limit")
	if err != nil {
		return err
	}
	q := &query{Values: c.QueryParams()}
	limit, after := q.limit(), q.number()
	if q.err != nil {
		return q.err
	}
	items := []positioned{}
	for scanned := 0; scanned < auditScan; {
		batch, err := a.Reader.Ordered(c.Request().Context(), after, maxLimit)
		if err != nil {
			return err
		}
		for _, p := range batch {
			after = p.Pos
			if f.takes(p.Event) {
				items = append(items, positioned(p))
			}
			if len(items) == limit {
				return c.JSON(http.StatusOK, wire.ListOf(items, strconv.FormatInt(after, 10)))
			}
		}
		scanned += len(batch)
		if len(batch) < maxLimit {
			return c.JSON(http.StatusOK, wire.ListOf(items, ""))
		}
	}
	return c.JSON(http.StatusOK, wire.ListOf(items, strconv.FormatInt(after, 10)))
}
