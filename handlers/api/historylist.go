package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// listKeys are the parameters of a list that a line of filters chooses from.
var listKeys = []string{"list", "filter", "zone"}

// asksLine reports whether the address asks by a line of filters, and not by the single
// parameters for events.
func asksLine(c echo.Context) bool {
	q := c.QueryParams()
	return slices.ContainsFunc(listKeys, q.Has)
}

// lineOf reads ?list=requests|delegations|events&filter=LINE&zone=NAME. Days of the line
// are those of the zone, else UTC.
func (a *API) lineOf(c echo.Context, also ...string) (history.Query, error) {
	q := c.QueryParams()
	if err := only(q, append(also, listKeys...)...); err != nil {
		return history.Query{}, err
	}
	list := history.List(q.Get("list"))
	switch list {
	case "":
		list = history.Requests
	case history.Requests, history.Delegations, history.Events:
	default:
		return history.Query{}, bad("There is no list %.40q. Choose requests, delegations or events.", string(list))
	}
	zone := time.UTC
	if name := q.Get("zone"); name != "" {
		var ok bool
		if zone, ok = handlers.Zone(name); !ok {
			return history.Query{}, bad("There is no time zone %.64q. Write a name such as Europe/Berlin, or leave it out for UTC.", name)
		}
	}
	query, err := history.Parse(list, q.Get("filter"), a.Now(), zone)
	if wrong, ok := errors.AsType[*history.Error](err); ok {
		return query, &orchestrator.Error{Code: orchestrator.CodeBadRequest, Message: wrong.Text, Err: err}
	}
	return query, err
}

// page reads one page of a list as the shapes that are published.
func (a *API) page(c echo.Context, q history.Query, after string, limit int) (items []any, next string, err error) {
	ctx := c.Request().Context()
	switch q.List {
	case history.Requests:
		found, err := a.History.History(ctx, q, after, limit)
		for _, r := range found.Rows {
			items = append(items, requestRow(r))
		}
		return items, found.Next, err
	case history.Delegations:
		if err := cursorIs(after, orchestrator.DelegationPrefix); err != nil {
			return nil, "", err
		}
		found, err := a.Reader.List(ctx, orchestrator.Filter{Line: q, After: after, Limit: limit})
		for _, d := range found.Items {
			items = append(items, shapeOf(d))
		}
		return items, found.Next, err
	default:
		found, err := a.History.HistoryEvents(ctx, q, after, limit)
		for _, e := range found.Rows {
			e.At = e.At.UTC()
			items = append(items, e)
		}
		return items, found.Next, err
	}
}

// requestRow is a row with its times in UTC and no list null.
func requestRow(r history.Row) history.Row {
	r.At, r.DecidedAt = r.At.UTC(), utc(r.DecidedAt)
	r.Warnings, r.Flags, r.Deciders = wire.Items(r.Warnings), wire.Items(r.Flags), wire.Items(r.Deciders)
	for i := range r.Deciders {
		r.Deciders[i].At = r.Deciders[i].At.UTC()
	}
	return r
}

// auditList answers GET /audit?list=…&filter=…: newest first. A list of events may have
// fewer items than asked for, and still a next.
func (a *API) auditList(c echo.Context) error {
	q, err := a.lineOf(c, "after", "limit")
	if err != nil {
		return err
	}
	p := &query{Values: c.QueryParams()}
	limit := p.limit()
	if p.err != nil {
		return p.err
	}
	items, next, err := a.page(c, q, strings.TrimSpace(p.Get("after")), limit)
	return send(c, http.StatusOK, wire.ListOf(items, next), err)
}
