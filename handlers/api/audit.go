package api

import (
	"net/http"
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
	q := c.QueryParams()
	if err := only(q, append(also, auditKeys...)...); err != nil {
		return auditFilter{}, err
	}
	f := auditFilter{types: manyOf(q, "type"), actor: q.Get("actor")}
	var err error
	if f.from, err = timeOf(q, "from"); err != nil {
		return f, err
	}
	if f.to, err = timeOf(q, "to"); err != nil {
		return f, err
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
	if len(f.types) > 0 {
		found := false
		for _, t := range f.types {
			found = found || string(e.Type) == t
		}
		if !found {
			return false
		}
	}
	return (f.actor == "" || e.Actor == f.actor) && (f.taskID == "" || e.TaskID == f.taskID) &&
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
	q := c.QueryParams()
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	after, err := afterNumber(q.Get("after"))
	if err != nil {
		return err
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
