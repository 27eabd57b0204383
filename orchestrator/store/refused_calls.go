package store

import (
	"context"
	"database/sql"
	"errors"

	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
)

// AddRefusals adds to the refused calls of a trigger, with their event.
func (s *Store) AddRefusals(ctx context.Context, name string, r trigger.Refusals) error {
	said := event.TriggerRefusedData{Trigger: name, Calls: r.Calls, Last: r.Last.UTC(), Reason: r.Reason, Address: clean(r.Address)}
	return s.system(ctx, "system", said, func(t *Tx) error {
		// The stream's row is locked, so nobody else adds meanwhile.
		known, err := refusals(t.q.row(t.ctx, selectRefusals, name))
		if err != nil {
			return err
		}
		r := known.And(r)
		_, err = t.q.exec(t.ctx, `insert into refused_calls (name, calls, last_at, reason, address) values (?, ?, ?, ?, ?)
			on conflict (name) do update set calls = excluded.calls, last_at = excluded.last_at, reason = excluded.reason, address = excluded.address`,
			name, r.Calls, micros(r.Last), r.Reason, clean(r.Address))
		return err
	})
}

// RefusedCalls returns the refused calls of a trigger; none is no error.
func (s *Store) RefusedCalls(ctx context.Context, name string) (trigger.Refusals, error) {
	r, err := refusals(s.r.row(ctx, selectRefusals, name))
	return r, s.explain(err)
}

const selectRefusals = "select calls, last_at, reason, address from refused_calls where name = ?"

func refusals(row scanner) (r trigger.Refusals, err error) {
	var last int64
	switch err = row.Scan(&r.Calls, &last, &r.Reason, &r.Address); {
	case errors.Is(err, sql.ErrNoRows):
		return trigger.Refusals{}, nil
	case err == nil:
		r.Last = fromMicros(last)
	}
	return r, err
}
