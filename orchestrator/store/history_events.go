package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/history"
)

// lookedAt is how many events one page looks at for what no index finds, such as words.
const lookedAt = 20_000

// common are the types that every task has many of: events_type leaves them out. The
// conditions of partial indexes have to stand in a query as they stand in the index.
var common = []event.Type{event.TaskCreated, event.Queued, event.Acknowledged, event.Progress, event.Delegated, event.Waiting, event.Resumed, event.Completed,
	event.MessageCompleted, event.ToolCompleted, event.UsageRecorded, event.ContextRead, event.ContextWritten}

var (
	rareTypes = "e.type not in ('" + strings.Join(typeNames(common), "', '") + "')"
	withActor = "e.type in ('approval.decided', 'task.created')"
)

func typeNames(types []event.Type) []string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = string(t)
	}
	return out
}

// eventAsk is a query for events: the way to walk, and what is asked of each on it.
type eventAsk struct {
	within span
	way    way
	rest   clauses
}

// askEvents turns a query for events into one way and conditions. Of several terms the
// one that is rarest by its nature leads.
func (s *Store) askEvents(ctx context.Context, q history.Query) (eventAsk, error) {
	a := eventAsk{within: spanOf(orchestrator.EventPrefix, q.From, q.To), way: way{walks: []walk{{from: "events e", id: "e.id"}}}}
	rank, lead := 0, -1
	var conds []clauses
	for _, t := range q.Terms {
		if len(t.Values) == 0 {
			continue
		}
		values, text, r := t.Values, "", 0
		var walks []walk
		switch t.Key {
		case history.Task:
			ids, err := s.tasksOf(ctx, values)
			if err != nil {
				return a, err
			}
			values, text, r = ids, "e.task_id in "+marks(len(ids)), 4
			walks = eachValue(ids, "events e", "e.id", "e.task_id = ?")
		case history.Code:
			text, r = "(select x.code from event_codes x where x.event_id = e.id) in "+marks(len(values)), 3
			walks = eachValue(values, "event_codes c join events e on e.id = c.event_id", "c.event_id", "c.code = ?")
		case history.Approver, history.Requester:
			kind := event.Decided
			if t.Key == history.Requester {
				kind = event.TaskCreated
			}
			text, r = "e.type = '"+string(kind)+"' and coalesce(e.actor, '') in "+marks(len(values)), 2
			walks = eachValue(values, "events e", "e.id", withActor+" and e.type = '"+string(kind)+"' and e.actor = ?")
		case history.Type:
			text, r = "coalesce(e.type, '') in "+marks(len(values)), 1
			if slices.ContainsFunc(values, func(v string) bool { return slices.Contains(common, event.Type(v)) }) {
				r = 0
			}
			walks = eachValue(values, "events e", "e.id", rareTypes+" and e.type = ?")
		default:
			continue // Parse has refused it
		}
		if t.Not {
			text = "not coalesce((" + text + "), false)"
		} else if r > rank {
			a.way, rank, lead = way{walks: walks}, r, len(conds)
		}
		conds = append(conds, clauses{texts: []string{"(" + text + ")"}, args: anys(values)})
	}
	for i, c := range conds {
		if i != lead {
			a.rest.add(c.texts[0], c.args...)
		}
	}
	for _, w := range words(strings.Join(q.Words, " ")) {
		a.rest.add("lower(e.data) like ?", "%"+strings.ToLower(w)+"%")
	}
	return a, nil
}

// selectWithin is the text that lists the wanted among the next events on the way.
func (a eventAsk) selectWithin(columns, after string, limit int) (string, []any) {
	none := func(string) clauses { return clauses{} }
	text, args := a.way.ids(a.within.under(after), none, lookedAt)
	args = append(append(args, a.rest.args...), limit)
	conds := append([]string{"1 = 1"}, a.rest.texts...)
	return "select " + columns + " from (" + text + ") h join events e on e.id = h.id where " + strings.Join(conds, " and ") + " order by e.id desc limit ?", args
}

// eventIDs is the text that lists the ids of events, to count them: those among the next
// that one page looks at.
func (s *Store) eventIDs(ctx context.Context, q history.Query, after string, limit int) (string, []any, error) {
	a, err := s.askEvents(ctx, q)
	if err != nil {
		return "", nil, err
	}
	text, args := a.selectWithin("e.id", after, limit)
	return text, args, nil
}

// HistoryEvents lists the events that q asks for, newest first, after the cursor of the
// page before. A cursor that is none is CodeBadRequest.
func (s *Store) HistoryEvents(ctx context.Context, q history.Query, after string, limit int) (history.EventPage, error) {
	limit = pageSize(limit)
	if err := isCursor(after, orchestrator.EventPrefix); err != nil {
		return history.EventPage{}, err
	}
	a, err := s.askEvents(ctx, q)
	if err != nil {
		return history.EventPage{}, s.explain(err)
	}
	text, args := a.selectWithin("e.task_id, e.n, e.id, e.type, e.delegation_id, e.actor, e.at, e.data, e.prev_hash, e.hash", after, limit+1)
	rows, err := s.r.query(ctx, text, args...)
	events, err := collect(rows, err, scanEvent)
	if err != nil {
		return history.EventPage{}, s.explain(err)
	}
	var page history.EventPage
	if len(events) > limit {
		events = events[:limit]
		page.Next, page.To = events[limit-1].ID, events[limit-1].At
	} else if page.Next, page.To, err = s.lastLookedAt(ctx, a, after); err != nil {
		return history.EventPage{}, s.explain(err)
	}
	inTask(events)
	for _, e := range events {
		page.Rows = append(page.Rows, history.Found{ID: e.ID, TaskID: e.TaskID, N: e.N, Type: string(e.Type), DelegationID: e.DelegationID, Actor: e.Actor, At: e.At, Data: e.Data, Hash: e.Hash})
	}
	return page, nil
}

// lastLookedAt is where a page ended that found too few, "" where the log ended.
func (s *Store) lastLookedAt(ctx context.Context, a eventAsk, after string) (string, time.Time, error) {
	if len(a.rest.texts) == 0 {
		return "", time.Time{}, nil
	}
	text, args := a.way.ids(a.within.under(after), func(string) clauses { return clauses{} }, lookedAt)
	rows, err := s.r.query(ctx, "select h.id, e.at from ("+text+") h join events e on e.id = h.id order by h.id desc limit 1 offset ?", append(args, lookedAt-1)...)
	var at int64
	last, err := collect(rows, err, func(row scanner) (string, error) {
		var id string
		err := row.Scan(&id, &at)
		return id, err
	})
	if err != nil || len(last) == 0 {
		return "", time.Time{}, err
	}
	return last[0], fromMicros(at), nil
}

// inTask puts events of one moment into the order of their task: ids of one millisecond
// are in any order.
func inTask(events []event.Event) {
	slices.SortStableFunc(events, func(a, b event.Event) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		if c := strings.Compare(b.TaskID, a.TaskID); c != 0 {
			return c
		}
		return int(b.N - a.N)
	})
}
