package main

import (
	"database/sql"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/sharedctx"
)

// expiring writes a value of the shared context that nobody can read any more in a moment.
func expiring(p *placetest.Place, key string) {
	p.Helper()
	e, err := sharedctx.New(time.Now(), "notes", key, "v", "coder", time.Millisecond)
	p.Must(err)
	_, err = p.Store.Context("test").Set(p.Context(), e)
	p.Must(err)
}

// kept counts the rows of a value, expired or not: what people are shown leaves those out.
func kept(p *placetest.Place, key string) (rows int) {
	p.Helper()
	driver, dsn := "postgres", p.Database
	if file, ok := strings.CutPrefix(p.Database, "sqlite:"); ok {
		driver, dsn = "sqlite", file
	}
	db, err := sql.Open(driver, dsn)
	p.Must(err)
	defer db.Close() //nolint:errcheck // only read
	p.Must(db.QueryRowContext(p.Context(), "select count(*) from agent_shared_context where key_name = $1", key).Scan(&rows))
	return rows
}
