package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// Snapshot returns a context in which every read of this store sees the database as it
// was at the first of them, until done is called; after that, reads see what is newest
// again. A page that is read piece by piece shows one moment by that. Writes are not part
// of it. The reads must come one after another. It holds one connection, and at most half of
// the pool is given away like this: it waits for its turn, and what is read or written beside
// the snapshots always finds a connection. done may be called more than once.
func (s *Store) Snapshot(ctx context.Context) (_ context.Context, done func(), err error) {
	select {
	case s.r.places <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	// On SQLite the transaction is a deferred one: it begins with the first read.
	tx, err := s.r.h.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.snapshot, ReadOnly: true})
	if err != nil {
		<-s.r.places
		return nil, nil, s.explain(fmt.Errorf("begin a snapshot: %w", err))
	}
	one := &snapshot{of: s.r, q: bound{s.r.h, tx}, at: s.now()}
	return context.WithValue(ctx, snapshotKey{}, one), one.end, nil
}

type snapshotKey struct{}

// snapshot is what a context holds until it has ended.
type snapshot struct {
	of *reads
	q  bound
	at time.Time // when it was asked for, which is before its first read

	mu    sync.Mutex
	ended bool
}

// end gives the connection back.
func (o *snapshot) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.ended = true
	_ = o.q.tx.Rollback() // it has changed nothing
	<-o.of.places
}

func (o *snapshot) live() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.ended
}

// reads is how everything outside of a transaction is read: in the snapshot that the
// context holds, else by the pool.
type reads struct {
	h      *handle
	places chan struct{} // full while no further snapshot may begin
}

func newReads(h *handle, pool int) *reads {
	return &reads{h: h, places: make(chan struct{}, max(1, pool/2))}
}

func (r *reads) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if one := r.held(ctx); one != nil {
		return one.q.query(ctx, text, args...)
	}
	return r.h.query(ctx, text, args...)
}

func (r *reads) row(ctx context.Context, text string, args ...any) scanner {
	if one := r.held(ctx); one != nil {
		return one.q.row(ctx, text, args...)
	}
	return r.h.row(ctx, text, args...)
}

// held is the context's snapshot of this store, nil without one.
func (r *reads) held(ctx context.Context) *snapshot {
	if one, ok := ctx.Value(snapshotKey{}).(*snapshot); ok && one.of == r && one.live() {
		return one
	}
	return nil
}
