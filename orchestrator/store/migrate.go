package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	jitter "math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
)

// migrateTries and migratePause bound the wait for another program that migrates the
// same SQLite file; PostgreSQL has a lock for that.
const (
	migrateTries = 20
	migratePause = 50 * time.Millisecond
	migrateBusy  = 10 * time.Second // that the file may be locked by one that does
)

// NewerError says that the database was migrated by a newer program.
type NewerError struct{ Have, Know int64 }

// Error says what to do.
func (e *NewerError) Error() string {
	return fmt.Sprintf("the database has version %d and this program knows versions up to %d: run the newer gatehouse that migrated it, or go back to a backup from before", e.Have, e.Know)
}

// Migrate brings the database to this program's version. Several may do it at once.
func (s *Store) Migrate(ctx context.Context) error {
	if s.dialect.alone != nil {
		return s.explain(s.dialect.alone(ctx, s, func() error { return s.up(ctx) }))
	}
	began := time.Now()
	for try := 1; ; try++ {
		err := s.up(ctx)
		// Another program may have made the same table a moment ago, or be at it: look again.
		again := s.dialect.advice(err) == "" || busySQLite(err) && time.Since(began) < migrateBusy
		if err == nil || try == migrateTries || errors.As(err, new(*NewerError)) || !again || ctx.Err() != nil {
			return s.explain(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(migratePause + jitter.N(migratePause)):
		}
	}
}

// Version returns the database's version and the newest that this program knows.
func (s *Store) Version(ctx context.Context) (have, know int64, err error) {
	p, err := s.provider()
	if err != nil {
		return 0, 0, err
	}
	have, know, err = p.GetVersions(ctx)
	return have, know, s.explain(err)
}

func (s *Store) provider() (*goose.Provider, error) {
	files, err := s.dialect.migrations()
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	p, err := goose.NewProvider(s.dialect.goose, s.w.db.DB, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

func (s *Store) up(ctx context.Context) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	have, know, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the database's version: %w", err)
	}
	if have > know {
		return &NewerError{Have: have, Know: know}
	}
	if have == know {
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database from version %d to %d: %w", have, know, err)
	}
	s.log.Info("database migrated", "from", have, "to", know)
	return nil
}

// Backup writes a consistent copy of the whole database into a new file, also while
// servers run. Of SQLite it is a database that can be served as it is; of PostgreSQL an
// archive of pg_dump, which pg_restore reads. A copy that failed leaves no file.
func (s *Store) Backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already. Name a new file", path)
	}
	// The name says what it is until it is whole; the folder is the same, so that the last
	// step is a rename.
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := s.copyTo(ctx, part)
	if err == nil {
		err = os.Chmod(part, 0o600) // it has everything that the database has
	}
	if err == nil {
		err = os.Link(part, path) // fails where a file has come meanwhile; a rename would replace it
	}
	if gone := os.Remove(part); err == nil {
		err = gone
	}
	return err
}

func (s *Store) copyTo(ctx context.Context, path string) error {
	if strings.HasPrefix(s.url, "sqlite:") {
		_, err := s.w.exec(ctx, "vacuum into ?", path)
		return s.explain(err)
	}
	u, err := url.Parse(s.url)
	if err != nil {
		return err
	}
	dump, err := exec.LookPath("pg_dump")
	if err != nil {
		return errors.New("pg_dump is not on the PATH. Install PostgreSQL's client programs, of the server's version or newer")
	}
	cmd := exec.CommandContext(ctx, dump, "--format=custom", "--no-password", "--file="+path)
	cmd.Env = os.Environ()
	if secret, ok := u.User.Password(); ok { // not in an argument, where everybody sees it
		cmd.Env = append(cmd.Env, "PGPASSWORD="+secret)
		u.User = url.User(u.User.Username())
	}
	u.RawQuery = libpqOnly(u.Query()).Encode()
	cmd.Args = append(cmd.Args, "--dbname="+u.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_dump: %s: %w", strings.TrimSpace(string(out)), err)
	}
	return nil
}

// libpqOnly keeps the parameters of an address that PostgreSQL's own programs know: lib/pq
// takes settings of the server as well, which they refuse.
func libpqOnly(q url.Values) url.Values {
	known := url.Values{}
	for _, key := range []string{"host", "port", "user", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name"} {
		if v, ok := q[key]; ok {
			known[key] = v
		}
	}
	return known
}

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
	Kinds      map[string]Kind
}

// Kind is what statements of one kind took, such as "select breakers". Its time ends with
// the first row that is read.
type Kind struct {
	Statements, Rows int64
	Took             time.Duration
}

// Measure has Work tell the kinds of statements from now on. It is called before anything
// else runs.
func (s *Store) Measure() {
	all := &tally{of: map[string]Kind{}, labels: map[string]string{}}
	s.w.kinds, s.r.h.kinds = all, all
	if s.told != nil {
		s.told.side.kinds = all
	}
}

// Work reads the counts.
func (s *Store) Work(ctx context.Context) (Work, error) {
	w := Work{Statements: s.w.sent.Load(), Rows: s.w.rows.Load(), Kinds: s.w.kinds.read()}
	if s.r.h != s.w {
		w.Statements += s.r.h.sent.Load()
	}
	if s.told == nil {
		return w, nil
	}
	w.Statements += s.told.side.sent.Load()
	err := s.r.h.db.QueryRowxContext(ctx, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&w.Bytes)
	return w, s.explain(err)
}

// tally counts statements by kind.
type tally struct {
	mu     sync.Mutex
	of     map[string]Kind
	labels map[string]string // by text
}

func (k *tally) read() map[string]Kind {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.of)
}

func (k *tally) add(text string, rows int64, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	label, known := k.labels[text]
	if !known {
		label = kindOf(text)
		k.labels[text] = label
	}
	one := k.of[label]
	k.of[label] = Kind{one.Statements + 1, one.Rows + rows, one.Took + took}
}

// kindOf is a label of a statement: its first verb and the first table, or else function,
// behind it.
func kindOf(text string) string {
	words := strings.Fields(text)
	verb := words[0]
	for i, word := range words {
		switch word = strings.TrimLeft(word, "("); word {
		case "insert", "update", "delete", "select":
			if verb = word; word == "update" && i+1 < len(words) {
				return verb + " " + words[i+1]
			}
		case "into", "from":
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "(") {
				return verb + " " + words[i+1]
			}
		}
	}
	if len(words) > 1 && verb == "select" {
		name, _, _ := strings.Cut(words[1], "(")
		return verb + " " + name
	}
	return verb
}

// asking is a statement on its way.
type asking struct {
	h    *handle
	text string
	from time.Time
}

// ask counts a statement.
func (h *handle) ask(text string) asking {
	h.sent.Add(1)
	if h.kinds == nil {
		return asking{h: h, text: text}
	}
	return asking{h, text, time.Now()}
}

// wrote is the end of a statement that writes.
func (a asking) wrote(res sql.Result, err error) (sql.Result, error) {
	rows := int64(0)
	if err == nil && a.text != savepoint && a.text != releaseStep { // these repeat what was before them
		if n, err := res.RowsAffected(); err == nil {
			rows = n
		}
	}
	a.ended(rows)
	return res, err
}

// done is the end of a statement that reads.
func (a asking) done() { a.ended(0) }

func (a asking) ended(rows int64) {
	a.h.rows.Add(rows)
	if a.h.kinds != nil {
		a.h.kinds.add(a.text, rows, time.Since(a.from))
	}
}
