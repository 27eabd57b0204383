package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
	// Trace, when set, is told that a batch of retention is written and not committed yet
	// ("forgetting"). Tests end a server there.
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
	s.seq.wake = make(chan struct{}, 1)
	if s.trace = o.Trace; s.trace == nil {
		s.trace = func(string) {}
	}
	if s.node == "" {
		s.node = "node"
	}
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
