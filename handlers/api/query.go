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

// limitOf reads ?limit=; a larger one than maxLimit is cut to it.
func limitOf(q url.Values) (int, error) {
	s := q.Get("limit")
	if s == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, bad("The limit %.40q is not a number from 1 to %d.", s, maxLimit)
	}
	return min(n, maxLimit), nil
}

// afterNumber reads a numeric cursor; absent it is 0.
func afterNumber(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, bad("The cursor %.40q is not a number from 0 on. Use next of the answer before.", s)
	}
	return n, nil
}

// timeOf reads a time or a day (UTC).
func timeOf(q url.Values, name string) (time.Time, error) {
	s := q.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, bad("The time %.40q in %s is not understood. Write 2026-01-31T12:00:00Z or 2026-01-31.", s, name)
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
func statesOf[S ~string](q url.Values, known []S) ([]S, error) {
	var states []S
	for _, v := range manyOf(q, "state") {
		if !slices.Contains(known, S(v)) {
			return nil, bad("There is no state %.40q. Known states: %v.", v, known)
		}
		states = append(states, S(v))
	}
	return states, nil
}

// filterOf reads the filter of a list of delegations; days of its line are of UTC.
func filterOf(c echo.Context, now time.Time) (orchestrator.Filter, error) {
	q := c.QueryParams()
	err := only(q, "state", "agent", "repository", "requester", "q", "from", "to", "after", "limit", "roots", "filter")
	if err != nil {
		return orchestrator.Filter{}, err
	}
	f := orchestrator.Filter{Agent: q.Get("agent"), Repository: q.Get("repository"), Requester: q.Get("requester"),
		Query: q.Get("q"), After: q.Get("after"), RootsOnly: q.Get("roots") == "true"}
	if f.Line, err = history.Parse(history.Delegations, q.Get("filter"), now, time.UTC); err != nil {
		return f, bad("%s", err)
	}
	if f.States, err = statesOf(q, orchestrator.States()); err != nil {
		return f, err
	}
	if f.From, err = timeOf(q, "from"); err != nil {
		return f, err
	}
	if f.To, err = timeOf(q, "to"); err != nil {
		return f, err
	}
	if err = cursorIs(f.After, orchestrator.DelegationPrefix); err != nil {
		return f, err
	}
	f.Limit, err = limitOf(q)
	return f, err
}

// cursorIs refuses a cursor of a list that no answer gave.
func cursorIs(after, prefix string) error {
	if after == "" || handlers.IsID(after, prefix) {
		return nil
	}
	return bad("The cursor %.40q is none of this list. Use next of the answer before, or leave it out.", after)
}

func isNotFound(err error) bool { return errors.Is(err, orchestrator.ErrNotFound) }
