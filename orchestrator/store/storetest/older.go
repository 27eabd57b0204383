package storetest

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"gatehouse/migrations"
	"gatehouse/orchestrator/store/pgtest"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
)

// olderRow is a row of a database as a file keeps it: whole numbers, texts, and bytes as
// {"base64": …}; what is null is left out.
type olderRow struct {
	Table string
	Row   map[string]json.RawMessage
}

// Older fills an empty database with what an older program left in one: its schema of that
// version, and the rows of a .jsonl.gz file, of which a dialect takes the columns that it
// has. Nothing is migrated further. It returns the address.
func Older(t testing.TB, url, file string, version int64) string {
	t.Helper()
	rows, err := olderRows(file)
	if err != nil {
		t.Fatal(err)
	}
	return older(t, url, rows, version)
}

// At gives an empty database the schema of a version.
func At(t testing.TB, url string, version int64) string {
	t.Helper()
	return older(t, url, nil, version)
}

func older(t testing.TB, url string, rows []olderRow, version int64) string {
	t.Helper()
	driver, source, dialect, files := "postgres", url, goose.DialectPostgres, migrations.Postgres
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, source, dialect, files = "sqlite", path, goose.DialectSQLite3, migrations.SQLite
	}
	folder, err := files()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlx.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(fillOlder(t.Context(), db, dialect, folder, rows, version), db.Close())
	if err != nil {
		t.Fatalf("a database of version %d: %v", version, err)
	}
	return url
}

// EmptyPostgres is the address of a database of this test's own that has no tables.
func EmptyPostgres(t testing.TB) string {
	t.Helper()
	return pgtest.DSN(t)
}

func fillOlder(ctx context.Context, db *sqlx.DB, dialect goose.Dialect, folder fs.FS, rows []olderRow, version int64) error {
	p, err := goose.NewProvider(dialect, db.DB, folder, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return err
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // committed by then
	columns := map[string][]string{}
	for _, r := range rows {
		if columns[r.Table] == nil {
			if columns[r.Table], err = empty(ctx, tx, r.Table); err != nil {
				return err
			}
		}
		if err := insert(ctx, tx, r, columns[r.Table]); err != nil {
			return fmt.Errorf("%s: %w", r.Table, err)
		}
		if r.Table == "events" && dialect == goose.DialectPostgres { // there the order over all tasks is a table
			row := map[string]json.RawMessage{"pos": r.Row["pos"], "task_id": r.Row["task_id"], "n": r.Row["n"]}
			if err := insert(ctx, tx, olderRow{"event_order", row}, []string{"pos", "task_id", "n"}); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

func olderRows(file string) ([]olderRow, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var rows []olderRow
	for d := json.NewDecoder(in); ; {
		var r olderRow
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
}

// empty removes what the migrations put into a table, and names its columns.
func empty(ctx context.Context, tx *sqlx.Tx, table string) ([]string, error) {
	if _, err := tx.ExecContext(ctx, "delete from "+table); err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, "select * from "+table)
	if err != nil {
		return nil, err
	}
	names, err := rows.Columns()
	return names, errors.Join(err, rows.Close())
}

func insert(ctx context.Context, tx *sqlx.Tx, r olderRow, columns []string) error {
	var names []string
	var values []any
	for name, raw := range r.Row {
		if !slices.Contains(columns, name) {
			continue
		}
		v, err := olderValue(raw)
		if err != nil {
			return err
		}
		names, values = append(names, name), append(values, v)
	}
	text := fmt.Sprintf("insert into %s (%s) values (%s)", r.Table, strings.Join(names, ", "), strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", "))
	_, err := tx.ExecContext(ctx, tx.Rebind(text), values...)
	return err
}

func olderValue(raw json.RawMessage) (any, error) {
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '{':
		var b struct{ Base64 []byte }
		err := json.Unmarshal(raw, &b)
		return b.Base64, err
	default:
		var n int64
		err := json.Unmarshal(raw, &n)
		return n, err
	}
}
