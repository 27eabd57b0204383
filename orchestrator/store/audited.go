package store

import (
	"context"
	"math"

	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

// RecordExport writes the event of an export into the stream "system".
func (s *Store) RecordExport(ctx context.Context, actor string, what event.AuditExportedData) error {
	return s.system(ctx, actor, what, func(*Tx) error { return nil })
}

// HistoryTotal counts everything that q takes, however long that lasts: it is for exports,
// which read all of it.
func (s *Store) HistoryTotal(ctx context.Context, q history.Query) (int64, error) {
	if q.List != history.Events {
		count, err := s.HistoryCount(ctx, q, math.MaxInt32)
		return count.N, err
	}
	a, err := s.askEvents(ctx, q)
	if err != nil {
		return 0, s.explain(err)
	}
	text, args := a.way.ids(a.within, func(string) clauses { return a.rest }, 0)
	var n int64
	err = s.r.row(ctx, "select count(*) from ("+text+") c", args...).Scan(&n)
	return n, s.explain(err)
}
