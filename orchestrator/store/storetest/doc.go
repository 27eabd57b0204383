// Package storetest is the suite that every database passes: what the engine, the
// gateway and the pages may rely on, told as stories. It runs on real SQLite files
// and on a real PostgreSQL.
//
// May import: testing, package store and what it is made for. Only tests import it.
package storetest
