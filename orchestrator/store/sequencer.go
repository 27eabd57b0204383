package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator/record/event"
)

const (
	sequencerLease = "sequencer"
	sequencerTTL   = 5 * time.Second
	// gather is how long new events wait for others, so that one commit orders many.
	gather     = 20 * time.Millisecond
	orderPoll  = time.Second // the net under the notices
	orderBatch = 2000        // transactions that one commit orders
)

// sequencing is the state of this node's part in the order over all tasks.
type sequencing struct {
	wake chan struct{}
	own  atomic.Int64 // events that this process committed
}

// Run hears other nodes, tells them, and orders events, until ctx ends; then it waits
// for all that it started. It returns nil when ctx ended.
func (s *Store) Run(ctx context.Context) error {
	if s.told == nil {
		return s.follow(ctx)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.told.run(ctx) })
	wg.Go(func() { s.relay.run(ctx) })
	wg.Go(func() { s.hear(ctx) })
	wg.Go(func() { s.sequence(ctx) })
	wg.Wait()
	return nil
}

// follow notices what another process has written into the same SQLite file, such as
// a command that adds a user.
func (s *Store) follow(ctx context.Context) error {
	tick := time.NewTicker(orderPoll)
	defer tick.Stop()
	others := int64(-1)
	for {
		own := s.seq.own.Load()
		if pos, err := s.LastPosition(ctx); err == nil {
			if others >= 0 && pos-own != others {
				s.hub.Publish(event.Notice{})
				s.ordered.poke()
			}
			others = pos - own
		} else if ctx.Err() == nil {
			s.log.Error("reading the newest event failed; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sequence orders events while this node holds the lease, and tries to get it while
// another one does.
func (s *Store) sequence(ctx context.Context) {
	defer func() {
		// Hand over at once; if that fails the lease runs out.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Unlease(last, sequencerLease, s.node)
	}()
	tick := time.NewTicker(orderPoll)
	defer tick.Stop()
	var renew time.Time
	held := false
	for {
		if now := s.now(); !held || now.After(renew) {
			got, err := s.Lease(ctx, sequencerLease, s.node, sequencerTTL)
			held, renew = got && err == nil, now.Add(sequencerTTL/3)
			s.complain(ctx, "asking for the right to order events failed; trying again", err)
		}
		if held {
			if err := s.order(ctx); err != nil {
				held = false
				s.complain(ctx, "ordering events failed; trying again", err)
			}
		}
		if !s.awaitOrders(ctx, tick.C, held) {
			return
		}
	}
}

func (s *Store) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.Error(what, "err", err)
	}
}

// awaitOrders waits until there may be something to order. A node without the lease
// only waits to ask for it again.
func (s *Store) awaitOrders(ctx context.Context, tick <-chan time.Time, held bool) bool {
	woken := s.seq.wake
	if !held {
		woken = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-tick:
		return true
	case <-woken:
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(gather):
		return true
	}
}

// order gives positions to everything that is committed and has none.
func (s *Store) order(ctx context.Context) error {
	for {
		n, err := s.orderSome(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			s.ordered.poke()
			s.told.put(positions, 0, 0)
		}
		if n < orderBatch {
			return nil // what came meanwhile has woken this node again, and gathers
		}
	}
}

// errNotHolder says that another node orders events now.
var errNotHolder = errors.New("another node orders events")

// orderSome is one transaction. It locks the lease's row, so that a node that lost the
// lease without knowing cannot write beside its successor.
func (s *Store) orderSome(ctx context.Context) (int64, error) {
	tx, err := s.w.begin(ctx)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	q := bound{s.w, tx}
	var holder string
	err = q.row(ctx, "select holder from leases where name = ? for update", sequencerLease).Scan(&holder)
	if errors.Is(err, sql.ErrNoRows) || (err == nil && holder != s.node) {
		return 0, errNotHolder
	}
	if err != nil {
		return 0, err
	}
	// Within a task the ids of the queue ascend, because its row was locked.
	n, err := changed(q.exec(ctx, `with q as (
			delete from event_queue where id in (select id from event_queue order by id limit ?) returning id, task_id, first_n, last_n)
		insert into event_order (pos, task_id, n)
		select (select coalesce(max(pos), 0) from event_order) + row_number() over (order by q.id, n), q.task_id, n
		from q cross join lateral generate_series(q.first_n, q.last_n) as n`, orderBatch))
	if err != nil || n == 0 {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return n, nil
}
