package store

import (
	"context"
	"time"
)

// underWay is what lives and was made by then, by the clock of Clock. Where one process
// makes all delegations that is when they say, as with those of before the column.
const underWay = " ended_at is null and case when made_at = 0 then created_at else made_at end <= ?"

const selectUnderWayIn = selectDelegation + " where task_id = ? and" + underWay + " order by seq"

// UnderWay counts by task the delegations of an agent, or of all, that live and were made
// by then.
func (s *Store) UnderWay(ctx context.Context, agent string, until time.Time) (map[string]int, error) {
	text, args := "select task_id, count(*) from delegations where"+underWay, []any{micros(until)}
	if agent != "" {
		text, args = text+" and to_agent = ?", append(args, agent)
	}
	type live struct {
		task string
		n    int
	}
	rows, err := s.r.query(ctx, text+" group by task_id", args...)
	all, err := collect(rows, err, func(row scanner) (l live, err error) {
		err = row.Scan(&l.task, &l.n)
		return l, err
	})
	found := map[string]int{}
	for _, l := range all {
		found[l.task] = l.n
	}
	return found, s.explain(err)
}
