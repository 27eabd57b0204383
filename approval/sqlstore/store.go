package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/store"
)

// Store is the database as the engine and the gate see it.
type Store struct {
	*store.Store
	waiting pendings
	told    atomic.Pointer[[]approval.Told] // who hears of the ends of tasks
}

var (
	_ orchestrator.Store = (*Store)(nil)
	_ approval.Store     = (*Store)(nil)
	_ approval.Tx        = (*Tx)(nil)
	_ store.Keeper       = keeper{}
)

// Open opens the database at url as store.Open does, and makes requests findable that an
// older program wrote.
func Open(ctx context.Context, url string, o store.Options) (*Store, error) {
	below, err := store.Open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	s := &Store{Store: below}
	if err := s.Prepare(ctx, s.selectOverdue(), selectPending); err != nil {
		return nil, errors.Join(err, below.Close())
	}
	if err := s.listOld(ctx); err != nil && ctx.Err() == nil { // everything works but the history of these
		log := o.Logger
		if log == nil {
			log = slog.Default()
		}
		log.Error("Requests of an older version are missing in the history. The next start tries again.", "error", err)
	}
	return s, nil
}

// Tx is a transaction of the engine with the gate's rows.
type Tx struct {
	*store.Tx
	s        *Store
	requests map[string]*approval.Request
	touched  []string // ids of requests that lists have to show anew
	wasEnded bool     // the task had ended before
}

// tx is t with the gate's rows.
func (s *Store) tx(t *store.Tx) *Tx {
	with := &Tx{Tx: t, s: s, wasEnded: t.Task().EndedAt != nil}
	t.BeforeCommit(with.list)
	t.BeforeCommit(with.report)
	return with
}

// InTask implements orchestrator.Store.
func (s *Store) InTask(ctx context.Context, taskID string, fn func(orchestrator.Tx) error) error {
	return s.Store.InTask(ctx, taskID, func(t *store.Tx) error { return fn(s.tx(t)) })
}

// NewTask implements orchestrator.Store.
func (s *Store) NewTask(ctx context.Context, task orchestrator.Task, fn func(orchestrator.Tx) error) (orchestrator.Task, bool, error) {
	return s.Store.NewTask(ctx, task, func(t *store.Tx) error { return fn(s.tx(t)) })
}

// InGate implements approval.Store.
func (s *Store) InGate(ctx context.Context, taskID string, fn func(approval.Tx) error) error {
	return s.Store.InTask(ctx, taskID, func(t *store.Tx) error { return fn(s.tx(t)) })
}

// transact runs fn in a transaction that holds no task's row.
func (s *Store) transact(ctx context.Context, fn func(*Tx) error) error {
	return s.Transact(ctx, func(t *store.Tx) error { return fn(&Tx{Tx: t, s: s}) })
}

// selectNewest is what tells whether the newest request of a delegation can be closed.
const selectNewest = `select kind, state, case when question in ('', 'null') then 0 else 1 end from requests
	where delegation_id = ? and task_id = ? and kind in ('patch', 'handover') order by id desc limit 1`

// CloseRequest implements orchestrator.Tx.
func (t *Tx) CloseRequest(ctx context.Context, delegationID string, end orchestrator.RequestEnd, commit string) error {
	if len(t.requests) == 0 { // most have nothing to close, and are not locked for that
		newest, asks := approval.Request{}, 0
		err := t.Peek(selectNewest, delegationID, t.Task().ID).Scan(&newest.Kind, &newest.State, &asks)
		if asks == 1 {
			newest.Handover = &orchestrator.HandoverQuestion{}
		}
		if errors.Is(err, sql.ErrNoRows) || err == nil && !newest.Closes() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for the request of %s: %w", delegationID, err)
		}
	}
	return approval.CloseRequest(ctx, t, delegationID, end, commit)
}

// CloseAsk implements orchestrator.Tx.
func (t *Tx) CloseAsk(ctx context.Context, requestID string) error {
	return approval.CloseAsk(ctx, t, requestID)
}

// Overtaken implements orchestrator.Tx.
func (t *Tx) Overtaken(ctx context.Context, delegationID string, o patch.Overtaken) error {
	return approval.Overtake(ctx, t, delegationID, o)
}

// ShowLanding implements orchestrator.Tx.
func (t *Tx) ShowLanding(ctx context.Context, delegationID string) error {
	return approval.ShowLanding(ctx, t, delegationID)
}

// Configuration implements approval.Store.
func (s *Store) Configuration(ctx context.Context) (approval.Taken, error) {
	t, err := s.Store.Configuration(ctx)
	return approval.Taken(t), err
}

// Configuration is the same within the transaction.
func (t *Tx) Configuration(ctx context.Context) (approval.Taken, error) {
	taken, err := t.Tx.Configuration(ctx)
	return approval.Taken(taken), err
}
