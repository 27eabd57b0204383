package api

import (
	"net/http"
	"strconv"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// positioned is an event with its place in the order over all tasks.
type positioned struct {
	Pos int64 `json:"pos"`
	event.Event
}

// bare is an event without its hashes, which are for the audit.
func bare(e event.Event) event.Event {
	e.PrevHash, e.Hash = "", ""
	e.At = e.At.UTC()
	return e
}

// TaskEvents answers GET /delegations/{id}/events in JSON, ascending: a task's id
// gives all of its events, a delegation's id those of that delegation.
func (a *API) TaskEvents(c echo.Context) error {
	ctx := c.Request().Context()
	q := &query{Values: c.QueryParams()}
	after, limit := q.number(), q.limit()
	if q.err != nil {
		return q.err
	}
	taskID, only, err := handlers.Scope(ctx, a.Ids, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	items := []event.Event{}
	for {
		batch, err := a.Reader.Events(ctx, taskID, after, limit)
		if err != nil {
			return err
		}
		for _, e := range batch {
			after = e.N
			if only == "" || e.DelegationID == only {
				items = append(items, bare(e))
			}
			if len(items) == limit {
				return c.JSON(http.StatusOK, wire.ListOf(items, strconv.FormatInt(after, 10)))
			}
		}
		if len(batch) < limit {
			return c.JSON(http.StatusOK, wire.ListOf(items, ""))
		}
	}
}

// Events answers GET /events in JSON: all tasks in the order of the log.
func (a *API) Events(c echo.Context) error {
	q := asked(c, "after", "limit")
	if q.err != nil {
		return q.err
	}
	if who := caller(c); who.Run != nil {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. Ask for /delegations/%s/events.", who.Run.TaskID)
	}
	after, limit := q.number(), q.limit()
	if q.err != nil {
		return q.err
	}
	found, err := a.Reader.Ordered(c.Request().Context(), after, limit)
	if err != nil {
		return err
	}
	items := make([]positioned, 0, len(found))
	next := ""
	for _, p := range found {
		if caller(c).SeesStream(p.TaskID) {
			items = append(items, positioned{p.Pos, bare(p.Event)})
		}
		if len(found) == limit {
			next = strconv.FormatInt(p.Pos, 10)
		}
	}
	return c.JSON(http.StatusOK, wire.ListOf(items, next))
}
