package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"gatehouse/migrations"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
)

const (
	postgresPool = 20     // connections, where Options.Pool says nothing
	minPostgres  = 140000 // server_version_num of the oldest version that works
	// migrationLock is the advisory lock of whoever migrates; the number is ours.
	migrationLock = 0x6761746568
)

// settings of every connection, unless the URL has them: a server that is away is
// noticed in 5 s, and a node that froze inside a transaction loses it after a minute.
var settings = map[string]string{
	"connect_timeout": "5", "application_name": "gatehouse", "sslmode": "prefer",
	"lock_timeout": "30000", "idle_in_transaction_session_timeout": "60000",
	"binary_parameters": "yes", // a query that is not prepared is one way to the server and back, and not two
}

func postgresDialect() *dialect {
	d := &dialect{
		name:       "PostgreSQL",
		goose:      goose.DialectPostgres,
		migrations: migrations.Postgres,
		alone:      migrateAlone,
		lock:       " for update",
		skip:       " for update skip locked",
		snapshot:   sql.LevelRepeatableRead,
		counting:   "select pg_advisory_xact_lock(hashtextextended('spawned by ' || ?, 0))",
		clock:      "select (extract(epoch from now()) * 1000000)::bigint",
		ending:     "right(id, 6)",
		pattern:    "lower(e.data) ~ ?",
		classify:   classifyPostgres,
		flush:      flushPostgres,
		search:     searchPostgres,

		searchRequests:  searchRequestsPostgres,
		requestsWith:    requestsPostgres,
		delegationsWith: delegationsPostgres,

		extra: []string{insertEvents(batch)},
	}
	d.claimable = selectClaimable(d)
	for k := 1; k <= batch; k++ {
		d.extra = append(d.extra, flushEvents(k))
	}
	return d
}

// openPostgres opens a pool, and one more connection for notices, whose commits need
// not wait for the disk.
func openPostgres(ctx context.Context, s *Store, pool int) error {
	u, err := url.Parse(s.url)
	if err != nil {
		return fmt.Errorf("the database's URL cannot be read: write postgres://user:password@host/name, with special characters of the password as %%XX")
	}
	s.dialect = postgresDialect()
	s.dialect.advice = func(err error) string { return advisePostgres(u, err) }
	if pool < 1 {
		pool = postgresPool
	}
	s.url = withSettings(u, nil)
	if s.w, err = postgresHandle(s.url, pool); err != nil {
		return err
	}
	s.r = newReads(s.w, pool)
	side, err := postgresHandle(withSettings(u, map[string]string{"synchronous_commit": "off"}), 1)
	if err != nil {
		return errors.Join(err, s.w.close())
	}
	s.told, s.relay = newNotices(s.node, side), newRelay(s, side)
	s.hub.Connect(s.relay)
	if err := checkServer(ctx, s); err != nil {
		return errors.Join(s.explain(err), s.Close())
	}
	return nil
}

// withSettings returns u with the settings that it does not have itself.
func withSettings(u *url.URL, more map[string]string) string {
	query := u.Query()
	for _, set := range []map[string]string{settings, more} {
		for name, value := range set {
			if !query.Has(name) {
				query.Set(name, value)
			}
		}
	}
	with := *u
	with.RawQuery = query.Encode()
	return with.String()
}

func postgresHandle(dsn string, pool int) (*handle, error) {
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("the database's URL cannot be used: check its parameters, for example sslmode=disable or verify-full")
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	return &handle{db: db, bind: sqlx.DOLLAR}, nil
}

func checkServer(ctx context.Context, s *Store) error {
	var version int
	var encoding string
	if err := s.w.row(ctx, "select current_setting('server_version_num')::int, current_setting('server_encoding')").Scan(&version, &encoding); err != nil {
		return err
	}
	if version < minPostgres {
		return fmt.Errorf("the server is PostgreSQL %d and gatehouse needs 14 or newer: update the server", version/10000)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s and gatehouse needs UTF8: make the database again with createdb -E UTF8", encoding)
	}
	return nil
}

// migrateAlone runs fn while this connection holds the advisory lock; another node
// that starts at the same time waits for it. It ends with its connection.
func migrateAlone(ctx context.Context, s *Store, fn func() error) error {
	conn, err := s.w.db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// Another node may migrate a large database for longer than lock_timeout.
	if _, err := conn.ExecContext(ctx, "select set_config('lock_timeout', '0', false), pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	err = fn()
	_, unlock := conn.ExecContext(context.WithoutCancel(ctx), "select pg_advisory_unlock($1), set_config('lock_timeout', $2, false)", int64(migrationLock), settings["lock_timeout"])
	return errors.Join(err, unlock)
}

func classifyPostgres(err error) failure {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return other
	}
	var e *pq.Error
	if errors.As(err, &e) {
		switch code := string(e.Code); {
		case code == "23505":
			return conflict
		case code == "40001", code == "40P01", code == "55P03": // 55P03: waited for lock_timeout
			return undone
		case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), code == "53300", code == "25P03":
			return away
		case code == "57014":
			return stopped
		}
		return other
	}
	var network net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return away
	}
	return other
}

func advisePostgres(u *url.URL, err error) string {
	var e *pq.Error
	if errors.As(err, &e) {
		switch string(e.Code) {
		case "28P01", "28000":
			return fmt.Sprintf("PostgreSQL at %s refuses the user %q. Check the user and password of database: in gatehouse.yaml", u.Host, u.User.Username())
		case "3D000":
			name := strings.TrimPrefix(u.Path, "/")
			return fmt.Sprintf("PostgreSQL at %s has no database %q. Make it, for example with createdb %s", u.Host, name, name)
		case "42501":
			return fmt.Sprintf("The user %q may not do this in PostgreSQL at %s. Make it the owner of the database", u.User.Username(), u.Host)
		case "53100":
			return fmt.Sprintf("PostgreSQL at %s has no room on its disk. Make room; nothing was lost", u.Host)
		case "53300":
			return fmt.Sprintf("PostgreSQL at %s has no free connection. Raise its max_connections, or run fewer nodes", u.Host)
		case "25006":
			return fmt.Sprintf("PostgreSQL at %s only reads: it is a replica or was made read-only. Name the primary under database: in gatehouse.yaml", u.Host)
		}
	}
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return fmt.Sprintf("PostgreSQL at %s does not speak TLS. Add ?sslmode=disable to database: in gatehouse.yaml if the way there is safe", u.Host)
	}
	if classifyPostgres(err) == away {
		return fmt.Sprintf("PostgreSQL at %s does not answer. Check that it runs and that database: in gatehouse.yaml is right, then try again; what was not answered may have to be done again", u.Host)
	}
	return ""
}

// redact hides the password of a URL.
func redact(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		return u.Redacted()
	}
	scheme, _, _ := strings.Cut(raw, ":")
	return scheme + ":…"
}

// flushEvents is one statement for k events, the row that tells the sequencer of
// them, and the task's counters: one way to the server and back.
func flushEvents(k int) string {
	return "with e as (" + insertEvents(k) + "), q as (insert into event_queue (task_id, first_n, last_n) values (?, ?, ?)) " + updateTask
}

func flushPostgres(ctx context.Context, t *Tx) error {
	if len(t.events) == 0 {
		_, err := t.q.exec(ctx, updateTask, t.taskArgs()...)
		return err
	}
	rest := t.events
	for ; len(rest) > batch; rest = rest[batch:] {
		if _, err := t.q.exec(ctx, insertEvents(batch), eventArgs(rest[:batch])...); err != nil {
			return err
		}
	}
	args := append(eventArgs(rest), t.row.ID, t.events[0].N, t.row.LastN)
	_, err := t.q.exec(ctx, flushEvents(len(rest)), append(args, t.taskArgs()...)...)
	return err
}
