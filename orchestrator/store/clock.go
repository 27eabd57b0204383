package store

import (
	"context"
	"fmt"
	"time"
)

// Clock is the time by the one clock that all nodes share, in whole microseconds, UTC: the
// clocks of nodes may be minutes apart. In a snapshot it is a time before its moment.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if s.dialect.clock != "" {
		at, err := readClock(s.r.row(ctx, s.dialect.clock))
		return at, s.explain(err)
	}
	if one := s.r.held(ctx); one != nil {
		return one.at, nil
	}
	return s.now(), nil
}

// clock is Clock within the transaction: when that began.
func (t *Tx) clock() (time.Time, error) {
	if t.s.dialect.clock == "" {
		return t.now, nil
	}
	return readClock(t.q.row(t.ctx, t.s.dialect.clock))
}

func readClock(row scanner) (time.Time, error) {
	var us int64
	if err := row.Scan(&us); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return fromMicros(us), nil
}
