package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

const cardColumns = "request_id, channel, address, external_id, shown, due_at, attempts, error, dead, sent_at, digest"

const selectCards = "select " + cardColumns + " from cards"

func scanCard(row scanner) (approval.Card, error) {
	var c approval.Card
	var due, dead int64
	var sent sql.NullInt64
	err := row.Scan(&c.RequestID, &c.Channel, &c.Address, &c.ExternalID, &c.Shown, &due, &c.Attempts, &c.Error, &dead, &sent, &c.Digest)
	c.DueAt, c.Dead, c.SentAt = fromMicros(due), dead == 1, fromNull(sent)
	return c, err
}

// callCards makes the cards of a request due: it has changed. One that was given up
// is tried again, because the reason may be gone. One that is due already keeps its
// time: it may be leased by a node, or the channel asked to be left alone.
func (t *Tx) callCards(requestID string) error {
	_, err := t.q.exec(t.ctx, "update cards set due_at = case when open = 1 and dead = 0 then due_at else ? end, open = 1, dead = 0, attempts = 0 where request_id = ?", micros(t.now), requestID)
	if err != nil {
		return fmt.Errorf("make the cards of %s due: %w", requestID, err)
	}
	return nil
}

// EnsureCard adds the card unless it exists, due at once.
func (t *Tx) EnsureCard(_ context.Context, c approval.Card) error {
	_, err := t.q.exec(t.ctx, `insert into cards (request_id, channel, address, external_id, due_at) values (?, ?, ?, ?, ?)
		on conflict (request_id, channel, address) do nothing`, c.RequestID, c.Channel, c.Address, c.ExternalID, micros(t.now))
	if err != nil {
		return fmt.Errorf("add a card of %s: %w", c.RequestID, err)
	}
	return nil
}

// DueCards leases cards of the channels that are due and show an older version than
// their request's, longest due first; nobody else gets them before until.
func (s *Store) DueCards(ctx context.Context, channels []string, now, until time.Time, limit int) ([]approval.Card, error) {
	if len(channels) == 0 || limit < 1 {
		return nil, nil
	}
	args := []any{micros(now)}
	for _, c := range channels {
		args = append(args, c)
	}
	due := " from cards where open = 1 and dead = 0 and due_at <= ? and channel in " + marks(len(channels))
	// Most of the time nothing is due: look first, without the writer.
	var n int
	if err := s.r.row(ctx, "select count(*) from (select 1"+due+" limit 1) due", args...).Scan(&n); err != nil || n == 0 {
		return nil, s.explain(err)
	}
	rows, err := s.w.query(ctx, "update cards set due_at = ? where (request_id, channel, address) in (select request_id, channel, address"+due+
		" order by due_at limit ?"+s.dialect.skip+") returning "+cardColumns, append(append([]any{micros(until)}, args...), limit)...)
	cards, err := collect(rows, err, scanCard)
	return cards, s.explain(err)
}

// SaveCard records a delivery: what the card shows now, or when to try again. If the
// request has changed meanwhile, a card that was shown is due at once again.
func (s *Store) SaveCard(ctx context.Context, c approval.Card) error {
	dead := 0
	if c.Dead {
		dead = 1
	}
	due := c.DueAt
	if c.Error == "" {
		due = s.now()
	}
	n, err := changed(s.w.exec(ctx, `update cards set external_id = ?, shown = ?, due_at = ?, attempts = ?, error = ?, dead = ?, sent_at = ?, digest = ?,
		open = case when ? < (select version from requests where id = cards.request_id) then 1 else 0 end
		where request_id = ? and channel = ? and address = ?`,
		c.ExternalID, c.Shown, micros(due), c.Attempts, clean(c.Error), dead, nullMicros(c.SentAt), c.Digest, c.Shown, c.RequestID, c.Channel, c.Address))
	if err == nil && n == 0 {
		return fmt.Errorf("card of %s in %s: %w", c.RequestID, c.Channel, orchestrator.ErrNotFound)
	}
	return s.explain(err)
}
