package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/store"
)

const digestColumns = "id, channel, address, external_id, due_at, attempts, error, dead, created_at"

func scanDigest(row store.Scanner) (approval.Digest, error) {
	var d approval.Digest
	err := row.Scan(&d.ID, &d.Channel, &d.Address, &d.ExternalID, store.Time(&d.DueAt), &d.Attempts, &d.Error, &d.Dead, store.Time(&d.CreatedAt))
	return d, err
}

// callDigests makes the digests that which selects due: a line has changed, came or
// went. Not before their due time, which is how long the channel is left alone.
func (t *Tx) callDigests(which string, args ...any) error {
	now := store.Micros(t.Now())
	_, err := t.Exec(`update digests set due_at = case when dead = 1 or due_at < ? then ? else due_at end,
		attempts = case when dead = 1 then 0 else attempts end, open = 1, dead = 0 where id in (`+which+")", append([]any{now, now}, args...)...)
	return err
}

// IntoDigest makes a card that was never delivered a line of its address's digest, if
// so many new messages went there lately that f says so. false: it gets a message of
// its own. Two nodes at once may count one message too few, or make two digests.
func (s *Store) IntoDigest(ctx context.Context, c approval.Card, f approval.Flood) (in bool, err error) {
	err = s.transact(ctx, func(t *Tx) error {
		in = false
		now := store.Micros(t.Now())
		// Times to come are those of a clock that was set back since.
		sent, err := store.Scalar[int](t.Row("select count(*) from cards where channel = ? and address = ? and digest = '' and sent_at > ? and sent_at <= ?",
			c.Channel, c.Address, store.Micros(t.Now().Add(-f.Within)), now))
		if err != nil || sent < f.Cards {
			return err
		}
		id, err := t.digestOf(c, f)
		if err != nil {
			return err
		}
		if err := t.callDigests("?", id); err != nil {
			return err
		}
		n, err := store.Changed(t.Exec("update cards set digest = ?, due_at = ?"+whereOfCard+" and digest = '' and sent_at is null and open = 1",
			id, now, c.RequestID, c.Channel, c.Address))
		in = n == 1
		return err
	})
	return in, s.Advise(err)
}

// digestOf is the digest that takes in cards of an address now; a new one where the
// others are full or too old.
func (t *Tx) digestOf(c approval.Card, f approval.Flood) (string, error) {
	id, err := store.Scalar[string](t.Row(`select id from digests d where channel = ? and address = ? and created_at > ? and created_at <= ? and dead = 0
		and (select count(*) from cards where digest = d.id and digest <> '') < ? order by created_at desc limit 1`,
		c.Channel, c.Address, store.Micros(t.Now().Add(-f.Age)), store.Micros(t.Now()), f.Lines))
	if !errors.Is(err, orchestrator.ErrNotFound) {
		return id, err
	}
	id = orchestrator.NewID(approval.DigestPrefix, t.Now())
	_, err = t.Exec("insert into digests (id, channel, address, due_at, created_at) values (?, ?, ?, ?, ?)", id, c.Channel, c.Address, store.Micros(t.Now()), store.Micros(t.Now()))
	return id, err
}

const digestsDue = " from digests where open = 1 and dead = 0 and due_at <= ? and channel = ? and external_id"

// DueDigests leases digests of a channel of which a line is behind its request: those
// that were sent before, or those that were not. Nobody else gets them before until.
func (s *Store) DueDigests(ctx context.Context, channel origin.Channel, sent bool, now, until time.Time, limit int) ([]approval.Digest, error) {
	due := digestsDue + " = ''"
	if sent {
		due = digestsDue + " <> ''"
	}
	if due, err := s.anyDue(ctx, due, store.Micros(now), channel); err != nil || !due {
		return nil, err
	}
	rows, err := s.Change(ctx, "update digests set due_at = ?, holder = ? where id in (select id"+due+" order by due_at limit ?"+s.SkipLocked()+") returning "+digestColumns,
		store.Micros(until), s.Node(), store.Micros(now), channel, limit)
	found, err := store.Collect(rows, err, scanDigest)
	return found, s.Advise(err)
}

// selectLines says that there is a digest, as the index of lines does.
const selectLines = selectCards + " where digest = ? and digest <> '' order by request_id"

// DigestLines returns the cards that are lines of a digest, oldest request first.
func (s *Store) DigestLines(ctx context.Context, id string) ([]approval.Card, error) {
	return store.ReadAll(ctx, s.Store, scanCard, selectLines, id)
}

// SaveDigest records a delivery: which version of which request the digest shows now,
// or, with an error in d, when to try again. It returns the requests that were
// delivered for the first time. Lines are locked before the digest, as a change of
// their requests does it, and each row before what is computed of it.
func (s *Store) SaveDigest(ctx context.Context, d approval.Digest, shown map[string]int64) (first []string, err error) {
	err = s.transact(ctx, func(t *Tx) error {
		first = nil
		if d.Error == "" {
			for _, id := range slices.Sorted(maps.Keys(shown)) {
				fresh, err := t.saveLine(d, id, shown[id])
				if err != nil {
					return err
				}
				if fresh {
					first = append(first, id)
				}
			}
		}
		_, err := store.Scalar[int](t.Row("select 1 from digests where id = ?"+s.ForUpdate(), d.ID))
		if err != nil {
			return fmt.Errorf("digest %s: %w", d.ID, err)
		}
		_, err = t.Exec(`update digests set holder = '', external_id = ?, due_at = ?, attempts = ?, error = ?, dead = ?,
			open = case when ? <> '' or exists (select 1 from cards where digest = digests.id and digest <> '' and open = 1) then 1 else 0 end where id = ?`,
			d.ExternalID, store.Micros(d.DueAt), d.Attempts, store.Clean(d.Error), store.Flag(d.Dead), d.Error, d.ID)
		return err
	})
	return first, s.Advise(err)
}

// saveLine records what a digest shows of one request, and reports whether that was
// its first delivery. A line that has left the digest meanwhile is none of its own.
func (t *Tx) saveLine(d approval.Digest, requestID string, version int64) (bool, error) {
	key := []any{requestID, d.Channel, d.Address, d.ID}
	const line = whereOfCard + " and digest = ?"
	var sent *time.Time
	err := t.Row("select sent_at from cards"+line+t.s.ForUpdate(), key...).Scan(store.MaybeTime(&sent))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = t.Exec(`update cards set shown = ?, sent_at = coalesce(sent_at, ?), attempts = 0, error = '', dead = 0,
		open = case when ? < (select version from requests where id = cards.request_id) then 1 else 0 end`+line,
		append([]any{version, store.Micros(t.Now()), version}, key...)...)
	return sent == nil, err
}
