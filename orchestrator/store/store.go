package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// Options says how a Store works; the zero value works.
type Options struct {
	Node   string           // this node's name, in leases and notices; "" means "node"
	Now    func() time.Time // nil means time.Now
	Hub    *event.Hub       // told of what was committed; nil means a new one
	Logger *slog.Logger     // nil means slog.Default
	// Pool is how many connections to PostgreSQL are open at most, and how many
	// readers of SQLite; below 1 means 20 and 8.
	Pool int
	// Trace, when set, is told that a batch of retention ("forgetting") or of the follower
	// ("listing") is written and not committed yet. Tests end a server there.
	Trace func(point string)
}

// Store is the database. Its methods may be called from many goroutines.
type Store struct {
	node     string
	trace    func(point string)
	clock    func() time.Time
	hub      *event.Hub
	log      *slog.Logger
	url      string
	dialect  *dialect
	w        *handle // SQLite's one writer
	r        *reads  // readers; of w on PostgreSQL
	ordered  Signal
	told     *notices // for the other nodes; nil on SQLite
	relay    *relay   // shows them what is being written; nil on SQLite
	seq      sequencing
	guesses  guesses // wrong link codes
	recorded recorded
	sizes    sizes
	tasks    tasks
	group    group // of steps that share a commit on SQLite
	lists    listers
	failing  failing
}

var _ orchestrator.Reader = (*Store)(nil)

// Open opens the database at url, sqlite:PATH or postgres://…, and migrates it. Its
// errors say what to do. Two nodes may open a new database at once; one that a newer
// program has migrated is refused.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	s, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	err = s.Migrate(ctx)
	if err == nil {
		err = s.Prepare(ctx, s.dialect.statements()...)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Migrate brings the database at url to this program's version and closes it.
func Migrate(ctx context.Context, url string, o Options) error {
	s, err := connect(ctx, url, o)
	if err != nil {
		return err
	}
	return errors.Join(s.Migrate(ctx), s.Close())
}

// connect opens the handles and nothing else.
func connect(ctx context.Context, url string, o Options) (*Store, error) {
	s := &Store{node: o.Node, clock: o.Now, hub: o.Hub, log: o.Logger, url: url}
	s.seq.wake, s.lists.turn = make(chan struct{}, 1), make(chan struct{}, 1)
	if s.trace = o.Trace; s.trace == nil {
		s.trace = func(string) {}
	}
	if s.node == "" {
		s.node = "node"
	}
	s.tasks.node = s.node
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.hub == nil {
		s.hub = &event.Hub{}
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		if err := openSQLite(ctx, s, rest, o.Pool); err != nil {
			return nil, err
		}
		return s, nil
	case "postgres", "postgresql":
		if err := openPostgres(ctx, s, o.Pool); err != nil {
			return nil, err
		}
		return s, nil
	default:
		return nil, fmt.Errorf("the database %q is none that is known: use sqlite:./gatehouse.db or postgres://user:password@host/name", redact(url))
	}
}

// Hub is told of every event that this process commits or another node announces.
func (s *Store) Hub() *event.Hub { return s.hub }

// Grown tells global streams that the order over all tasks has grown.
func (s *Store) Grown() *Signal { return &s.ordered }

// Dialect is "SQLite" or "PostgreSQL".
func (s *Store) Dialect() string { return s.dialect.name }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.explain(s.r.row(ctx, "select 1").Scan(&one))
}

// Close closes every connection. Run must have returned. A server that is away has
// closed them already.
func (s *Store) Close() error {
	s.group.writer.Wait()
	err := s.w.close()
	if s.r.h != s.w {
		err = errors.Join(err, s.r.h.close())
	}
	if s.told != nil {
		err = errors.Join(err, s.told.side.close())
	}
	if s.dialect.classify(err) == away {
		return nil
	}
	return err
}

// now is the time in whole microseconds, UTC, as it is stored.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Signal tells waiters that something has grown. It counts nothing: whoever was told
// looks for itself. Any number may wait; none is forgotten, and many pokes may become
// one. It is ready to use as its zero value.
type Signal struct {
	mu sync.Mutex
	c  chan struct{}
}

// Changed returns a channel that is closed at the next poke. Take it before looking,
// then wait for it.
func (s *Signal) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

// Wait waits for the next poke or the end of ctx.
func (s *Signal) Wait(ctx context.Context) error {
	select {
	case <-s.Changed():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Signal) poke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// Clock is the time by the one clock that all nodes share, in whole microseconds, UTC: the
// clocks of nodes may be minutes apart. In a snapshot it is a time before its moment.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if s.dialect.clock != "" {
		at, err := readClock(s.r.row(ctx, s.dialect.clock))
		return at, s.explain(err)
	}
	if one := s.r.held(ctx); one != nil {
		return one.at, nil
	}
	return s.now(), nil
}

// clock is Clock within the transaction: when that began.
func (t *Tx) clock() (time.Time, error) {
	if t.s.dialect.clock == "" {
		return t.now, nil
	}
	return readClock(t.q.row(t.ctx, t.s.dialect.clock))
}

func readClock(row scanner) (time.Time, error) {
	var us int64
	if err := row.Scan(&us); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return fromMicros(us), nil
}

// Snapshot returns a context in which every read of this store sees the database as it
// was at the first of them, until done is called; after that, reads see what is newest
// again. A page that is read piece by piece shows one moment by that. Writes are not part
// of it. The reads must come one after another. It holds one connection, and at most half of
// the pool is given away like this: it waits for its turn, and what is read or written beside
// the snapshots always finds a connection. done may be called more than once.
func (s *Store) Snapshot(ctx context.Context) (_ context.Context, done func(), err error) {
	select {
	case s.r.places <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	for try := 1; ; try++ {
		one, behind, err := s.beginSnapshot(ctx)
		if err != nil {
			<-s.r.places
			return nil, nil, s.explain(fmt.Errorf("begin a snapshot: %w", err))
		}
		if !behind || try == snapshotTries {
			return context.WithValue(ctx, snapshotKey{}, one), one.end, nil
		}
		_ = one.q.tx.Rollback() // it has changed nothing
		s.upToDate(ctx)
	}
}

// snapshotTries is how many moments a snapshot looks at for one of which everything is listed.
// Where so much happens that there is none, its lists are a little behind its other parts.
const snapshotTries = 5

// beginSnapshot begins with a look at whether anything of its moment is not listed. On SQLite
// the transaction is a deferred one, which begins with that.
func (s *Store) beginSnapshot(ctx context.Context) (*snapshot, bool, error) {
	at := s.now()
	tx, err := s.r.h.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.snapshot, ReadOnly: true})
	if err != nil {
		return nil, false, err
	}
	one := &snapshot{of: s.r, q: bound{s.r.h, tx}, at: at}
	behind, err := behind(one.q.row(ctx, s.dialect.listings.behind), true)
	if err != nil {
		_ = tx.Rollback()
	}
	return one, behind, err
}

type snapshotKey struct{}

// snapshot is what a context holds until it has ended.
type snapshot struct {
	of *reads
	q  bound
	at time.Time // when it was asked for, which is before its first read

	mu    sync.Mutex
	ended bool
}

// end gives the connection back.
func (o *snapshot) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.ended = true
	_ = o.q.tx.Rollback() // it has changed nothing
	<-o.of.places
}

func (o *snapshot) live() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.ended
}

// reads is how everything outside of a transaction is read: in the snapshot that the
// context holds, else by the pool.
type reads struct {
	h      *handle
	places chan struct{} // full while no further snapshot may begin
}

func newReads(h *handle, pool int) *reads {
	return &reads{h: h, places: make(chan struct{}, max(1, pool/2))}
}

func (r *reads) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if one := r.held(ctx); one != nil {
		return one.q.query(ctx, text, args...)
	}
	return r.h.query(ctx, text, args...)
}

func (r *reads) row(ctx context.Context, text string, args ...any) scanner {
	if one := r.held(ctx); one != nil {
		return one.q.row(ctx, text, args...)
	}
	return r.h.row(ctx, text, args...)
}

// held is the context's snapshot of this store, nil without one.
func (r *reads) held(ctx context.Context) *snapshot {
	if one, ok := ctx.Value(snapshotKey{}).(*snapshot); ok && one.of == r && one.live() {
		return one
	}
	return nil
}
