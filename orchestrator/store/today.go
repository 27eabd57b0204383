package store

import (
	"context"
	"strings"
	"time"

	"gatehouse/orchestrator"
)

// longestQuestion bounds how old a request may be that still counts as landed or
// rejected now, so that the figures read one stretch of an index and not all history.
const longestQuestion = 90 * 24 * time.Hour

// selectOutcomes counts requests that have landed, also those that were reverted later,
// and those that were rejected. A request lands when its delegation completes, which
// may be long after the yes; a no may be followed by a retry, so its own time counts.
const selectOutcomes = `select
	count(case when r.state <> 'rejected' and d.ended_at >= ? then 1 end),
	count(case when r.state = 'rejected' and r.decided_at >= ? then 1 end)
	from requests r join delegations d on d.id = r.delegation_id
	where r.state in ('landed', 'reverted', 'rejected') and r.id >= ?`

// Outcomes counts the requests that have landed and that were rejected since then.
func (s *Store) Outcomes(ctx context.Context, since time.Time) (landed, rejected int, err error) {
	from := orchestrator.RequestPrefix + strings.TrimPrefix(idAt(since.Add(-longestQuestion)), orchestrator.DelegationPrefix)
	err = s.r.row(ctx, selectOutcomes, micros(since), micros(since), from).Scan(&landed, &rejected)
	return landed, rejected, s.explain(err)
}
