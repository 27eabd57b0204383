package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/sharedctx"
)

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
	var at int64
	err := row.Scan(&u.N, &u.Namespace, &u.Key, &u.Kind, &u.Agent, &u.DelegationID, &u.TaskID, &at)
	u.At = fromMicros(at)
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
	rows, err := c.s.r.query(ctx, text+" order by n desc limit ?", append(args, pageSize(limit))...)
	found, err := collect(rows, err, scanUse)
	return found, c.s.explain(err)
}

// forgetUses removes the uses before then of entries that are gone.
func (s *Store) forgetUses(ctx context.Context, then time.Time) error {
	_, err := s.w.exec(ctx, `delete from context_uses where at < ? and not exists
		(select 1 from agent_shared_context c where c.namespace = context_uses.namespace and c.key_name = context_uses.key_name)`, micros(then))
	return err
}
