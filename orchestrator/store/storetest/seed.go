package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// seedBatch is how many tasks are written in one transaction.
const seedBatch = 500

// Seeded says what Seed has made.
type Seeded struct {
	Tasks, Delegations, Requests, Events int
	Took                                 time.Duration
}

// Seed fills the migrated database at url with at least so many events of the year up to
// now, in bulk and without the store: tasks of several people with their delegations,
// requests, revisions and decisions, words of which some are rare, and a valid chain of
// hashes. The same call makes the same rows. Open the store afterwards: it makes the
// requests findable.
func Seed(tb testing.TB, url string, events int, now time.Time) Seeded {
	tb.Helper()
	start := time.Now()
	ctx := context.Background()
	b := newBulk(ctx, tb, url)
	s := newSower(b, events, now)
	var made Seeded
	for made.Events < events {
		for range seedBatch {
			s.task()
			if s.made.Events >= events {
				break
			}
		}
		b.flush(tb)
		made = s.made
	}
	for _, text := range b.after {
		if _, err := b.db.ExecContext(ctx, text); err != nil {
			tb.Fatalf("seed: %s: %v", text, err)
		}
	}
	err := b.list()
	if err = errors.Join(err, b.db.Close()); err != nil {
		tb.Fatalf("seed: %v", err)
	}
	made.Took = time.Since(start)
	return made
}

// tables are the ones that are filled, in the order that their references want.
var tables = []struct{ name, columns string }{
	{"tasks", "id, root_id, agent, text, repository, requester_id, requester, via, handoffs, last_seq, last_n, last_hash, created_at, ended_at"},
	{"delegations", `id, task_id, seq, parent_id, from_agent, to_agent, text, state, depth, chain, hop_key, generation, repository, requester, result, error, input_tokens,
		output_tokens, usd_micros, approval_id, attempt, losses, holder, lease_until, ready_at, open_children, token_hash, created_at, started_at, ended_at, since, work`},
	{"requests", `id, task_id, delegation_id, state, version, agent, title, repository, requester_id, requester, via, chain, rule, landed, revert_of, reverted_by, created_at,
		decided_at, revision, lineage`},
	{"revisions", `request_id, n, state, digest, deliver, base, tree, branch, commit_id, bundle, previous, text, files, added, removed, warnings, notes, checks, sandbox, at`},
	{"decisions", "id, request_id, revision, user_id, user_name, channel, verdict, comment, digest, at, seen"},
	{"events", "task_id, n, id, type, delegation_id, actor, at, data, prev_hash, hash"},
	{"event_codes", "event_id, type, code, delegation_id"},
}

// bulk writes many rows at once: by COPY to PostgreSQL, in long transactions to SQLite.
type bulk struct {
	ctx      context.Context
	db       *sql.DB
	postgres bool
	rows     map[string][][]any
	after    []string // what is done at the end
}

func newBulk(ctx context.Context, tb testing.TB, url string) *bulk {
	b := &bulk{ctx: ctx, rows: map[string][][]any{}, after: []string{"analyze"}}
	driver, dsn := "postgres", url
	path, isFile := strings.CutPrefix(url, "sqlite:")
	if isFile {
		driver, dsn = "sqlite", "file:"+strings.ReplaceAll(path, "%", "%25")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-200000)&_txlock=immediate"
		b.after = []string{"insert into delegations_fts (delegations_fts) values ('optimize')", "pragma wal_checkpoint(truncate)"}
	} else {
		b.postgres = true
		b.after = []string{"insert into event_order (pos, task_id, n) select row_number() over (order by at, task_id, n), task_id, n from events", "vacuum analyze"}
	}
	var err error
	if b.db, err = sql.Open(driver, dsn); err != nil {
		tb.Fatal(err)
	}
	b.db.SetMaxOpenConns(1)
	return b
}

// list fills the listing, where the schema has one already.
func (b *bulk) list() error {
	var version int64
	if err := b.db.QueryRowContext(b.ctx, "select max(version_id) from goose_db_version").Scan(&version); err != nil || version < 46 {
		return err
	}
	const columns = "id, task_id, parent_id, to_agent, state, repository, requester, usd_micros, approval_id, created_at, ended_at"
	const words = `to_tsvector('simple', translate(text, './\-_:@#''"` + "`" + `<>()[]{}=+*&|,;!?', repeat(' ', 40)))`
	texts := []string{
		"insert into listing (" + columns + ") select " + columns + " from delegations",
		"insert into listing_words (id, words) select id, " + words + " from delegations",
		"update cursors set pos = (select coalesce(max(pos), 0) from event_order) where name = 'listing'", "vacuum analyze",
	}
	if !b.postgres {
		texts = []string{"insert into listing (row, " + columns + ") select row, " + columns + " from delegations order by row", texts[2], b.after[0]}
	}
	for _, text := range texts {
		if _, err := b.db.ExecContext(b.ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (b *bulk) add(table string, values ...any) { b.rows[table] = append(b.rows[table], values) }

// flush writes what was added.
func (b *bulk) flush(tb testing.TB) {
	tb.Helper()
	tx, err := b.db.BeginTx(b.ctx, nil)
	if err != nil {
		tb.Fatal(err)
	}
	for _, t := range tables {
		if err := b.copy(tx, t.name, strings.FieldsFunc(t.columns, func(r rune) bool { return strings.ContainsRune(", \n\t", r) })); err != nil {
			tb.Fatalf("seed %s: %v", t.name, err)
		}
	}
	if err := tx.Commit(); err != nil {
		tb.Fatal(err)
	}
	clear(b.rows)
}

func (b *bulk) copy(tx *sql.Tx, table string, columns []string) error {
	text := "insert into " + table + " (" + strings.Join(columns, ", ") + ") values (" + strings.Repeat("?, ", len(columns)-1) + "?)"
	if b.postgres {
		text = "copy " + table + " (" + strings.Join(columns, ", ") + ") from stdin"
	}
	stmt, err := tx.PrepareContext(b.ctx, text)
	if err != nil {
		return err
	}
	for _, row := range b.rows[table] {
		if _, err := stmt.ExecContext(b.ctx, row...); err != nil {
			return fmt.Errorf("%v: %w", row[0], err)
		}
	}
	if b.postgres {
		if _, err := stmt.ExecContext(b.ctx); err != nil {
			return err
		}
	}
	return stmt.Close()
}
