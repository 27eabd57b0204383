package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gatehouse/migrations"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// sqliteReaders is how many readers are open at most where Options.Pool says nothing.
const sqliteReaders = 8

// pragmas of every connection: a commit is on the disk when it returns, and one that
// finds another program writing waits 5 s.
var pragmas = []string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "temp_store(MEMORY)", "cache_size(-16000)"}

func sqliteDialect() *dialect {
	d := &dialect{
		name:       "SQLite",
		goose:      goose.DialectSQLite3,
		migrations: migrations.SQLite,
		ending:     "substr(id, -6)",
		pattern:    "lower(e.data) glob '*' || ? || '*'",
		useReady:   " indexed by delegations_ready",
		indexedBy:  " indexed by ",
		classify:   classifySQLite,
		flush:      flushSQLite,
		apply:      func(ctx context.Context, t *Tx) error { return t.s.group.apply(ctx, t) },
		search:     searchSQLite,

		searchRequests:  searchRequestsSQLite,
		requestsWith:    requestsSQLite,
		delegationsWith: func(a asked, limit int) (string, []any) { return delegationsSQLite(a, "", limit) },
		listings:        listingSQLite(),
		oneOf:           [2]string{"in (", ")"},
	}
	d.claimable = selectClaimable(d)
	for k := 1; k <= batch; k++ {
		d.extra = append(d.extra, insertEvents(k))
	}
	d.extra = append(d.extra, savepoint, releaseStep, undoStep)
	return d
}

// openSQLite opens the one writer and the readers of the file at path.
func openSQLite(ctx context.Context, s *Store, path string, pool int) error {
	path = strings.TrimPrefix(path, "//")
	if path == "" {
		return errors.New("the database sqlite: has no path: use sqlite:./gatehouse.db")
	}
	if err := checkFile(path); err != nil {
		return err
	}
	s.dialect = sqliteDialect()
	s.dialect.advice = func(err error) string { return adviseSQLite(path, err) }
	if pool < 1 {
		pool = sqliteReaders
	}
	var err error
	if s.w, err = sqliteHandle(path, 1, url.Values{"_txlock": {"immediate"}}, nil); err != nil {
		return err
	}
	if err := s.w.db.PingContext(ctx); err != nil {
		return errors.Join(s.explain(err), s.w.close())
	}
	readers, err := sqliteHandle(path, pool, url.Values{}, []string{"query_only(1)"})
	if err != nil {
		return errors.Join(err, s.w.close())
	}
	s.r = newReads(readers, pool)
	return nil
}

func sqliteHandle(path string, pool int, query url.Values, more []string) (*handle, error) {
	query["_pragma"] = append(append([]string{}, pragmas...), more...)
	// The name is a URI: what has a meaning there is escaped.
	name := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	db, err := sqlx.Open("sqlite", "file:"+name+"?"+query.Encode())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	return &handle{db: db, bind: sqlx.QUESTION}, nil
}

// checkFile finds what SQLite would only report as "unable to open database file".
func checkFile(path string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the folder %s of the database does not exist: make it, or name another file under database: in gatehouse.yaml", folder)
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		// Made here, because SQLite would let everybody read it. Its log files get the
		// same mode.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("the database file %s cannot be made: give this user the right to write its folder (%w)", path, err)
		}
		return f.Close()
	}
	if err != nil {
		return fmt.Errorf("the database file cannot be looked at: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder and not a database file: name a file under database: in gatehouse.yaml", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("the database file %s cannot be written: give this user the right to write it and its folder (%w)", path, err)
	}
	return f.Close()
}

func classifySQLite(err error) failure {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return other
	}
	switch e.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return conflict
	case lib.SQLITE_INTERRUPT:
		return stopped
	}
	return other // a busy database has been waited for already
}

func adviseSQLite(path string, err error) string {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Sprintf("The database file %s is locked by another program. Close that program and try again", path)
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return fmt.Sprintf("The database file %s cannot be written. Give this user the right to write it and its folder", path)
	case lib.SQLITE_CANTOPEN:
		return fmt.Sprintf("The database file %s cannot be opened. Check that its folder exists and that this user may write there", path)
	case lib.SQLITE_FULL:
		return fmt.Sprintf("The disk with the database file %s is full. Make room; nothing was lost", path)
	case lib.SQLITE_NOTADB:
		return fmt.Sprintf("%s is not an SQLite database. Name another file under database: in gatehouse.yaml", path)
	case lib.SQLITE_CORRUPT, lib.SQLITE_IOERR:
		return fmt.Sprintf("The database file %s cannot be read: the disk may be damaged. Go back to a backup", path)
	}
	return ""
}

// flushSQLite writes the events, in the order that is the position, and the counters.
func flushSQLite(ctx context.Context, t *Tx) error {
	if err := insertAll(ctx, t.bound(), t); err != nil {
		return err
	}
	return t.count(ctx, t.bound())
}

// insertAll writes the events of t.
func insertAll(ctx context.Context, b bound, t *Tx) error {
	for rest := t.events; len(rest) > 0; {
		k := min(len(rest), batch)
		if _, err := b.exec(ctx, insertEvents(k), manyArgs(rest[:k])...); err != nil {
			return err
		}
		rest = rest[k:]
	}
	return nil
}

// busySQLite reports whether somebody else holds the file just now. SQLite answers so at
// once, without its busy timeout, when a transaction that has read wants to write and
// another one has written meanwhile.
func busySQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED)
}

// group lets transactions that wait for SQLite's one writer share a commit, each with its
// own outcome: what fails is undone alone, and nobody is told of success before the commit
// that all share has succeeded. One goroutine writes while somebody waits, and close waits
// for it. Whose context ends before it is written leaves.
type group struct {
	mu      sync.Mutex
	waiting []*member
	writes  bool
	writer  sync.WaitGroup
}

// member is a transaction in a group.
type member struct {
	t    *Tx
	told chan error
}

// What a member's statements stand between, so that they can be undone alone.
const (
	savepoint   = "savepoint step"
	releaseStep = "release step"
	undoStep    = "rollback to step"
)

// errBroken says that SQLite has undone the whole transaction, as it may where the disk is
// full: nothing more is written in it.
var errBroken = errors.New("the commit that steps share was undone")

// maxGroup is how many share a commit at most.
const maxGroup = 64

func (g *group) apply(ctx context.Context, t *Tx) error {
	m := &member{t, make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, m)
	if !g.writes {
		g.writes = true
		g.writer.Go(func() { g.run(t.ctx, t.s) })
	}
	g.mu.Unlock()
	select {
	case err := <-m.told:
		return err
	case <-ctx.Done():
		if g.leave(m) {
			return ctx.Err()
		}
		return <-m.told
	}
}

// leave reports whether m still waited.
func (g *group) leave(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, m)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// run writes until nobody waits. Each time it takes those who came by the time it had the
// database's writer.
func (g *group) run(ctx context.Context, s *Store) {
	for more := true; more; {
		tx, err := s.w.begin(ctx)
		g.mu.Lock()
		k := min(len(g.waiting), maxGroup)
		some := slices.Clone(g.waiting[:k])
		g.waiting = slices.Delete(g.waiting, 0, k)
		g.mu.Unlock()
		if err != nil {
			tell(some, fmt.Errorf("begin: %w", err))
		} else {
			write(ctx, s.w, tx, some)
		}
		g.mu.Lock()
		more = len(g.waiting) > 0
		g.writes = more
		g.mu.Unlock()
	}
}

// tell tells an outcome to those who know none yet.
func tell(some []*member, err error) {
	for _, m := range some {
		select {
		case m.told <- err:
		default:
		}
	}
}

// write commits what the members have to write and tells each its outcome. A panic of the
// driver, which may never give its connection back, ends the process.
func write(ctx context.Context, w *handle, tx *sql.Tx, some []*member) {
	ok := some[:0:0]
	for i, m := range some {
		err := m.write(ctx, tx, len(some) > 1)
		if errors.Is(err, errBroken) {
			// Nothing of it is committed; each of the others runs alone.
			w.rollback(tx)
			m.told <- err
			tell(append(ok, some[i+1:]...), errStale)
			return
		}
		if err != nil {
			m.told <- err
			continue
		}
		ok = append(ok, m)
	}
	if len(ok) == 0 {
		w.rollback(tx)
		return
	}
	err := w.commit(tx)
	if err != nil {
		err = commitError{fmt.Errorf("commit: %w", err)}
	}
	tell(ok, err)
}

// write writes what one member has to write. Where others share the commit and it fails,
// it leaves nothing behind.
func (m *member) write(ctx context.Context, tx *sql.Tx, shared bool) (err error) {
	t := m.t
	b := bound{t.s.w, tx}
	if shared {
		if _, err := b.exec(ctx, savepoint); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				if _, lost := b.exec(ctx, undoStep); lost != nil {
					err = fmt.Errorf("%w (%w: %w)", err, errBroken, lost)
					return
				}
			}
			if _, end := b.exec(ctx, releaseStep); end != nil {
				err = fmt.Errorf("%w: %w", errBroken, errors.Join(err, end))
			}
		}()
	}
	if t.made {
		args, err := t.row.args()
		if err != nil {
			return err
		}
		if _, err := b.exec(ctx, insertTask, args...); err != nil {
			return err
		}
	} else if err := t.count(ctx, b); err != nil {
		return err
	}
	for _, l := range t.order {
		if err := l.write(ctx, b, t.row.ID); err != nil {
			return err
		}
	}
	return insertAll(ctx, b, t)
}
