// Package storetest makes real databases for tests, on SQLite and on PostgreSQL: empty ones
// that are migrated already, those of older versions, and large ones. The suite that both
// kinds pass stands beside approval/sqlstore, which is the database as the engine and the
// gate see it.
//
// May import: testing, migrations, package store and the words of the engine. Only tests
// import it.
package storetest
