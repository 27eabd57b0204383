package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
)

// SetHealth records how the other side of a channel is. Its event is written when the
// state changes; the same state again only replaces the detail. When a channel is
// connected again, what failed in it meanwhile is due at once.
func (s *Store) SetHealth(ctx context.Context, channel origin.Channel, state, detail string) error {
	known, err := s.healthOf(ctx, channel)
	if err != nil {
		return err
	}
	if known.State == state {
		if known.Detail == store.Clean(detail) && known.Node == s.Node() {
			return nil
		}
		_, err := s.Exec(ctx, "update channel_health set detail = ?, node = ? where channel = ? and state = ?", store.Clean(detail), s.Node(), channel, state)
		return s.Advise(err)
	}
	said := event.ChannelHealthData{Channel: channel, State: state, Detail: store.Clean(detail), Was: known.State, Node: s.Node()}
	return s.System(ctx, "gatehouse", said, func(t *store.Tx) error {
		_, err := t.Exec(`insert into channel_health (channel, state, detail, node, at) values (?, ?, ?, ?, ?)
			on conflict (channel) do update set state = excluded.state, detail = excluded.detail, node = excluded.node, at = excluded.at`,
			channel, state, store.Clean(detail), s.Node(), store.Micros(t.Now()))
		if err != nil || state != approval.Connected {
			return err
		}
		return callFailed(t, channel)
	})
}

// callFailed makes what failed in a channel due at once, as if it had not failed: the
// other side is back. What a node is delivering just now keeps its lease.
func callFailed(t *store.Tx, channel origin.Channel) error {
	for _, what := range []string{"cards where open = 1", "digests where open = 1", "notices where sent_at is null", "reports where open = 1"} {
		table, where, _ := strings.Cut(what, " where ")
		if _, err := t.Exec("update "+table+" set due_at = ?, attempts = 0 where "+where+" and dead = 0 and attempts > 0 and holder = '' and channel = ?",
			store.Micros(t.Now()), channel); err != nil {
			return fmt.Errorf("make the %s of %s due that failed: %w", table, channel, err)
		}
	}
	return nil
}

const selectHealth = "select channel, state, detail, node, at from channel_health"

func scanHealth(row store.Scanner) (approval.Health, error) {
	var h approval.Health
	err := row.Scan(&h.Channel, &h.State, &h.Detail, &h.Node, store.Time(&h.Since))
	return h, err
}

// healthOf returns what a channel last told, nothing when it never did.
func (s *Store) healthOf(ctx context.Context, channel origin.Channel) (approval.Health, error) {
	h, err := scanHealth(s.Row(ctx, selectHealth+" where channel = ?", channel))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return approval.Health{}, nil
	}
	return h, s.Advise(err)
}

// Health returns what every channel last told, by name.
func (s *Store) Health(ctx context.Context) ([]approval.Health, error) {
	return store.ReadAll(ctx, s.Store, scanHealth, selectHealth+" order by channel")
}

// Backlog counts what of each channel waits to be delivered and what was given up, by
// name; channels without either are missing.
func (s *Store) Backlog(ctx context.Context) ([]approval.Backlog, error) {
	return store.ReadAll(ctx, s.Store, func(row store.Scanner) (b approval.Backlog, err error) {
		err = row.Scan(&b.Channel, &b.Due, &b.Dead)
		return b, err
	}, `select channel, sum(due), sum(dead) from (
		select channel, 1 as due, 0 as dead from cards where open = 1 and dead = 0
		union all select channel, 0, 1 from cards where dead = 1
		union all select channel, 1, 0 from notices where sent_at is null and dead = 0
		union all select channel, 0, 1 from (`+deadNotices+`) n
		union all select channel, 0, 1 from digests where dead = 1
		union all select channel, 1, 0 from reports where open = 1 and dead = 0 and (sent_at is null or error <> '')
		union all select channel, 0, 1 from reports where dead = 1) all_of_them
		group by channel order by channel`)
}
