// Package migrations holds the database's schema as numbered goose files, one folder
// for each dialect. Both folders have the same numbers, so that a version means the
// same on SQLite and on PostgreSQL.
//
// A file that was released is never edited; a change is a new number. Times are
// microseconds since 1970 in UTC as BIGINT; JSON is text, because jsonb reorders and
// what is hashed must not change.
//
// The room imports only the standard library.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// SQLite returns the migrations for SQLite.
func SQLite() (fs.FS, error) { return fs.Sub(files, "sqlite") }

// Postgres returns the migrations for PostgreSQL.
func Postgres() (fs.FS, error) { return fs.Sub(files, "postgres") }
