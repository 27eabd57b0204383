package api

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"

	"github.com/labstack/echo/v4"
)

// Sizes of pages.
const (
	defaultLimit = 50
	maxLimit     = 200
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// query has the parameters of an address. It keeps why the first that is not understood is not.
type query struct {
	url.Values
	err error
}

// asked reads the parameters of a route.
func asked(c echo.Context, known ...string) *query {
	q := c.QueryParams()
	return &query{q, only(q, known...)}
}

// only refuses parameters that a route does not know: a filter with a typing error
// must not quietly show everything.
func only(q url.Values, known ...string) error {
	for _, key := range sortedKeys(q) {
		if !slices.Contains(known, key) {
			return bad("There is no parameter %.80q here. Known parameters: %s.", key, strings.Join(known, ", "))
		}
	}
	return nil
}

// refuse notes what is wrong; the first that was wrong is told.
func (q *query) refuse(err error) {
	if q.err == nil {
		q.err = err
	}
}

// limit is how many are asked for; a larger number than maxLimit is cut to it.
func (q *query) limit() int {
	s := q.Get("limit")
	if s == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		q.refuse(bad("The limit %.40q is not a number from 1 to %d.", s, maxLimit))
	}
	return min(n, maxLimit)
}

// number is a numeric cursor; absent it is 0.
func (q *query) number() int64 {
	s := q.Get("after")
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		q.refuse(bad("The cursor %.40q is not a number from 0 on. Use next of the answer before.", s))
	}
	return n
}

// id is a cursor of a list of ids with that prefix; one that no answer gave is refused.
func (q *query) id(prefix string) string {
	after := q.Get("after")
	q.refuse(cursorIs(after, prefix))
	return after
}

// flag is true or false; absent it is false.
func (q *query) flag(name, otherwise string) bool {
	text := q.Get(name)
	if text != "" && text != "true" && text != "false" {
		q.refuse(bad(otherwise, text))
	}
	return text == "true"
}

// time is a time or a day (UTC).
func (q *query) time(name string) time.Time {
	s := q.Get(name)
	if s == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	q.refuse(bad("The time %.40q in %s is not understood. Write 2026-01-31T12:00:00Z or 2026-01-31.", s, name))
	return time.Time{}
}

// manyOf splits repeated and comma-separated values of a parameter.
func manyOf(q url.Values, name string) []string {
	var values []string
	for _, v := range q[name] {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				values = append(values, part)
			}
		}
	}
	return values
}

// statesOf reads ?state=, which may name several.
func statesOf[S ~string](q *query, known []S) []S {
	var states []S
	for _, v := range manyOf(q.Values, "state") {
		if !slices.Contains(known, S(v)) {
			q.refuse(bad("There is no state %.40q. Known states: %v.", v, known))
		}
		states = append(states, S(v))
	}
	return states
}

// filterOf reads the filter of a list of delegations; days of its line are of UTC.
func filterOf(c echo.Context, now time.Time) (orchestrator.Filter, error) {
	q := asked(c, "state", "agent", "repository", "requester", "q", "from", "to", "after", "limit", "roots", "filter")
	f := orchestrator.Filter{Agent: q.Get("agent"), Repository: q.Get("repository"), Requester: q.Get("requester"),
		Query: q.Get("q"), RootsOnly: q.Get("roots") == "true"}
	line, err := history.Parse(history.Delegations, q.Get("filter"), now, time.UTC)
	if err != nil {
		q.refuse(bad("%s", err))
	}
	f.Line, f.States, f.From, f.To = line, statesOf(q, orchestrator.States()), q.time("from"), q.time("to")
	f.After, f.Limit = q.id(orchestrator.DelegationPrefix), q.limit()
	return f, q.err
}

// cursorIs refuses a cursor of a list that no answer gave.
func cursorIs(after, prefix string) error {
	if after == "" || handlers.IsID(after, prefix) {
		return nil
	}
	return bad("The cursor %.40q is none of this list. Use next of the answer before, or leave it out.", after)
}

func isNotFound(err error) bool { return errors.Is(err, orchestrator.ErrNotFound) }
