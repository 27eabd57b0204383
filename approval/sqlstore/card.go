package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/store"
)

const cardColumns = "request_id, channel, address, external_id, shown, due_at, attempts, error, dead, sent_at, digest"

const selectCards = "select " + cardColumns + " from cards"

func scanCard(row store.Scanner) (approval.Card, error) {
	var c approval.Card
	err := row.Scan(&c.RequestID, &c.Channel, &c.Address, &c.ExternalID, &c.Shown, store.Time(&c.DueAt), &c.Attempts, &c.Error, &c.Dead, store.MaybeTime(&c.SentAt), &c.Digest)
	return c, err
}

// callCards makes the cards of a request due, and the digests that they are lines of:
// it has changed. One that was given up is tried again, because the reason may be
// gone. One that is due already keeps its time: it may be leased by a node, or the
// channel asked to be left alone.
func (t *Tx) callCards(requestID string) error {
	_, err := t.Exec("update cards set due_at = case when open = 1 and dead = 0 then due_at else ? end, open = 1, dead = 0, attempts = 0 where request_id = ?", store.Micros(t.Now()), requestID)
	if err == nil {
		err = t.callDigests("select digest from cards where request_id = ? and digest <> ''", requestID)
	}
	if err != nil {
		return fmt.Errorf("make the cards of %s due: %w", requestID, err)
	}
	return nil
}

// EnsureCard adds the card unless it exists, due at once.
func (t *Tx) EnsureCard(_ context.Context, c approval.Card) error {
	_, err := t.Exec(`insert into cards (request_id, channel, address, external_id, due_at) values (?, ?, ?, ?, ?)
		on conflict (request_id, channel, address) do nothing`, c.RequestID, c.Channel, c.Address, c.ExternalID, store.Micros(t.Now()))
	if err != nil {
		return fmt.Errorf("add a card of %s: %w", c.RequestID, err)
	}
	return nil
}

// OwnCard makes sure that the card exists and has, or will get, a message of its own:
// it is taken out of its digest, and with sent_at set none takes it in.
func (t *Tx) OwnCard(ctx context.Context, c approval.Card) error {
	if err := t.EnsureCard(ctx, c); err != nil {
		return err
	}
	key := []any{c.RequestID, c.Channel, c.Address}
	err := t.callDigests("select digest from cards where request_id = ? and channel = ? and address = ? and digest <> ''", key...)
	if err == nil {
		now := store.Micros(t.Now())
		_, err = t.Exec(`update cards set due_at = case when digest <> '' or dead = 1 then ? else due_at end,
			open = case when digest <> '' then 1 else open end, shown = case when digest <> '' then 0 else shown end, attempts = case when dead = 1 then 0 else attempts end,
			digest = '', dead = 0, sent_at = coalesce(sent_at, ?) where request_id = ? and channel = ? and address = ?`,
			append([]any{now, now}, key...)...)
	}
	if err != nil {
		return fmt.Errorf("give a card of %s a message of its own: %w", c.RequestID, err)
	}
	return nil
}

// Cards returns the cards of a request of this task.
func (t *Tx) Cards(_ context.Context, requestID string) ([]approval.Card, error) {
	rows, err := t.Query(selectCards+" where request_id = ? order by channel, address", requestID)
	return store.Collect(rows, err, scanCard)
}

// The parts of the queries of the outbox. A card that was never delivered waits
// behind those that were: people may act on what these show.
const (
	cardsDue    = " from cards where open = 1 and dead = 0 and digest = '' and due_at <= ?"
	wasShown    = "(shown > 0 or sent_at is not null)"
	shownFirst  = " order by case when " + wasShown + " then 0 else 1 end, due_at"
	cardKeys    = "request_id, channel, address"
	whereOfCard = " where request_id = ? and channel = ? and address = ?"
)

// DueCards leases cards of the channels that are due and show an older version than
// their request's, those that were delivered before first, then longest due first;
// nobody else gets them before until.
func (s *Store) DueCards(ctx context.Context, channels []origin.Channel, now, until time.Time, limit int) ([]approval.Card, error) {
	return s.leaseCards(ctx, cardsDue, channels, now, until, limit)
}

// DueEdits is DueCards for those that were delivered before.
func (s *Store) DueEdits(ctx context.Context, channels []origin.Channel, now, until time.Time, limit int) ([]approval.Card, error) {
	return s.leaseCards(ctx, cardsDue+" and "+wasShown, channels, now, until, limit)
}

func (s *Store) leaseCards(ctx context.Context, due string, channels []origin.Channel, now, until time.Time, limit int) ([]approval.Card, error) {
	if len(channels) == 0 || limit < 1 {
		return nil, nil
	}
	args := []any{store.Micros(now)}
	for _, c := range channels {
		args = append(args, c)
	}
	due += " and channel in " + store.Marks(len(channels))
	if due, err := s.anyDue(ctx, due, args...); err != nil || !due {
		return nil, err
	}
	rows, err := s.Change(ctx, "update cards set due_at = ?, holder = ? where ("+cardKeys+") in (select "+cardKeys+due+
		shownFirst+" limit ?"+s.SkipLocked()+") returning "+cardColumns, append(append([]any{store.Micros(until), s.Node()}, args...), limit)...)
	cards, err := store.Collect(rows, err, scanCard)
	// What an update returns is in no order; ids are in that of time.
	slices.SortFunc(cards, func(a, b approval.Card) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.RequestID, b.RequestID), cmp.Compare(a.Address, b.Address))
	})
	return cards, s.Advise(err)
}

// anyDue looks whether the rest of a select finds anything, without the writer: most of the time nothing is due.
func (s *Store) anyDue(ctx context.Context, from string, args ...any) (bool, error) {
	return store.ReadOne(ctx, s.Store, store.Scalar[bool], "select exists (select 1"+from+")", args...)
}

// rank is 0 for a card that was delivered before.
func rank(c approval.Card) int {
	if c.Shown > 0 || c.SentAt != nil {
		return 0
	}
	return 1
}

// SaveCard records a delivery: what the card shows now, or when to try again. If the
// request has changed meanwhile, a card that was shown is due at once again. The row
// is locked first: a change that commits just now is seen by the second statement.
func (s *Store) SaveCard(ctx context.Context, c approval.Card) error {
	due := c.DueAt
	if c.Error == "" {
		due = s.Now()
	}
	err := s.transact(ctx, func(t *Tx) error {
		key := []any{c.RequestID, c.Channel, c.Address}
		_, err := store.Scalar[int](t.Row("select 1 from cards"+whereOfCard+s.ForUpdate(), key...))
		if err != nil {
			return fmt.Errorf("card of %s in %s: %w", c.RequestID, c.Channel, err)
		}
		_, err = t.Exec(`update cards set holder = '', external_id = ?, shown = ?, due_at = ?, attempts = ?, error = ?, dead = ?, sent_at = coalesce(?, sent_at),
			digest = case when ? <> '' then '' else digest end,
			open = case when ? < (select version from requests where id = cards.request_id) then 1 else 0 end`+whereOfCard,
			append([]any{c.ExternalID, c.Shown, store.Micros(due), c.Attempts, store.Clean(c.Error), store.Flag(c.Dead), store.NullMicros(c.SentAt), c.ExternalID, c.Shown}, key...)...)
		return err
	})
	return s.Advise(err)
}

// Returned ends the leases that this node had on cards, notices, digests and reports before it
// was killed: it has just started and delivers nothing yet. They are due at once.
func (s *Store) Returned(ctx context.Context) error {
	if s.Node() == "" {
		return nil
	}
	for _, table := range []string{"cards", "notices", "digests", "reports"} {
		if _, err := s.Exec(ctx, "update "+table+" set due_at = ?, holder = '' where holder = ?", store.Micros(s.Now()), s.Node()); err != nil {
			return s.Advise(err)
		}
	}
	return nil
}
