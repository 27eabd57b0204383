package main

import (
	"database/sql"
	"strings"
	"time"

	"gatehouse/orchestrator/sharedctx"
)

// expiring writes a value of the shared context that nobody can read any more in a moment.
func (p *place) expiring(key string) {
	p.Helper()
	e, err := sharedctx.New(time.Now(), "notes", key, "v", "coder", time.Millisecond)
	p.must(err)
	_, err = p.store.Context("test").Set(p.Context(), e)
	p.must(err)
}

// kept counts the rows of a value, expired or not: what people are shown leaves those out.
func (p *place) kept(key string) (rows int) {
	p.Helper()
	driver, dsn := "postgres", p.database
	if file, ok := strings.CutPrefix(p.database, "sqlite:"); ok {
		driver, dsn = "sqlite", file
	}
	db, err := sql.Open(driver, dsn)
	p.must(err)
	defer db.Close() //nolint:errcheck // only read
	p.must(db.QueryRowContext(p.Context(), "select count(*) from agent_shared_context where key_name = $1", key).Scan(&rows))
	return rows
}
