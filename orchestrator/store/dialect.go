package store

import (
	"context"
	"database/sql"
	"io/fs"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"

	"github.com/pressly/goose/v3"
)

// dialect is everything in which the two databases differ.
type dialect struct {
	name       string
	goose      goose.Dialect
	migrations func() (fs.FS, error)
	// alone runs fn while no other program migrates; nil where fn is tried again instead.
	alone func(ctx context.Context, s *Store, fn func() error) error

	lock string // ends a select that locks its row
	skip string // … or skips it when another transaction has it
	// snapshot is the isolation in which a transaction reads one moment; the default does on SQLite.
	snapshot sql.IsolationLevel
	// counting keeps other transactions from counting the children of an agent until this one
	// ends; "" where there is one writer.
	counting string
	// clock reads the one clock that all nodes share, in microseconds; "" where there is one node
	// with a clock of its own.
	clock  string
	ending string // the last six characters of id, as indexed

	pattern string // whether the data of an event has what a pattern of letters and [classes] says

	useReady  string // makes the planner read delegations_ready; "" where it does
	claimable string // selectClaimable of this dialect

	indexedBy string // begins what makes the planner read an index; "" where it does

	// classify says what kind of error the driver returned.
	classify func(error) failure
	// advice is what to do about an error that nobody else handles; "" for none.
	advice func(error) string
	// flush writes the events and the counters of a transaction before its commit.
	flush func(ctx context.Context, t *Tx) error
	// search lists delegations whose text has the words of f.Query.
	search func(ctx context.Context, s *Store, f orchestrator.Filter, a asked, limit int) ([]orchestrator.Delegation, error)
	// searchRequests lists the rows of requests with the words of a filter; requestsWith is
	// the text that lists their ids.
	searchRequests func(ctx context.Context, s *Store, a asked, after string, limit int) ([]history.Row, error)
	requestsWith   func(a asked, limit int) (string, []any)
	// delegationsWith is the text that lists the ids of delegations with such words.
	delegationsWith func(a asked, limit int) (string, []any)
	extra           []string // texts that only this dialect prepares
}

// failure is what the store has to know of a driver's error.
type failure int

const (
	other    failure = iota
	conflict         // a unique key is taken
	undone           // a deadlock or the like: the transaction may be run again
	away             // the database did not answer, or the connection broke
	stopped          // the statement was cancelled
)

// statements lists the texts that are prepared: everything on the way of a hop, and what
// every page asks beside its own rows.
func (d *dialect) statements() []string {
	return append([]string{
		selectTask + " where id = ?",
		selectTask + " where id = ?" + d.lock,
		selectDelegation + " where id = ?",
		selectDelegation + " where id = ? and task_id = ?",
		selectDelegation + " where task_id = ? order by seq",
		selectChildren,
		selectChild,
		selectRecent,
		selectBreaker,
		d.claimable,
		selectEvents,
		selectOrdered,
		selectOwnKeys,
		selectOtherKeys,
		selectSession, selectUsers, selectAccountsOf, selectPosition, selectOwnViews, selectCheckpoint, selectVerification,
		insertTask,
		insertDelegation,
		moveDelegation,
		updateTask,
	}, d.extra...)
}
