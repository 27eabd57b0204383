package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// This file is how rows are read and written, in the store and in packages beside it that
// keep rows of their own in the same database and write them in the same transactions.
// Texts have ? in both databases.

// Keeper keeps rows of its own about tasks, which retention has to know of.
type Keeper interface {
	// DropTexts replaces the texts of its rows of a task.
	DropTexts(t *Tx, taskID string) error
	// Blobs are the ids of the bytes that its rows of a task name.
	Blobs(t *Tx, taskID string) ([]string, error)
}

// Prepare prepares further texts. It is called before anything else runs.
func (s *Store) Prepare(ctx context.Context, texts ...string) error {
	err := s.w.prepare(ctx, texts)
	if err == nil && s.r.h != s.w {
		err = s.r.h.prepare(ctx, texts)
	}
	return err
}

// Query reads outside of a transaction, or in the snapshot that the context holds.
func (s *Store) Query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return s.r.query(ctx, text, args...)
}

// Row is Query for one row.
func (s *Store) Row(ctx context.Context, text string, args ...any) Scanner {
	return s.r.row(ctx, text, args...)
}

// Exec changes rows in a transaction of its own.
func (s *Store) Exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	return s.w.exec(ctx, text, args...)
}

// Change is Exec for a text that returns the rows it changed.
func (s *Store) Change(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return s.w.query(ctx, text, args...)
}

// ChangeOne is Change for one row.
func (s *Store) ChangeOne(ctx context.Context, text string, args ...any) Scanner {
	return s.w.row(ctx, text, args...)
}

// Transact runs fn in a transaction that holds no task's row. fn may be called again after
// the database undid its work.
func (s *Store) Transact(ctx context.Context, fn func(*Tx) error) error { return s.transact(ctx, fn) }

// InTask runs fn in a transaction that holds the task's row, as orchestrator.Store wants it.
// fn may be called again after the database undid its work, so it must not change anything
// but through its Tx.
func (s *Store) InTask(ctx context.Context, taskID string, fn func(*Tx) error) error {
	return s.inTask(ctx, taskID, fn)
}

// System is InTask for an act that belongs to no task, with the event that says what actor did.
func (s *Store) System(ctx context.Context, actor string, said event.Payload, fn func(*Tx) error) error {
	return s.system(ctx, actor, said, fn)
}

// ForUpdate ends a select that locks its rows.
func (s *Store) ForUpdate() string { return s.dialect.lock }

// SkipLocked ends a select that locks its rows and skips those which another transaction has.
func (s *Store) SkipLocked() string { return s.dialect.skip }

// IndexedBy stands behind a table and makes the planner read that index of it, where it would not.
func (s *Store) IndexedBy(index string) string {
	if s.dialect.indexedBy == "" {
		return ""
	}
	return s.dialect.indexedBy + index
}

// Advise turns a driver's error into one that says what to do.
func (s *Store) Advise(err error) error { return s.explain(err) }

// Node is the name of this node.
func (s *Store) Node() string { return s.node }

// Now is the time in whole microseconds, UTC, as it is stored.
func (s *Store) Now() time.Time { return s.now() }

// Query reads in the transaction.
func (t *Tx) Query(text string, args ...any) (*sql.Rows, error) {
	return t.q.query(t.ctx, text, args...)
}

// Row is Query for one row.
func (t *Tx) Row(text string, args ...any) Scanner { return t.q.row(t.ctx, text, args...) }

// Peek is Row without a lock, where nothing was written yet. What it reads counts as read with
// the task: the write holds only where nobody has written the task since. So it is for rows
// that are written in transactions of their task alone, which call Wrote.
func (t *Tx) Peek(text string, args ...any) Scanner { return t.read().row(t.ctx, text, args...) }

// Wrote has the commit count as one that has written the task.
func (t *Tx) Wrote() { t.wrote = t.row.ID != "" }

// Exec changes rows in the transaction.
func (t *Tx) Exec(text string, args ...any) (sql.Result, error) {
	return t.q.exec(t.ctx, text, args...)
}

// BeforeCommit has fn run when everything else of this transaction is done but its events
// are not written yet.
func (t *Tx) BeforeCommit(fn func() error) { t.before = append(t.before, fn) }

// Scanner is a row that is read.
type Scanner = scanner

// Collect reads all rows with scan.
func Collect[T any](rows *sql.Rows, err error, scan func(Scanner) (T, error)) ([]T, error) {
	return collect(rows, err, scan)
}

// Changed reports how many rows a statement changed.
func Changed(res sql.Result, err error) (int64, error) { return changed(res, err) }

// oneRow is the only row of a query; one that is not there is ErrNotFound.
type oneRow struct{ *sql.Row }

func (r oneRow) Scan(into ...any) error {
	err := r.Row.Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return noRow{}
	}
	return err
}

// noRow is ErrNotFound, and what database/sql says, for whoever asks for that.
type noRow struct{}

func (noRow) Error() string { return orchestrator.ErrNotFound.Error() }

func (noRow) Is(target error) bool {
	return target == orchestrator.ErrNotFound || target == sql.ErrNoRows
}

// Scalar is a row of one column.
func Scalar[T any](row scanner) (T, error) {
	var v T
	err := row.Scan(&v)
	return v, err
}

// Each gives all rows to read.
func Each(rows *sql.Rows, err error, read func(scanner) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// collect reads all rows with scan.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	var all []T
	err = Each(rows, err, func(row scanner) error {
		one, err := scan(row)
		all = append(all, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// ReadAll reads every row of a text with scan, outside of a transaction.
func ReadAll[T any](ctx context.Context, s *Store, scan func(scanner) (T, error), text string, args ...any) ([]T, error) {
	rows, err := s.r.query(ctx, text, args...)
	all, err := collect(rows, err, scan)
	return all, s.explain(err)
}

// ReadOne is ReadAll for a row that has to be there.
func ReadOne[T any](ctx context.Context, s *Store, scan func(scanner) (T, error), text string, args ...any) (T, error) {
	one, err := scan(s.r.row(ctx, text, args...))
	return one, s.explain(err)
}

// The columns whose stored form is another one. A truth, 0 or 1, is scanned into a bool as it is.

// Time scans a time into t; 0 and NULL are the zero time.
func Time(t *time.Time) sql.Scanner { return (*timeColumn)(t) }

type timeColumn time.Time

func (c *timeColumn) Scan(src any) error {
	var us sql.NullInt64
	err := us.Scan(src)
	*c = timeColumn(fromMicros(us.Int64))
	return err
}

// MaybeTime scans a time into t, nil for NULL.
func MaybeTime(t **time.Time) sql.Scanner { return maybeTime{t} }

type maybeTime struct{ into **time.Time }

func (c maybeTime) Scan(src any) error {
	var us sql.NullInt64
	err := us.Scan(src)
	*c.into = fromNull(us)
	return err
}

// Took scans microseconds into d.
func Took(d *time.Duration) sql.Scanner { return (*tookColumn)(d) }

type tookColumn time.Duration

func (c *tookColumn) Scan(src any) error {
	var us sql.NullInt64
	err := us.Scan(src)
	*c = tookColumn(us.Int64) * tookColumn(time.Microsecond)
	return err
}

// USD scans millionths of a dollar into usd, nil for NULL.
func USD(usd **float64) sql.Scanner { return usdColumn{usd} }

type usdColumn struct{ into **float64 }

func (c usdColumn) Scan(src any) error {
	var micro sql.NullInt64
	err := micro.Scan(src)
	*c.into = fromUSD(micro)
	return err
}

// JSON scans a text of JSON into v, a pointer; NULL and no text at all leave it as it is.
func JSON(v any) sql.Scanner { return jsonColumn{v} }

type jsonColumn struct{ into any }

func (c jsonColumn) Scan(src any) error {
	var text sql.NullString
	if err := text.Scan(src); err != nil || text.String == "" {
		return err
	}
	return json.Unmarshal([]byte(text.String), c.into)
}

// MaybeJSON is JSON that leaves v as it is for an empty list, too: what was nil is nil again.
func MaybeJSON(v any) sql.Scanner { return maybeJSON{v} }

type maybeJSON struct{ into any }

func (c maybeJSON) Scan(src any) error {
	var text sql.NullString
	if err := text.Scan(src); err != nil || text.String == "[]" {
		return err
	}
	return JSON(c.into).Scan(text.String)
}

// Clauses are the conditions of a query, and Args what its marks stand for.
type Clauses struct{ of clauses }

// Add adds a condition.
func (c *Clauses) Add(text string, args ...any) { c.of.add(text, args...) }

// Where is them as part of a query.
func (c *Clauses) Where() string { return c.of.where() }

// Args are the arguments of Where, and then more.
func (c *Clauses) Args(more ...any) []any {
	return append(c.of.args[:len(c.of.args):len(c.of.args)], more...)
}

// Marks are n marks in brackets; Tuples are rows of width marks each.
func Marks(n int) string            { return marks(n) }
func Tuples(width, rows int) string { return tuples(width, rows) }

// Args are texts as arguments.
func Args(texts []string) []any { return anys(texts) }

// PageSize is how many rows a page has that was asked to have limit.
func PageSize(limit int) int { return pageSize(limit) }

// Micros is a time as stored, 0 for the zero time; NullMicros one that may be missing.
func Micros(t time.Time) int64              { return micros(t) }
func NullMicros(t *time.Time) sql.NullInt64 { return nullMicros(t) }
func FromMicros(us int64) time.Time         { return fromMicros(us) }
func FromNull(us sql.NullInt64) *time.Time  { return fromNull(us) }

// Encode is v as the text of a JSON column; List makes a missing list an empty one there.
func Encode(v any) (string, error) { return encode(v) }
func List[T any](items []T) []T    { return list(items) }

// Clean makes hostile text storable; Flag is a truth as stored.
func Clean(s string) string { return clean(s) }
func Flag(yes bool) int     { return flag(yes) }
