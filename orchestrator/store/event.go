package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

const eventColumns = "task_id, n, id, type, delegation_id, actor, at, data, prev_hash, hash"

const (
	selectEvents = "select " + eventColumns + " from events where task_id = ? and n > ? order by n limit ? + 0" // see selectClaimable

	// place is where the order over all tasks has the event e: a row of it is a range of events.
	place = "o.pos - o.n + e.n"
	// fromOrder and inOrder stand around what is read after a place; see afterPlace. So many
	// ranges have so many events, and a planner that is told so reads no more.
	fromOrder = ` from (select pos, task_id, n, length from event_order where pos > ? order by pos limit ? + 0) o
	join events e on e.task_id = o.task_id and e.n > o.n - o.length and e.n <= o.n`
	inOrder = " where " + place + " > ? order by o.pos, e.n limit ? + 0"

	selectOrdered = "select " + place + ", e.task_id, e.n, e.id, e.type, e.delegation_id, e.actor, e.at, e.data, e.prev_hash, e.hash" + fromOrder + inOrder
)

// afterPlace are the arguments of fromOrder and inOrder.
func afterPlace(pos int64, limit int) []any { return []any{pos, limit, pos, limit} }

// batch is how many events one statement inserts; the texts up to it are prepared.
const batch = 8

// insertEvents is the text that inserts k events.
func insertEvents(k int) string {
	return "insert into events (" + eventColumns + ") values " + strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?), ", k-1) + "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
}

// Append adds an event to the task's log. It is numbered, hashed and written with the
// others of this transaction, in one statement, before the commit. Secrets in its data
// are masked by their shape: the log, and all that is made of it, never has one.
func (t *Tx) Append(_ context.Context, e event.Event) error {
	if len(e.Data) == 0 {
		e.Data = json.RawMessage("{}")
	}
	if !json.Valid(e.Data) || e.Data[0] != '{' {
		return fmt.Errorf("the data of a %s event is no JSON object", e.Type)
	}
	e.TaskID, e.At, e.Actor, e.Data = t.row.ID, t.now, clean(e.Actor), mask.JSON(e.Data)
	e.ID = orchestrator.NewID(orchestrator.EventPrefix, t.now)
	t.events = append(t.events, e)
	return nil
}

// number numbers and hashes the events that have none yet.
func (t *Tx) number() {
	for ; t.numbered < len(t.events); t.numbered++ {
		e := &t.events[t.numbered]
		e.N = t.row.LastN + 1
		e.Seal(t.row.LastHash)
		t.row.LastN, t.row.LastHash = e.N, e.Hash
	}
}

// eventArgs are the arguments of insertEvents for one.
func eventArgs(e *event.Event) []any {
	return []any{e.TaskID, e.N, e.ID, string(e.Type), e.DelegationID, e.Actor, e.At.UnixMicro(), string(e.Data), e.PrevHash, e.Hash}
}

func manyArgs(events []event.Event) []any {
	args := make([]any, 0, 10*len(events)+11)
	for i := range events {
		args = append(args, eventArgs(&events[i])...)
	}
	return args
}

func scanEvent(row scanner) (event.Event, error) {
	var e event.Event
	err := scanEventInto(row, &e)
	return e, err
}

// scanEventInto reads the columns of an event after those in before.
func scanEventInto(row scanner, e *event.Event, before ...any) error {
	var at int64
	var data string
	err := row.Scan(append(before, &e.TaskID, &e.N, &e.ID, &e.Type, &e.DelegationID, &e.Actor, &at, &data, &e.PrevHash, &e.Hash)...)
	e.At = fromMicros(at)
	e.SetStored(data)
	return err
}

// Events returns events of one task with n > after, ascending.
func (s *Store) Events(ctx context.Context, taskID string, after int64, limit int) ([]event.Event, error) {
	rows, err := s.r.query(ctx, selectEvents, taskID, after, limit)
	events, err := collect(rows, err, scanEvent)
	return events, s.explain(err)
}

// Ordered returns events of all tasks with a position > after, ascending.
func (s *Store) Ordered(ctx context.Context, after int64, limit int) ([]orchestrator.Positioned, error) {
	rows, err := s.r.query(ctx, selectOrdered, afterPlace(after, limit)...)
	events, err := collect(rows, err, func(row scanner) (orchestrator.Positioned, error) {
		var p orchestrator.Positioned
		err := scanEventInto(row, &p.Event, &p.Pos)
		return p, err
	})
	return events, s.explain(err)
}

const selectPosition = "select pos from event_order order by pos desc limit 1"

// LastPosition is the newest position of the order over all tasks.
func (s *Store) LastPosition(ctx context.Context) (int64, error) {
	var pos int64
	err := s.r.row(ctx, selectPosition).Scan(&pos)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return 0, nil
	}
	return pos, s.explain(err)
}

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
	held atomic.Bool  // this node has the lease
	// alone says that no older node was listed when this one ordered last.
	alone bool
}

// Run hears other nodes, tells them, and orders events, until ctx ends; then it waits
// for all that it started. It returns nil when ctx ended.
func (s *Store) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.followLog(ctx) })
	if s.told == nil {
		defer wg.Wait()
		return s.follow(ctx)
	}
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
			s.seq.held.Store(held)
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

// Ordering locks the lease's row, so that a node that lost the lease without knowing cannot
// write beside its successor. Where the lease was taken since the statement began, others may
// have given places that it does not see, and it gives none. Within a task the ids of the queue
// ascend, because its row was locked.
//
// An older node reads one event a row: while such a node is listed, each has a row of its own.
// That is a text of its own, because PostgreSQL expects 1,000 numbers of each series: it would
// compile a statement for so many rows, which takes longer than all of them.
const (
	orderBegin = `with mine as materialized (select 1 from leases l where name = ? and holder = ?
		and until = (select seen.until from leases seen where seen.name = l.name) for update),
	q as (delete from event_queue where id in (select id from event_queue order by id limit ?) and exists (select 1 from mine)
		returning id, task_id, first_n, last_n),
	r as (`
	orderEnd = `),
	o as (insert into event_order (pos, task_id, n, length)
		select (select coalesce(max(pos), 0) from event_order) + sum(last_n - first_n + 1) over (order by id, first_n),
		task_id, last_n, last_n - first_n + 1 from r returning length)
	select (select count(*) from mine), (select coalesce(sum(length), 0) from o), exists (select 1 from nodes where ranges = 0)`

	orderRanges = orderBegin + "select * from q" + orderEnd
	orderSingly = orderBegin + "select id, task_id, n as first_n, n as last_n from q cross join lateral generate_series(first_n, last_n) as n" + orderEnd
)

// orderSome is one transaction, and one way to the server and back.
func (s *Store) orderSome(ctx context.Context) (n int64, err error) {
	var mine int
	var older bool
	text := orderSingly
	if s.seq.alone {
		text = orderRanges
	}
	err = s.w.row(ctx, text, sequencerLease, s.node, orderBatch).Scan(&mine, &n, &older)
	s.seq.alone = err == nil && !older // none begins, because none opens a database of today
	if err == nil && mine == 0 {
		err = errNotHolder
	}
	s.w.rows.Add(n)
	return n, err
}
