package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
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

// The same, but an expiry is only pushed forward; what never expires stays so (K39). An
// entry that has expired is before now, so it gets the new expiry as well.
var extendEntry = strings.Replace(upsertEntry, "expires_at = excluded.expires_at",
	"expires_at = case when excluded.expires_at is null then null when agent_shared_context.expires_at < excluded.expires_at then excluded.expires_at else agent_shared_context.expires_at end", 1)

// ContextStore is the shared context as people use it: what they write or delete is
// an event of the stream "system" and a use. Agents write through the Tx of their task.
type ContextStore struct {
	s      *Store
	actor  string
	person *string // the user's id where a person asks; nil: whoever is held to rights elsewhere
}

var _ sharedctx.Store = ContextStore{}

// Context returns the shared context whole, for the engine and this program, which act by
// that name.
func (s *Store) Context(actor string) ContextStore { return ContextStore{s, actor, nil} }

// ContextOf returns the shared context as a person uses it: the boards of tasks that
// somebody else asked for are not there.
func (s *Store) ContextOf(actor, userID string) ContextStore {
	return ContextStore{s, actor, &userID}
}

// ownBoards is the condition for namespaces that a person sees; its arguments are boardArgs.
const ownBoards = "(substr(namespace, 1, ?) <> ? or exists (select 1 from tasks bt where bt.id = substr(namespace, ?) and bt.requester_id = ?))"

func boardArgs(userID string) []any {
	return []any{len(sharedctx.BoardPrefix), sharedctx.BoardPrefix, len(sharedctx.BoardPrefix) + 1, userID}
}

// sees is ErrNotFound for the board of a task that somebody else asked for.
func (c ContextStore) sees(ctx context.Context, namespace string) error {
	id, board := strings.CutPrefix(clean(namespace), sharedctx.BoardPrefix)
	if c.person == nil || !board {
		return nil
	}
	mine, err := ReadOne(ctx, c.s, Scalar[bool], "select exists (select 1 from tasks where id = ? and requester_id = ? and requester_id <> '')", id, *c.person)
	if err == nil && !mine {
		return orchestrator.ErrNotFound
	}
	return err
}

func scanEntry(row scanner) (sharedctx.Entry, error) {
	var e sharedctx.Entry
	err := row.Scan(&e.Namespace, &e.Key, &e.Value, &e.Agent, MaybeTime(&e.ExpiresAt), Time(&e.CreatedAt), Time(&e.UpdatedAt))
	e.Scope = sharedctx.ScopeOf(e.Namespace)
	return e, err
}

// kept upserts one entry by a statement and returns it as it is stored.
func (t *Tx) kept(text string, e sharedctx.Entry) (sharedctx.Entry, error) {
	if err := e.Check(); err != nil {
		return e, orchestrator.Errorf(orchestrator.CodeBadRequest, "%w", err)
	}
	kept, err := scanEntry(t.q.row(t.ctx, text, e.Namespace, e.Key, e.Value, e.Agent, nullMicros(e.ExpiresAt), micros(e.CreatedAt), micros(e.UpdatedAt)))
	if err != nil {
		return e, fmt.Errorf("write %s/%s: %w", e.Namespace, e.Key, err)
	}
	return kept, nil
}

// PutEntry upserts one value of the shared context; its event and use are the caller's.
func (t *Tx) PutEntry(_ context.Context, e sharedctx.Entry) (sharedctx.Entry, error) {
	return t.kept(upsertEntry, e)
}

// ExtendEntry is PutEntry that moves an expiry only forward (K39).
func (t *Tx) ExtendEntry(_ context.Context, e sharedctx.Entry) (sharedctx.Entry, error) {
	return t.kept(extendEntry, e)
}

// DropEntry removes what can be read there, else it is ErrNotFound.
func (t *Tx) DropEntry(_ context.Context, namespace, key string) error {
	n, err := changed(t.q.exec(t.ctx, "delete from agent_shared_context where namespace = ? and key_name = ? and "+live, clean(namespace), clean(key), micros(t.now)))
	if err != nil {
		return fmt.Errorf("delete %s/%s: %w", namespace, key, err)
	}
	if n == 0 {
		return orchestrator.ErrNotFound
	}
	return nil
}

// TouchEntry prolongs an entry in one statement, so that a set at the same time is not
// undone; see sharedctx.Entry.Touched.
func (t *Tx) TouchEntry(_ context.Context, namespace, key string, ttl time.Duration) (sharedctx.Entry, error) {
	if ttl <= 0 {
		ttl = sharedctx.ExtensionTTL
	}
	until := micros(t.now.Add(ttl))
	return scanEntry(t.q.row(t.ctx, `update agent_shared_context set updated_at = ?,
		expires_at = case when expires_at is not null and expires_at < ? then ? else expires_at end
		where namespace = ? and key_name = ? and `+live+` returning namespace, key_name, value, agent, expires_at, created_at, updated_at`,
		micros(t.now), until, until, clean(namespace), clean(key), micros(t.now)))
}

// Set implements sharedctx.Store.
func (c ContextStore) Set(ctx context.Context, e sharedctx.Entry) (sharedctx.Entry, error) {
	return c.write(ctx, upsertEntry, e)
}

// Extend implements sharedctx.Store.
func (c ContextStore) Extend(ctx context.Context, e sharedctx.Entry) (sharedctx.Entry, error) {
	return c.write(ctx, extendEntry, e)
}

// write upserts one entry with its use and its event.
func (c ContextStore) write(ctx context.Context, text string, e sharedctx.Entry) (sharedctx.Entry, error) {
	kept := e
	if err := c.sees(ctx, e.Namespace); err != nil {
		return e, err
	}
	err := c.s.inTask(ctx, event.System, func(t *Tx) error {
		var err error
		if kept, err = t.kept(text, e); err != nil {
			return err
		}
		if err := c.note(t, sharedctx.Write, e.Namespace, e.Key); err != nil {
			return err
		}
		// The value may be secret or long and is left out.
		return t.Append(ctx, event.Of("", c.actor, event.ContextWrittenData{Entry: event.Entry{Namespace: e.Namespace, Key: e.Key}}))
	})
	return kept, err
}

// note records what a person did with an entry.
func (c ContextStore) note(t *Tx, kind sharedctx.Kind, namespace, key string) error {
	_, err := t.NoteUses(t.ctx, []sharedctx.Use{{Namespace: namespace, Key: key, Kind: kind, Agent: c.actor}})
	return err
}

// Get implements sharedctx.Store.
func (c ContextStore) Get(ctx context.Context, namespace, key string) (sharedctx.Entry, error) {
	if err := c.sees(ctx, namespace); err != nil {
		return sharedctx.Entry{}, err
	}
	return ReadOne(ctx, c.s, scanEntry, selectEntries+" where namespace = ? and key_name = ? and "+live, clean(namespace), clean(key), micros(c.s.now()))
}

// Query implements sharedctx.Store.
func (c ContextStore) Query(ctx context.Context, namespace string, limit int) ([]sharedctx.Entry, error) {
	return c.Prefix(ctx, namespace, "", limit)
}

// Prefix implements sharedctx.Store. The prefix is compared itself as well, because
// LIKE ignores the case of ASCII letters on SQLite.
func (c ContextStore) Prefix(ctx context.Context, namespace, prefix string, limit int) ([]sharedctx.Entry, error) {
	if err := c.sees(ctx, namespace); err != nil {
		return nil, err
	}
	if limit < 1 {
		limit = entryLimit
	}
	limit = min(limit, maxPage)
	namespace, prefix = clean(namespace), clean(prefix)
	text, args := selectEntries+" where namespace = ? and "+live, []any{namespace, micros(c.s.now())}
	if prefix != "" {
		text += ` and key_name like ? escape '\' and substr(key_name, 1, ?) = ?`
		args = append(args, sharedctx.EscapeLike(prefix)+"%", len([]rune(prefix)), prefix)
	}
	return ReadAll(ctx, c.s, scanEntry, text+" order by updated_at desc, key_name limit ?", append(args, limit)...)
}

// Delete implements sharedctx.Store; ErrNotFound when there is nothing to read there.
func (c ContextStore) Delete(ctx context.Context, namespace, key string) error {
	if err := c.sees(ctx, namespace); err != nil {
		return err
	}
	return c.s.inTask(ctx, event.System, func(t *Tx) error {
		if err := t.DropEntry(ctx, namespace, key); err != nil {
			return err
		}
		if err := c.note(t, sharedctx.Delete, namespace, key); err != nil {
			return err
		}
		return t.Append(ctx, event.Of("", c.actor, event.ContextDeletedData{Entry: event.Entry{Namespace: namespace, Key: key}}))
	})
}

// Touch implements sharedctx.Store. It is no event: the value stays.
func (c ContextStore) Touch(ctx context.Context, namespace, key string, ttl time.Duration) (sharedctx.Entry, error) {
	var touched sharedctx.Entry
	if err := c.sees(ctx, namespace); err != nil {
		return touched, err
	}
	err := c.s.inTask(ctx, event.System, func(t *Tx) error {
		var err error
		if touched, err = t.TouchEntry(ctx, namespace, key, ttl); err != nil {
			return err
		}
		return c.note(t, sharedctx.Touch, namespace, key)
	})
	return touched, err
}

// Cleanup implements sharedctx.Store.
func (c ContextStore) Cleanup(ctx context.Context, now time.Time) (int, error) {
	n, err := changed(c.s.w.exec(ctx, "delete from agent_shared_context where expires_at <= ?", micros(now)))
	if err != nil {
		return 0, c.s.explain(err)
	}
	return int(n), c.s.explain(c.s.forgetUses(ctx, now.Add(-sharedctx.KeepUses)))
}

// Topics implements sharedctx.Store.
func (c ContextStore) Topics(ctx context.Context, prefix, after string, limit int) ([]sharedctx.Topic, error) {
	prefix = clean(prefix)
	where, args := "namespace > ? and substr(namespace, 1, ?) = ? and "+live, []any{clean(after), len([]rune(prefix)), prefix, micros(c.s.now())}
	if c.person != nil {
		where, args = where+" and "+ownBoards, append(args, boardArgs(*c.person)...)
	}
	return ReadAll(ctx, c.s, func(row scanner) (topic sharedctx.Topic, err error) {
		err = row.Scan(&topic.Namespace, &topic.Entries, Time(&topic.UpdatedAt))
		return topic, err
	}, "select namespace, count(*), max(updated_at) from agent_shared_context where "+where+" group by namespace order by namespace limit ?",
		append(args, pageSize(limit))...)
}

// usesAtOnce is how many rows one statement takes; SQLite counts its arguments.
const usesAtOnce = 100

// NoteUses records uses at the time of the transaction and returns those that were not
// recorded before: a delegation's reads of one entry are one use.
func (t *Tx) NoteUses(_ context.Context, uses []sharedctx.Use) ([]sharedctx.Use, error) {
	var fresh []sharedctx.Use
	for some := range slices.Chunk(uses, usesAtOnce) {
		var args []any
		for _, u := range some {
			task := u.TaskID
			if u.DelegationID != "" {
				task = t.row.ID
			}
			args = append(args, clean(u.Namespace), clean(u.Key), string(u.Kind), u.Agent, u.DelegationID, task, micros(t.now))
		}
		text := "insert into context_uses (namespace, key_name, kind, agent, delegation_id, task_id, at) values " + tuples(7, len(some)) + " on conflict do nothing returning " + useColumns
		rows, err := t.q.query(t.ctx, text, args...)
		recorded, err := collect(rows, err, scanUse)
		if err != nil {
			return nil, fmt.Errorf("record who used the shared context: %w", err)
		}
		fresh = append(fresh, recorded...)
	}
	return fresh, nil
}

// Prolong pushes the expiry of these entries forward to until, where they have one. It
// is no update of theirs: their order stays, else a read would make itself newer.
func (t *Tx) Prolong(_ context.Context, entries []sharedctx.Entry, until time.Time) error {
	for some := range slices.Chunk(entries, usesAtOnce) {
		args := []any{micros(until), micros(until), micros(t.now)}
		_, err := t.q.exec(t.ctx, "update agent_shared_context set expires_at = ? where expires_at < ? and expires_at > ? and "+among(some), append(args, names(some)...)...)
		if err != nil {
			return fmt.Errorf("prolong what was read: %w", err)
		}
	}
	return nil
}

// tuples is rows of width placeholders each: (?, ?), (?, ?).
func tuples(width, rows int) string {
	one := "(" + strings.Repeat("?, ", width-1) + "?)"
	return strings.Repeat(one+", ", rows-1) + one
}

// among is the condition that a row is one of these entries; names are its arguments.
func among(entries []sharedctx.Entry) string {
	return "(namespace, key_name) in (values " + tuples(2, len(entries)) + ")"
}

func names(entries []sharedctx.Entry) []any {
	var args []any
	for _, e := range entries {
		args = append(args, e.Namespace, e.Key)
	}
	return args
}

const useColumns = "n, namespace, key_name, kind, agent, delegation_id, task_id, at"

func scanUse(row scanner) (sharedctx.Use, error) {
	var u sharedctx.Use
	err := row.Scan(&u.N, &u.Namespace, &u.Key, &u.Kind, &u.Agent, &u.DelegationID, &u.TaskID, Time(&u.At))
	return u, err
}

// Uses implements sharedctx.Store.
func (c ContextStore) Uses(ctx context.Context, namespace, key string, before int64, limit int) ([]sharedctx.Use, error) {
	if err := c.sees(ctx, namespace); err != nil {
		return nil, err
	}
	text, args := "select "+useColumns+" from context_uses where namespace = ? and key_name = ?", []any{clean(namespace), clean(key)}
	if before > 0 {
		text, args = text+" and n < ?", append(args, before)
	}
	return ReadAll(ctx, c.s, scanUse, text+" order by n desc limit ?", append(args, pageSize(limit))...)
}

// forgetUses removes the uses before then of entries that are gone.
func (s *Store) forgetUses(ctx context.Context, then time.Time) error {
	_, err := s.w.exec(ctx, `delete from context_uses where at < ? and not exists
		(select 1 from agent_shared_context c where c.namespace = context_uses.namespace and c.key_name = context_uses.key_name)`, micros(then))
	return err
}
