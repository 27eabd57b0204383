package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

const eventColumns = "task_id, n, id, type, delegation_id, actor, at, data, prev_hash, hash"

const (
	selectEvents = "select " + eventColumns + " from events where task_id = ? and n > ? order by n limit ? + 0" // see selectClaimable

	selectOrdered = `select o.pos, e.task_id, e.n, e.id, e.type, e.delegation_id, e.actor, e.at, e.data, e.prev_hash, e.hash
	from event_order o join events e on e.task_id = o.task_id and e.n = o.n where o.pos > ? order by o.pos limit ? + 0`
)

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
	rows, err := s.r.query(ctx, selectOrdered, after, limit)
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
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return pos, s.explain(err)
}
