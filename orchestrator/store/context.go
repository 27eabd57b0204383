package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/sharedctx"
)

// entryLimit is how many entries a query without a limit returns.
const entryLimit = 100

const selectEntries = "select namespace, key_name, value, agent, expires_at, created_at, updated_at from agent_shared_context"

// live is the condition for what has not expired (K33); its argument is now.
const live = "(expires_at is null or expires_at > ?)"

// One statement, no check before it (K28); the expiry is overwritten too (K29).
const upsertEntry = `insert into agent_shared_context (namespace, key_name, value, agent, expires_at, created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?)
	on conflict (namespace, key_name) do update set value = excluded.value, agent = excluded.agent, expires_at = excluded.expires_at, updated_at = excluded.updated_at
	returning namespace, key_name, value, agent, expires_at, created_at, updated_at`

// ContextStore is the shared context as people use it: what they write or delete is
// an event of the stream "system". Agents write through Tx.PutEntry.
type ContextStore struct {
	s     *Store
	actor string
}

var _ sharedctx.Store = ContextStore{}

// Context returns the shared context for the person (or program) of that name.
func (s *Store) Context(actor string) ContextStore { return ContextStore{s, actor} }

func scanEntry(row scanner) (sharedctx.Entry, error) {
	var e sharedctx.Entry
	var expires sql.NullInt64
	var created, updated int64
	err := row.Scan(&e.Namespace, &e.Key, &e.Value, &e.Agent, &expires, &created, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return e, orchestrator.ErrNotFound
	}
	e.ExpiresAt, e.CreatedAt, e.UpdatedAt = fromNull(expires), fromMicros(created), fromMicros(updated)
	return e, err
}

// put upserts one entry and returns it as it is kept.
func put(ctx context.Context, q querier, e sharedctx.Entry) (sharedctx.Entry, error) {
	if err := e.Check(); err != nil {
		return e, orchestrator.Errorf(orchestrator.CodeBadRequest, "%w", err)
	}
	kept, err := scanEntry(q.row(ctx, upsertEntry, e.Namespace, e.Key, e.Value, e.Agent, nullMicros(e.ExpiresAt), micros(e.CreatedAt), micros(e.UpdatedAt)))
	if err != nil {
		return e, fmt.Errorf("write %s/%s: %w", e.Namespace, e.Key, err)
	}
	return kept, nil
}

// PutEntry upserts one value of the shared context; its event is the caller's.
func (t *Tx) PutEntry(_ context.Context, e sharedctx.Entry) error {
	_, err := put(t.ctx, t.q, e)
	return err
}

// Set implements sharedctx.Store.
func (c ContextStore) Set(ctx context.Context, e sharedctx.Entry) (sharedctx.Entry, error) {
	kept := e
	err := c.s.inTask(ctx, event.System, func(t *Tx) error {
		var err error
		if kept, err = put(t.ctx, t.q, e); err != nil {
			return err
		}
		return t.Append(ctx, c.event(event.ContextWritten, e.Namespace, e.Key))
	})
	return kept, err
}

// event is an event about one entry. The value may be secret or long and is left out.
func (c ContextStore) event(kind event.Type, namespace, key string) event.Event {
	return event.Event{Type: kind, Actor: c.actor, Data: event.Data(map[string]any{"namespace": namespace, "key": key})}
}

// Get implements sharedctx.Store.
func (c ContextStore) Get(ctx context.Context, namespace, key string) (sharedctx.Entry, error) {
	e, err := scanEntry(c.s.r.row(ctx, selectEntries+" where namespace = ? and key_name = ? and "+live, clean(namespace), clean(key), micros(c.s.now())))
	return e, c.s.explain(err)
}

// Query implements sharedctx.Store.
func (c ContextStore) Query(ctx context.Context, namespace string, limit int) ([]sharedctx.Entry, error) {
	return c.Prefix(ctx, namespace, "", limit)
}

// Prefix implements sharedctx.Store. The prefix is compared itself as well, because
// LIKE ignores the case of ASCII letters on SQLite.
func (c ContextStore) Prefix(ctx context.Context, namespace, prefix string, limit int) ([]sharedctx.Entry, error) {
	if limit < 1 {
		limit = entryLimit
	}
	namespace, prefix = clean(namespace), clean(prefix)
	text, args := selectEntries+" where namespace = ? and "+live, []any{namespace, micros(c.s.now())}
	if prefix != "" {
		text += ` and key_name like ? escape '\' and substr(key_name, 1, ?) = ?`
		args = append(args, sharedctx.EscapeLike(prefix)+"%", len([]rune(prefix)), prefix)
	}
	rows, err := c.s.r.query(ctx, text+" order by updated_at desc, key_name limit ?", append(args, limit)...)
	found, err := collect(rows, err, scanEntry)
	return found, c.s.explain(err)
}

// Delete implements sharedctx.Store; ErrNotFound when there is nothing to read there.
func (c ContextStore) Delete(ctx context.Context, namespace, key string) error {
	return c.s.inTask(ctx, event.System, func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, "delete from agent_shared_context where namespace = ? and key_name = ? and "+live, clean(namespace), clean(key), micros(t.now)))
		if err != nil {
			return fmt.Errorf("delete %s/%s: %w", namespace, key, err)
		}
		if n == 0 {
			return orchestrator.ErrNotFound
		}
		return t.Append(ctx, c.event("context.deleted", namespace, key))
	})
}

// Touch implements sharedctx.Store. It is no event: the value stays.
func (c ContextStore) Touch(ctx context.Context, namespace, key string, ttl time.Duration) (sharedctx.Entry, error) {
	now := c.s.now()
	if ttl <= 0 {
		ttl = sharedctx.ExtensionTTL
	}
	// One statement, so that a set at the same time is not undone; see Entry.Touched.
	e, err := scanEntry(c.s.w.row(ctx, `update agent_shared_context set updated_at = ?,
		expires_at = case when expires_at is not null and expires_at < ? then ? else expires_at end
		where namespace = ? and key_name = ? and `+live+` returning namespace, key_name, value, agent, expires_at, created_at, updated_at`,
		micros(now), micros(now.Add(ttl)), micros(now.Add(ttl)), clean(namespace), clean(key), micros(now)))
	return e, c.s.explain(err)
}

// Cleanup implements sharedctx.Store.
func (c ContextStore) Cleanup(ctx context.Context, now time.Time) (int, error) {
	n, err := changed(c.s.w.exec(ctx, "delete from agent_shared_context where expires_at <= ?", micros(now)))
	return int(n), c.s.explain(err)
}

// selectAllEntries is the newest of each namespace.
const selectAllEntries = `select namespace, key_name, value, agent, expires_at, created_at, updated_at from (
	select c.*, row_number() over (partition by namespace order by updated_at desc, key_name) as place from agent_shared_context c where ` + live + `
	) ranked where place <= ? order by updated_at desc, namespace, key_name`

// Entries returns unexpired shared context of the namespaces (nil: all), newest first,
// at most limit of each (K31, K32).
func (s *Store) Entries(ctx context.Context, namespaces []string, limit int) ([]sharedctx.Entry, error) {
	if limit < 1 {
		limit = entryLimit
	}
	if namespaces != nil {
		var lists [][]sharedctx.Entry
		for _, ns := range slices.Compact(slices.Sorted(slices.Values(namespaces))) {
			list, err := s.Context("").Query(ctx, ns, limit)
			if err != nil {
				return nil, err
			}
			lists = append(lists, list)
		}
		return sharedctx.Merge(s.now(), 0, lists...), nil
	}
	rows, err := s.r.query(ctx, selectAllEntries, micros(s.now()), limit)
	found, err := collect(rows, err, scanEntry)
	return found, s.explain(err)
}
