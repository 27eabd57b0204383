package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
)

const (
	deliveryHead = `id, name, kind, source, external_id, body_hash, event, headers, state, code, message, text, task_id,
	of_id, by_name, by_id, attempts, repeats, received_at, due_at, done_at`
	insertDelivery = "insert into deliveries (" + deliveryHead + ", body) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	claimKey       = `insert into delivery_keys (name, key, delivery_id, at) values (?, ?, ?, ?)
	on conflict (name, key) do update set delivery_id = excluded.delivery_id, at = excluded.at where delivery_keys.at < ?`
	deliveriesDue = "select id from deliveries where state = 'stored' and due_at <= ?"
)

func scanDelivery(row scanner) (d trigger.Delivery, err error) {
	err = row.Scan(headOf(&d)...)
	return d, err
}

// headOf is where the columns of deliveryHead are read into.
func headOf(d *trigger.Delivery) []any {
	return []any{&d.ID, &d.Trigger, &d.Kind, &d.Source, &d.ExternalID, &d.BodyHash, &d.Event, JSON(&d.Headers), &d.State, &d.Code, &d.Message, &d.Text, &d.TaskID,
		&d.Of, &d.By, &d.ByID, &d.Attempts, &d.Repeats, Time(&d.ReceivedAt), Time(&d.DueAt), MaybeTime(&d.DoneAt)}
}

// scanWithBody reads deliveryHead and the body.
func scanWithBody(row scanner) (d trigger.Delivery, err error) {
	err = row.Scan(append(headOf(&d), (*[]byte)(&d.Body))...)
	return d, err
}

// AddDelivery stores a delivery with the keys that make it the same as another: the
// sender's id, which is the same for as long as it is remembered, and, where bodyFor is
// above 0, its body, which is the same for so long. One of which a key is taken is not
// stored: the first one is returned, false, and its repeats are counted.
func (s *Store) AddDelivery(ctx context.Context, d trigger.Delivery, bodyFor time.Duration) (trigger.Delivery, bool, error) {
	var first string
	err := s.transact(ctx, func(t *Tx) error {
		first = ""
		taken, err := t.claimKeys(d, bodyFor)
		if err != nil || taken != "" {
			first = taken
			return errors.Join(err, errNothing) // what was claimed is given back
		}
		headers, err := encode(d.Headers)
		if err != nil {
			return fmt.Errorf("write the headers: %w", err)
		}
		_, err = t.q.exec(t.ctx, insertDelivery, d.ID, d.Trigger, string(d.Kind), string(d.Source), clean(d.ExternalID), d.BodyHash, clean(d.Event), clean(headers),
			string(d.State), d.Code, clean(d.Message), clean(d.Text), d.TaskID, d.Of, d.By, d.ByID, d.Attempts, d.Repeats,
			micros(d.ReceivedAt), micros(d.DueAt), nullMicros(d.DoneAt), d.Body)
		return err
	})
	switch {
	case first != "":
		if _, err := s.w.exec(ctx, "update deliveries set repeats = repeats + 1 where id = ?", first); err != nil {
			return trigger.Delivery{}, false, s.explain(err)
		}
		d, err = s.Delivery(ctx, first)
		return d, false, err
	case err != nil:
		return trigger.Delivery{}, false, s.explain(err)
	}
	return d, true, nil
}

// claimKeys takes the keys of a delivery, or returns the delivery that has one of them.
func (t *Tx) claimKeys(d trigger.Delivery, bodyFor time.Duration) (string, error) {
	type key struct {
		text  string
		since time.Time // an older one is free again
	}
	var keys []key // always in this order, so that two never wait for each other
	if d.Of == "" && bodyFor > 0 {
		keys = append(keys, key{"body:" + d.BodyHash, d.ReceivedAt.Add(-bodyFor)})
	}
	if d.Of == "" && d.ExternalID != "" {
		keys = append(keys, key{"id:" + clean(d.ExternalID), time.Time{}})
	}
	for _, k := range keys {
		n, err := changed(t.q.exec(t.ctx, claimKey, d.Trigger, k.text, d.ID, micros(d.ReceivedAt), micros(k.since)))
		if err != nil {
			return "", fmt.Errorf("claim the key of a delivery: %w", err)
		}
		if n == 1 {
			continue
		}
		var first string
		if err := t.q.row(t.ctx, "select delivery_id from delivery_keys where name = ? and key = ?", d.Trigger, k.text).Scan(&first); err != nil {
			return "", fmt.Errorf("read whose key it is: %w", err)
		}
		return first, nil
	}
	return "", nil
}

// Delivery returns a delivery with its body.
func (s *Store) Delivery(ctx context.Context, id string) (trigger.Delivery, error) {
	return ReadOne(ctx, s, scanWithBody, "select "+deliveryHead+", body from deliveries where id = ?", id)
}

// Deliveries lists deliveries, newest first, without their bodies.
func (s *Store) Deliveries(ctx context.Context, f trigger.Filter) (trigger.Page, error) {
	limit := pageSize(f.Limit)
	text, args := deliveriesQuery(f, limit+1)
	items, err := ReadAll(ctx, s, scanDelivery, text, args...)
	page := trigger.Page{Items: items}
	if len(items) > limit {
		page.Items, page.Next = items[:limit], items[limit-1].ID
	}
	return page, err
}

// deliveriesQuery walks each wanted state of a trigger along its index for one page and merges
// them: a rare state costs no more than a common one.
func deliveriesQuery(f trigger.Filter, limit int) (string, []any) {
	c := clauses{}
	for _, one := range []struct{ clause, value string }{{"name = ?", f.Trigger}, {"kind = ?", string(f.Kind)}, {"id < ?", f.After}} {
		if one.value != "" {
			c.add(one.clause, one.value)
		}
	}
	if !f.From.IsZero() {
		c.add("received_at >= ?", micros(f.From))
	}
	const walk, order = "select " + deliveryHead + " from deliveries", " order by id desc limit ?"
	states := slices.Compact(slices.Sorted(slices.Values(f.States)))
	if len(states) == 0 {
		return walk + c.where() + order, append(c.args, limit)
	}
	var parts []string
	var args []any
	for _, state := range states {
		one := clauses{slices.Clone(c.texts), slices.Clone(c.args)}
		one.add("state = ?", string(state))
		parts = append(parts, "select * from ("+walk+one.where()+order+") one")
		args = append(append(args, one.args...), limit)
	}
	return strings.Join(parts, " union all ") + order, append(args, limit)
}

// Trouble counts the deliveries of a trigger since then that were refused or failed.
func (s *Store) Trouble(ctx context.Context, name string, since time.Time) (int, error) {
	return ReadOne(ctx, s, Scalar[int], "select count(*) from deliveries where name = ? and state in ('refused', 'failed') and received_at >= ?", name, micros(since))
}

// LastStarted is the newest delivery of a trigger that made a task, ErrNotFound when
// there is none.
func (s *Store) LastStarted(ctx context.Context, name string) (trigger.Delivery, error) {
	return ReadOne(ctx, s, scanDelivery, "select "+deliveryHead+" from deliveries where name = ? and state = 'started' order by id desc limit 1", name)
}

// DueDeliveries leases stored deliveries that are due, oldest first; nobody else gets
// them before until.
func (s *Store) DueDeliveries(ctx context.Context, now, until time.Time, limit int) ([]trigger.Delivery, error) {
	var n int // most of the time nothing is due: look first, without the writer
	if err := s.r.row(ctx, "select count(*) from ("+deliveriesDue+" limit 1) due", micros(now)).Scan(&n); err != nil || n == 0 {
		return nil, s.explain(err)
	}
	rows, err := s.w.query(ctx, "update deliveries set due_at = ?, attempts = attempts + 1 where id in ("+deliveriesDue+" order by due_at, id limit ?"+s.dialect.skip+
		") returning "+deliveryHead+", body", micros(until), micros(now), limit)
	found, err := collect(rows, err, scanWithBody)
	// What an update returns is in no order.
	slices.SortFunc(found, func(a, b trigger.Delivery) int { return cmp.Compare(a.ID, b.ID) })
	return found, s.explain(err)
}

const endDelivery = "update deliveries set state = ?, code = ?, message = ?, text = ?, task_id = ?, done_at = ? where id = ? and state = 'stored'"

// EndDelivery records what became of a stored delivery, and what the log says of that, both
// or neither. One that has ended by now stays as it is, and nothing is said; false says so.
func (s *Store) EndDelivery(ctx context.Context, d trigger.Delivery, said ...event.Event) (mine bool, err error) {
	args := []any{string(d.State), d.Code, clean(d.Message), clean(d.Text), d.TaskID, nullMicros(d.DoneAt), d.ID}
	if len(said) == 0 {
		n, err := changed(s.w.exec(ctx, endDelivery, args...))
		return n == 1, s.explain(err)
	}
	err = s.inTask(ctx, event.System, func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, endDelivery, args...))
		if mine = n == 1; err != nil || !mine {
			return err
		}
		for _, e := range said {
			if err := t.Append(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	return mine, err
}

// DelayDelivery makes a stored delivery due again later, with the reason and its attempts.
func (s *Store) DelayDelivery(ctx context.Context, d trigger.Delivery) error {
	_, err := s.w.exec(ctx, "update deliveries set code = ?, message = ?, attempts = ?, due_at = ? where id = ? and state = 'stored'", d.Code, clean(d.Message), d.Attempts, micros(d.DueAt), d.ID)
	return s.explain(err)
}

// ScheduledUntil is up to when the times of a schedule have been looked at. A schedule
// that is new begins at now.
func (s *Store) ScheduledUntil(ctx context.Context, name string, now time.Time) (time.Time, error) {
	at, err := Scalar[int64](s.r.row(ctx, "select at from schedule_times where name = ?", name))
	if errors.Is(err, orchestrator.ErrNotFound) {
		_, err = s.w.exec(ctx, "insert into schedule_times (name, at) values (?, ?) on conflict (name) do nothing", name, micros(now))
		at = micros(now)
	}
	return fromMicros(at), s.explain(err)
}

// SetScheduled notes that the times of a schedule up to at have been looked at; force
// also turns it back.
func (s *Store) SetScheduled(ctx context.Context, name string, at time.Time, force bool) error {
	back := " and at < ?"
	args := []any{micros(at), name, micros(at)}
	if force {
		back, args = "", args[:2]
	}
	_, err := s.w.exec(ctx, "update schedule_times set at = ? where name = ?"+back, args...)
	return s.explain(err)
}

// ForgetDeliveries drops what deliveries of before then carried, and those that made no
// task as a whole. It returns how many bodies and how many deliveries went. The keys of one
// that made a task stay as long as it does: however soon bodies go, it is not taken twice.
// It locks the row that holds lock, so a hold comes wholly before it or wholly after it.
func (s *Store) ForgetDeliveries(ctx context.Context, before time.Time) (bodies, gone int64, err error) {
	at := micros(before)
	// What a legal hold covers stays: the deliveries of tasks that are held, and all under a
	// hold on everything.
	free := " and not exists (select 1 from holds where lifted_at is null and kind = 'everything') and not exists (select 1 from tasks t where t.id = deliveries.task_id and " + heldTask + ")"
	err = s.inTask(ctx, event.System, func(t *Tx) (err error) {
		if gone, err = changed(t.q.exec(t.ctx, "delete from deliveries where received_at < ? and state not in ('stored', 'started')"+free, at)); err != nil {
			return err
		}
		if bodies, err = changed(t.q.exec(t.ctx, "update deliveries set body = null where received_at < ? and body is not null and state <> 'stored'"+free, at)); err != nil {
			return err
		}
		_, err = t.q.exec(t.ctx, "delete from delivery_keys where at < ? and not exists (select 1 from deliveries d where d.id = delivery_keys.delivery_id)", at)
		return err
	})
	return bodies, gone, err
}

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
	err = row.Scan(&r.Calls, Time(&r.Last), &r.Reason, &r.Address)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return trigger.Refusals{}, nil
	}
	return r, err
}
