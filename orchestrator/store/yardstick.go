package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"
)

// Scratch makes an empty database for measurements beside the one at url: a file on the
// same disk, or a database on the same server. The one at url is not touched. drop removes
// what was made; nothing may be connected to it then.
func Scratch(ctx context.Context, at string) (made string, drop func(context.Context) error, err error) {
	if path, ok := strings.CutPrefix(at, "sqlite:"); ok {
		folder, err := os.MkdirTemp(filepath.Dir(strings.TrimPrefix(path, "//")), "gatehouse-bench-")
		if err != nil {
			return "", nil, fmt.Errorf("make a folder for the database of the measurement: %w", err)
		}
		return "sqlite:" + filepath.Join(folder, "bench.db"), func(context.Context) error { return os.RemoveAll(folder) }, nil
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", nil, errors.New("the database's URL cannot be read: write sqlite:PATH or postgres://user:password@host/name")
	}
	name := "gatehouse_bench_" + strings.ToLower(rand.Text()[:10]) // nothing in it needs quotes
	if err := admin(ctx, u, "create database "+name); err != nil {
		return "", nil, err
	}
	beside := *u
	beside.Path = "/" + name
	return beside.String(), func(ctx context.Context) error { return admin(ctx, u, "drop database if exists "+name+" with (force)") }, nil
}

// admin runs one statement on the server of u.
func admin(ctx context.Context, u *url.URL, statement string) error {
	h, err := postgresHandle(withSettings(u, nil), 1)
	if err != nil {
		return err
	}
	if _, err = h.db.ExecContext(ctx, statement); err != nil {
		if advice := advisePostgres(u, err); advice != "" {
			err = fmt.Errorf("%s: %w", advice, err)
		}
		err = fmt.Errorf("%s: %w", statement, err)
	}
	return errors.Join(err, h.close())
}

// Yardstick commits rows of 300 bytes and does nothing else, as durably as the store does:
// what a commit costs on this disk, on this machine and at this moment.
type Yardstick struct {
	db     *sqlx.DB
	insert *sql.Stmt
}

// NewYardstick measures beside the store at url, which Scratch has made.
func NewYardstick(ctx context.Context, at string) (*Yardstick, error) {
	path, isFile := strings.CutPrefix(at, "sqlite:")
	var h *handle
	var err error
	if isFile {
		h, err = sqliteHandle(path+".bare", 1, url.Values{"_txlock": {"immediate"}}, nil)
	} else {
		h, err = postgresHandle(at, postgresPool)
	}
	if err != nil {
		return nil, err
	}
	y := &Yardstick{db: h.db}
	if _, err = y.db.ExecContext(ctx, "create table if not exists bare (text text)"); err == nil {
		y.insert, err = y.db.PrepareContext(ctx, h.rebind("insert into bare (text) values (?)"))
	}
	if err != nil {
		return nil, errors.Join(err, y.db.Close())
	}
	return y, nil
}

// Commit makes one durable commit.
func (y *Yardstick) Commit(ctx context.Context) error {
	_, err := y.insert.ExecContext(ctx, strings.Repeat("x", 300))
	return err
}

// Close closes its connections.
func (y *Yardstick) Close() error { return errors.Join(y.insert.Close(), y.db.Close()) }

// Size is how many bytes the database takes, indexes and free pages included.
func (s *Store) Size(ctx context.Context) (int64, error) {
	text := "select pg_database_size(current_database())"
	if s.told == nil {
		text = "select page_count * page_size from pragma_page_count(), pragma_page_size()"
	}
	var n int64
	err := s.r.row(ctx, text).Scan(&n)
	return n, s.explain(err)
}

// Work is what this process asked of the database so far. Rows that triggers and indexes
// write are not counted.
type Work struct {
	Statements int64 // each is one way to PostgreSQL and back
	Rows       int64 // inserted, changed and deleted
	Bytes      int64 // of its log, those of everybody who uses the server; 0 on SQLite
}

// Work reads the counts.
func (s *Store) Work(ctx context.Context) (Work, error) {
	w := Work{Statements: s.w.sent.Load(), Rows: s.w.rows.Load()}
	if s.r.h != s.w {
		w.Statements += s.r.h.sent.Load()
	}
	if s.told == nil {
		return w, nil
	}
	w.Statements += s.told.side.sent.Load()
	err := s.r.row(ctx, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&w.Bytes)
	return w, s.explain(err)
}
