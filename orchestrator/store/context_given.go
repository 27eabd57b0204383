package store

import (
	"context"
	"slices"

	"gatehouse/orchestrator/sharedctx"

	"github.com/lib/pq"
)

// How much of the shared context is looked at for one run, so that neither one chatty
// namespace nor thousands of them decide what it costs.
const (
	givenEach   = 50   // newest entries of one namespace
	givenRecent = 1000 // newest entries of all namespaces
)

const (
	selectKeys  = "select namespace, key_name, updated_at from agent_shared_context where " + live + " and substr(key_name, 1, ?) <> ?"
	newestFirst = " order by updated_at desc, namespace, key_name limit ? + 0" // SQLite plans a bare limit again each time

	selectNamedKeys = selectKeys + " and namespace = ?" + newestFirst
	selectOwnKeys   = selectKeys + " and namespace in (?, ?, ?, ?)" + newestFirst
	selectOtherKeys = selectKeys + " and substr(namespace, 1, ?) <> ? and substr(namespace, 1, ?) <> ?" +
		" and substr(namespace, 1, ?) <> ? and namespace <> ?" + newestFirst
	// Both at once: every run begins with it.
	selectAllKeys = "select * from (" + selectOwnKeys + ") own union all select * from (" + selectOtherKeys + ") others" +
		" order by updated_at desc, namespace, key_name"
)

// Given returns at most total unexpired entries for a run with these rights: the newest
// of what is the agent's own, then the newest of what it reads (K27, K31, K32). Values
// are read only for entries that are returned.
func (s *Store) Given(ctx context.Context, r sharedctx.Rights, total int) ([]sharedctx.Entry, error) {
	if r.Reads == nil {
		return s.givenAll(ctx, r, total)
	}
	own, err := s.keys(ctx, selectOwnKeys, s.keysOf(givenRecent, texts(r.Own())...))
	if err != nil {
		return nil, err
	}
	var others [][]sharedctx.Entry
	for _, ns := range r.Reads {
		if r.MayRead(ns) != nil || slices.Contains(r.Own(), ns) {
			continue
		}
		found, err := s.keys(ctx, selectNamedKeys, s.keysOf(givenEach, clean(ns)))
		if err != nil {
			return nil, err
		}
		others = append(others, found)
	}
	chosen := append(own, sharedctx.Merge(s.now(), 0, others...)...)
	return s.values(ctx, chosen[:min(len(chosen), total)])
}

// look is a question to the shared context that the write of a transaction answers.
type look struct {
	rights sharedctx.Rights
	none   *bool
}

// GivesNone implements orchestrator.Tx. Only a server is asked like this: elsewhere a read
// costs less.
func (t *Tx) GivesNone(_ context.Context, r sharedctx.Rights) func() bool {
	l := look{r, new(bool)}
	if t.s.told != nil {
		t.looks = append(t.looks, l)
	}
	return func() bool { return *l.none }
}

// givesSome is whether Given has anything for a run, or a little more than it. The names
// compare by their bytes, so that each part reads the primary key alone.
const givesSome = "(exists (select 1 from agent_shared_context where " + live + " and namespace = any(cast(? as text[])) and " + noRecord + ")" +
	" or cast(? as boolean) and exists (select 1 from agent_shared_context where " + live + " and " + noRecord +
	" and (namespace < '" + sharedctx.HandoffPrefix + "' or namespace >= '" + sharedctx.HandoffPrefix + "~' and namespace < '" + sharedctx.MemoryPrefix + "'" +
	" or namespace >= '" + sharedctx.MemoryPrefix + "~' and namespace < '" + sharedctx.BoardPrefix + "' or namespace >= '" + sharedctx.BoardPrefix + "~')))"

const noRecord = "substr(key_name, 1, 11) <> '" + sharedctx.RecordPrefix + "'"

func (s *Store) lookArgs(l look) []any {
	names := make([]string, 0, len(l.rights.Reads)+4)
	for _, name := range append(l.rights.Own(), l.rights.Reads...) {
		names = append(names, clean(name))
	}
	now := micros(s.now())
	return []any{now, pq.Array(names), l.rights.Reads == nil, now}
}

// givenAll is Given for a run that may read every shared namespace.
func (s *Store) givenAll(ctx context.Context, r sharedctx.Rights, total int) ([]sharedctx.Entry, error) {
	args := append(s.keysOf(givenRecent, texts(r.Own())...), s.keysOf(givenRecent,
		len(sharedctx.MemoryPrefix), sharedctx.MemoryPrefix, len(sharedctx.HandoffPrefix), sharedctx.HandoffPrefix,
		len(sharedctx.BoardPrefix), sharedctx.BoardPrefix, r.Agent)...)
	found, err := s.keys(ctx, selectAllKeys, args)
	if err != nil {
		return nil, err
	}
	var own, others []sharedctx.Entry
	for _, e := range found {
		if slices.Contains(r.Own(), e.Namespace) {
			own = append(own, e)
		} else {
			others = append(others, e)
		}
	}
	chosen := append(own, sharedctx.Merge(s.now(), 0, others)...)
	return s.values(ctx, chosen[:min(len(chosen), total)])
}

// keysOf are the arguments of a text that begins as selectKeys does.
func (s *Store) keysOf(limit int, args ...any) []any {
	return append(append([]any{micros(s.now()), len(sharedctx.RecordPrefix), sharedctx.RecordPrefix}, args...), limit)
}

// keys returns entries without their values, newest first, without the records of
// delegations: those are there to be asked for.
func (s *Store) keys(ctx context.Context, text string, args []any) ([]sharedctx.Entry, error) {
	rows, err := s.r.query(ctx, text, args...)
	found, err := collect(rows, err, func(row scanner) (sharedctx.Entry, error) {
		var e sharedctx.Entry
		var updated int64
		err := row.Scan(&e.Namespace, &e.Key, &updated)
		e.UpdatedAt = fromMicros(updated)
		return e, err
	})
	return atMost(givenEach, found), s.explain(err)
}

func texts(all []string) []any {
	args := make([]any, len(all))
	for i, s := range all {
		args[i] = clean(s)
	}
	return args
}

// atMost keeps the first n entries of each namespace.
func atMost(n int, entries []sharedctx.Entry) []sharedctx.Entry {
	count := map[string]int{}
	return slices.DeleteFunc(entries, func(e sharedctx.Entry) bool {
		count[e.Namespace]++
		return count[e.Namespace] > n
	})
}

// values reads the chosen entries whole, in their order.
func (s *Store) values(ctx context.Context, chosen []sharedctx.Entry) ([]sharedctx.Entry, error) {
	whole := map[[2]string]sharedctx.Entry{}
	for some := range slices.Chunk(chosen, usesAtOnce) {
		rows, err := s.r.query(ctx, selectEntries+" where "+live+" and "+among(some), append([]any{micros(s.now())}, names(some)...)...)
		found, err := collect(rows, err, scanEntry)
		if err != nil {
			return nil, s.explain(err)
		}
		for _, e := range found {
			whole[[2]string{e.Namespace, e.Key}] = e
		}
	}
	var given []sharedctx.Entry
	for _, c := range chosen {
		if e, ok := whole[[2]string{c.Namespace, c.Key}]; ok {
			given = append(given, e)
		}
	}
	return given, nil
}
