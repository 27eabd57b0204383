package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
)

// handle is a pool of connections with its prepared statements. These are prepared
// once, before anything else runs: preparing later would need a second connection
// while a transaction holds the first.
type handle struct {
	db    *sqlx.DB
	bind  int // sqlx's bind type: ? or $1
	stmts map[string]*sql.Stmt

	sent, rows atomic.Int64 // statements, and rows that they wrote
	kinds      *tally       // of them by kind; nil where nobody measures

	mu     sync.Mutex
	shapes map[shape]*sql.Stmt // of whole transactions
}

// querier reads, inside a transaction or outside. Texts have ? and are rebound.
type querier interface {
	query(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	row(ctx context.Context, text string, args ...any) scanner
}

func (h *handle) rebind(text string) string { return sqlx.Rebind(h.bind, text) }

// prepare prepares the texts of the hot paths; others are sent as they are.
func (h *handle) prepare(ctx context.Context, texts []string) error {
	if h.stmts == nil {
		h.stmts = make(map[string]*sql.Stmt, len(texts))
	}
	for _, text := range texts {
		stmt, err := h.db.PrepareContext(ctx, h.rebind(text))
		if err != nil {
			return fmt.Errorf("prepare %q: %w", text, err)
		}
		h.stmts[text] = stmt
	}
	return nil
}

func (h *handle) close() error {
	var err error
	for _, stmt := range h.stmts {
		err = errors.Join(err, stmt.Close())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, stmt := range h.shapes {
		err = errors.Join(err, stmt.Close())
	}
	return errors.Join(err, h.db.Close())
}

func (h *handle) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	a := h.ask(text)
	if stmt := h.stmts[text]; stmt != nil {
		return a.wrote(stmt.ExecContext(ctx, args...))
	}
	return a.wrote(h.db.ExecContext(ctx, h.rebind(text), args...))
}

func (h *handle) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	defer h.ask(text).done()
	if stmt := h.stmts[text]; stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return h.db.QueryContext(ctx, h.rebind(text), args...)
}

func (h *handle) row(ctx context.Context, text string, args ...any) scanner {
	defer h.ask(text).done()
	if stmt := h.stmts[text]; stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return h.db.QueryRowContext(ctx, h.rebind(text), args...)
}

// bound is a transaction of a handle.
type bound struct {
	h  *handle
	tx *sql.Tx
}

func (b bound) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	a := b.h.ask(text)
	if stmt := b.h.stmts[text]; stmt != nil {
		return a.wrote(b.tx.StmtContext(ctx, stmt).ExecContext(ctx, args...))
	}
	return a.wrote(b.tx.ExecContext(ctx, b.h.rebind(text), args...))
}

func (b bound) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	defer b.h.ask(text).done()
	if stmt := b.h.stmts[text]; stmt != nil {
		return b.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}
	return b.tx.QueryContext(ctx, b.h.rebind(text), args...)
}

func (b bound) row(ctx context.Context, text string, args ...any) scanner {
	defer b.h.ask(text).done()
	if stmt := b.h.stmts[text]; stmt != nil {
		return b.tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...)
	}
	return b.tx.QueryRowContext(ctx, b.h.rebind(text), args...)
}

// begin begins a transaction, which is one statement, as its end will be.
func (h *handle) begin(ctx context.Context) (*sql.Tx, error) {
	defer h.ask("begin").done()
	return h.db.BeginTx(ctx, nil)
}

// commit ends a transaction, as rollback does.
func (h *handle) commit(tx *sql.Tx) error {
	defer h.ask("commit").done()
	return tx.Commit()
}

func (h *handle) rollback(tx *sql.Tx) {
	defer h.ask("rollback").done()
	_ = tx.Rollback() // what it had written is undone in any case
}

// maxShapes is how many shapes are prepared: each connection keeps a plan of each of them.
// Those that come first are the frequent ones.
const maxShapes = 48

// shaped is the prepared statement of a shape, which is made when it is first asked for, or
// nil where there are enough. Nobody who holds a connection asks: preparing needs one.
func (h *handle) shaped(ctx context.Context, s shape) (*sql.Stmt, error) {
	h.mu.Lock()
	stmt, full := h.shapes[s], len(h.shapes) >= maxShapes
	h.mu.Unlock()
	if stmt != nil || full {
		return stmt, nil
	}
	// Others go on meanwhile: a connection may be slow to answer.
	stmt, err := h.db.PrepareContext(ctx, h.rebind(s.text()))
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if first := h.shapes[s]; first != nil || len(h.shapes) >= maxShapes {
		return first, stmt.Close()
	}
	if h.shapes == nil {
		h.shapes = map[shape]*sql.Stmt{}
	}
	h.shapes[s] = stmt
	return stmt, nil
}

// collect reads all rows with scan.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// scanner is a row.
type scanner interface{ Scan(into ...any) error }

// changed reports how many rows a statement changed.
func changed(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// dialect is everything in which the two databases differ.
type dialect struct {
	name       string
	goose      goose.Dialect
	migrations func() (fs.FS, error)
	// alone runs fn while no other program migrates; nil where fn is tried again instead.
	alone func(ctx context.Context, s *Store, fn func() error) error

	lock string // ends a select that locks its row
	skip string // … or skips it when another transaction has it
	// snapshot is the isolation in which a transaction reads one moment; the default does on SQLite.
	snapshot sql.IsolationLevel
	// counting keeps other transactions from counting the children of an agent until this one
	// ends; "" where there is one writer.
	counting string
	// clock reads the one clock that all nodes share, in microseconds; "" where there is one node
	// with a clock of its own.
	clock  string
	ending string // the last six characters of id, as indexed

	pattern string // whether the data of an event has what a pattern of letters and [classes] says

	useReady  string // makes the planner read delegations_ready; "" where it does
	claimable string // selectClaimable of this dialect

	indexedBy string // begins what makes the planner read an index; "" where it does

	// classify says what kind of error the driver returned.
	classify func(error) failure
	// advice is what to do about an error that nobody else handles; "" for none.
	advice func(error) string
	// apply commits what a transaction has to write that began none in the database; errStale
	// where its task is not as it was read.
	apply func(ctx context.Context, t *Tx) error
	// flush writes the events and the counters of a transaction before its commit.
	flush func(ctx context.Context, t *Tx) error
	// search lists delegations whose text has the words of f.Query.
	search func(ctx context.Context, s *Store, f orchestrator.Filter, a asked, limit int) ([]orchestrator.Delegation, error)
	// searchRequests lists the rows of requests with the words of a filter; requestsWith is
	// the text that lists their ids.
	searchRequests func(ctx context.Context, s *Store, a asked, after string, limit int) ([]history.Row, error)
	requestsWith   func(a asked, limit int) (string, []any)
	// delegationsWith is the text that lists the ids of delegations with such words.
	delegationsWith func(a asked, limit int) (string, []any)
	listings        listings
	// oneOf stands around the text that lists the ids of rows which are then read one by one: a
	// planner that is asked to join may read all of a table.
	oneOf [2]string
	extra []string // texts that only this dialect prepares
}

// failure is what the store has to know of a driver's error.
type failure int

const (
	other    failure = iota
	conflict         // a unique key is taken
	undone           // a deadlock or the like: the transaction may be run again
	away             // the database did not answer, or the connection broke
	stopped          // the statement was cancelled
)

// statements lists the texts that are prepared: everything on the way of a hop, and what
// every page asks beside its own rows.
func (d *dialect) statements() []string {
	return append([]string{
		selectTask + " where id = ?",
		selectTask + " where id = ?" + d.lock,
		selectHead, selectHead + d.lock,
		selectDelegation + " where id = ?",
		selectDelegation + " where id = ? and task_id = ?",
		selectDelegation + " where task_id = ? order by seq",
		selectChildren,
		selectChild,
		selectRecent,
		selectBreaker,
		d.claimable,
		selectEvents,
		selectOrdered,
		selectAllKeys,
		selectSession, selectUsers, selectAccountsOf, selectPosition, selectOwnViews, selectCheckpoint, selectVerification,
		insertTask,
		insertDelegation,
		moveDelegation,
		updateTask,
	}, d.extra...)
}

// whole is the text that reads the delegations whose ids a text lists, newest first.
func (d *dialect) whole(ids string) string {
	return selectDelegation + " where d.id " + d.oneOf[0] + ids + d.oneOf[1] + " order by d.id desc"
}

// micros is a time as stored; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// whole is t as it comes back from the database.
func whole(t time.Time) time.Time { return fromMicros(micros(t)) }

// nullMicros is a time that may be missing.
func nullMicros(t *time.Time) sql.NullInt64 {
	if t == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: true}
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func fromNull(us sql.NullInt64) *time.Time {
	if !us.Valid {
		return nil
	}
	t := time.UnixMicro(us.Int64).UTC()
	return &t
}

// usdMicros is money as millionths of a dollar; a sum that is no number is unknown.
func usdMicros(usd *float64) sql.NullInt64 {
	if usd == nil || math.IsNaN(*usd) || math.IsInf(*usd, 0) {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: int64(math.Round(*usd * 1e6)), Valid: true}
}

func fromUSD(m sql.NullInt64) *float64 {
	if !m.Valid {
		return nil
	}
	usd := float64(m.Int64) / 1e6
	return &usd
}

// encode is v as the text of a JSON column.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// encodeOr is encode for a pointer that may be nil: the column is NULL then.
func encodeOr[T any](v *T) (sql.NullString, error) {
	if v == nil {
		return sql.NullString{}, nil
	}
	text, err := encode(v)
	return sql.NullString{String: text, Valid: true}, err
}

func decodeOr[T any](text sql.NullString) (*T, error) {
	if !text.Valid {
		return nil, nil
	}
	v := new(T)
	return v, json.Unmarshal([]byte(text.String), v)
}

// clean makes hostile text storable: PostgreSQL refuses NULs and broken UTF-8 with
// errors that would fail the whole transaction.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// list makes a missing list an empty one: the column reads [] and not null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// spelt is such a list as events tell it.
func spelt[T ~string](items []T) []string {
	out := make([]string, len(items))
	for i, v := range items {
		out[i] = string(v)
	}
	return out
}
