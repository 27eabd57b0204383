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
	countsVersions:      "on",
}

// countsVersions is the setting of a connection whose program counts the versions of tasks.
// Where it is missing, as with an older node or an administrator's psql, triggers count.
const countsVersions = "gatehouse.counts_versions"

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
		apply:      applyPostgres,
		search:     searchPostgres,

		searchRequests:  searchRequestsPostgres,
		requestsWith:    requestsPostgres,
		delegationsWith: delegationsPostgres,
		listings:        listingPostgres(),
		oneOf:           [2]string{"= any(array(", "))"},
	}
	d.claimable = selectClaimable(d)
	d.extra = append(d.extra, insertEvents(batch), orderRanges)
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
	var encoding, counts string
	const ask = "select current_setting('server_version_num')::int, current_setting('server_encoding'), coalesce(current_setting(?, true), '')"
	if err := s.w.row(ctx, ask, countsVersions).Scan(&version, &encoding, &counts); err != nil {
		return err
	}
	if counts != settings[countsVersions] {
		return fmt.Errorf("the setting %s does not reach the server: connect without a pooler that drops settings, and leave it out of the URL", countsVersions)
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

// shape is what a statement of applyPostgres is made for.
type shape struct {
	made                   bool
	inserts, moves, events int
	assumed, looks         int
}

// text is one statement that writes a task's row, where it is as it was read, and with it
// everything else. Without the task's row there is no task id: an insert then breaks, a
// move finds nothing, and the last line divides by zero, so that nothing is written. That
// also makes the task's row the first that is locked.
func (s shape) text() string {
	var b strings.Builder
	if s.made {
		b.WriteString("with t as (" + insertTask + " returning id)")
	} else {
		b.WriteString("with t as (" + updateTask + " returning id)")
	}
	const task = "(select id from t)"
	for i := range s.inserts {
		insert := strings.Replace(insertDelegation, "values (?", "values ("+task, 1)
		fmt.Fprintf(&b, ", i%d as (%s)", i, insert)
	}
	for i := range s.moves {
		move := strings.Replace(moveDelegation, "task_id = ?", "task_id = "+task, 1)
		fmt.Fprintf(&b, ", u%d as (%s returning 1)", i, move)
	}
	if s.events > 0 {
		b.WriteString(", e as (" + strings.ReplaceAll(insertEvents(s.events), "(?", "("+task) + ")" +
			", q as (insert into event_queue (task_id, first_n, last_n) values (" + task + ", ?, ?))")
	}
	b.WriteString(" select 1 / (select count(*) from t)")
	for i := range s.moves {
		fmt.Fprintf(&b, ", 1 / (select count(*) from u%d)", i)
	}
	if s.assumed > 0 {
		b.WriteString(", 1 / (select case when count(*) = 0 then 1 else 0 end from breakers where " + troubled + " and agent in " + marks(s.assumed) + ")")
	}
	for range s.looks {
		b.WriteString(", case when " + givesSome + " then 1 else 0 end")
	}
	return b.String()
}

// writeSet is what t has to write as one statement.
func (t *Tx) writeSet() (shape, []any, error) {
	s := shape{made: t.made, events: len(t.events)}
	args := t.taskArgs()
	if t.made {
		var err error
		if args, err = t.row.args(); err != nil {
			return s, nil, err
		}
	}
	for _, l := range t.order {
		if l.fresh {
			s.inserts++
			args = append(args, l.insertArgs()...)
		}
	}
	for _, l := range t.order {
		if l.dirty && !l.fresh {
			s.moves++
			args = append(args, l.moveArgs()...)
		}
	}
	if s.events > 0 {
		for i := range t.events {
			args = append(args, eventArgs(&t.events[i])[1:]...)
		}
		args = append(args, t.events[0].N, t.row.LastN)
	}
	s.assumed, s.looks = len(t.assumed), len(t.looks)
	args = append(args, anys(t.assumed)...)
	for _, l := range t.looks {
		args = append(args, t.s.lookArgs(l)...)
	}
	return s, args, nil
}

// applyPostgres writes everything in one statement, which is a transaction of its own: one
// way to the server and back.
func applyPostgres(ctx context.Context, t *Tx) error {
	s, args, err := t.writeSet()
	if err != nil {
		return err
	}
	stmt, err := t.s.w.shaped(ctx, s)
	if err != nil {
		return err
	}
	a := t.s.w.ask(stepText[s.made])
	var row *sql.Row
	if stmt == nil {
		row = t.s.w.db.QueryRowContext(ctx, t.s.w.rebind(s.text()), args...)
	} else {
		row = stmt.QueryRowContext(ctx, args...)
	}
	err = t.answered(s, row)
	a.ended(s.rows(err))
	if missed(err) {
		t.doubt()
		return errStale
	}
	return err
}

// answered reads what a statement of this shape answers: ones, and what it looked at.
func (t *Tx) answered(s shape, row *sql.Row) error {
	var one int
	into := make([]any, 1+s.moves+min(s.assumed, 1), 1+s.moves+1+s.looks)
	for i := range into {
		into[i] = &one
	}
	some := make([]int, s.looks)
	for i := range some {
		into = append(into, &some[i])
	}
	if err := row.Scan(into...); err != nil {
		return err
	}
	for i, l := range t.looks {
		*l.none = some[i] == 0
	}
	return nil
}

// stepText is what the statement of a step is counted as.
var stepText = map[bool]string{true: "with t as (" + insertTask, false: "with t as (" + updateTask}

// rows is how many a statement of this shape has written, the sequencer's one included.
func (s shape) rows(err error) int64 {
	if err != nil {
		return 0
	}
	n := 1 + s.inserts + s.moves + s.events
	if s.events > 0 {
		n++
	}
	return int64(n)
}

// missed reports whether a statement found the task, or one of the rows, changed.
func missed(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code == "22012" || e.Code == "23502")
}

// flushPostgres writes what is left in the transaction of the database. Many events go
// before in statements of their own.
func flushPostgres(ctx context.Context, t *Tx) error {
	b := t.bound()
	if len(t.events) == 0 {
		return t.count(ctx, b)
	}
	rest := t.events
	for ; len(rest) > batch; rest = rest[batch:] {
		if _, err := b.exec(ctx, insertEvents(batch), manyArgs(rest[:batch])...); err != nil {
			return err
		}
	}
	args := append(manyArgs(rest), t.row.ID, t.events[0].N, t.row.LastN)
	n, err := changed(b.exec(ctx, flushEvents(len(rest)), append(args, t.taskArgs()...)...))
	if err == nil && n == 0 {
		err = errStale
	}
	return err
}

// flushEvents is one statement for k events, the row that tells the sequencer of
// them, and the task's counters: one way to the server and back.
func flushEvents(k int) string {
	return "with e as (" + insertEvents(k) + ")," +
		" q as (insert into event_queue (task_id, first_n, last_n) values (?, ?, ?)) " + updateTask
}
