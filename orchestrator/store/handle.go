package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// handle is a pool of connections with its prepared statements. These are prepared
// once, before anything else runs: preparing later would need a second connection
// while a transaction holds the first.
type handle struct {
	db    *sqlx.DB
	bind  int // sqlx's bind type: ? or $1
	stmts map[string]*sql.Stmt
}

// querier reads, inside a transaction or outside. Texts have ? and are rebound.
type querier interface {
	query(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	row(ctx context.Context, text string, args ...any) *sql.Row
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
	return errors.Join(err, h.db.Close())
}

func (h *handle) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if stmt := h.stmts[text]; stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return h.db.ExecContext(ctx, h.rebind(text), args...)
}

func (h *handle) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if stmt := h.stmts[text]; stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return h.db.QueryContext(ctx, h.rebind(text), args...)
}

func (h *handle) row(ctx context.Context, text string, args ...any) *sql.Row {
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
	if stmt := b.h.stmts[text]; stmt != nil {
		return b.tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	}
	return b.tx.ExecContext(ctx, b.h.rebind(text), args...)
}

func (b bound) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if stmt := b.h.stmts[text]; stmt != nil {
		return b.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}
	return b.tx.QueryContext(ctx, b.h.rebind(text), args...)
}

func (b bound) row(ctx context.Context, text string, args ...any) *sql.Row {
	if stmt := b.h.stmts[text]; stmt != nil {
		return b.tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...)
	}
	return b.tx.QueryRowContext(ctx, b.h.rebind(text), args...)
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
