package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
)

// The bounds of the overview: beyond them it says "more than".
const (
	mostToday = 5000 // tasks or decisions of a day
	mostLive  = 500  // live delegations of each state that are looked at
)

// A task's own row has what all below it used.
const selectToday = `select count(*), sum(usd_micros) from
	(select d.usd_micros from listing d where d.parent_id = '' and d.id >= ? order by d.id desc limit ?) t`

// A request lands when its delegation completes, which may be long after the yes.
// Also those count that were reverted later.
const selectLanded = `select count(*) from listing d join requests r on r.id = d.approval_id
	where d.state = 'completed' and d.approval_id <> '' and d.ended_at >= ? and r.state in ('landed', 'reverted')`

// A no may be followed by a retry, so its own time counts. A rule decides in the moment of
// the request; whoever took longer is a person.
const selectDecided = `select r.state, r.decided_at - r.created_at from requests r where r.decided_at >= ? order by r.decided_at desc limit ?`

// Today sums what happened since then. It reads short stretches of indexes, whatever the
// length of the history.
func (s *Store) Today(ctx context.Context, since time.Time) (insight.Today, error) {
	var t insight.Today
	var spent *int64
	s.upToDate(ctx)
	if err := s.r.row(ctx, selectToday, idAt(since), mostToday+1).Scan(&t.Tasks, &spent); err != nil {
		return t, s.explain(err)
	}
	if t.More = t.Tasks > mostToday; t.More {
		t.Tasks = mostToday
	}
	if spent != nil {
		usd := float64(*spent) / 1e6
		t.USD = &usd
	}
	if err := s.r.row(ctx, selectLanded, micros(since)).Scan(&t.Landed); err != nil {
		return t, s.explain(err)
	}
	rows, err := s.r.query(ctx, selectDecided, micros(since), mostToday)
	var waits []time.Duration
	_, err = collect(rows, err, func(row scanner) (string, error) {
		var state string
		var took int64
		err := row.Scan(&state, &took)
		switch {
		case state == "rejected":
			t.Rejected++
		case took > 0 && slices.Contains([]string{"approved", "landed", "reverted"}, state):
			waits = append(waits, time.Duration(took)*time.Microsecond)
		}
		return state, err
	})
	if len(waits) > 0 {
		slices.Sort(waits)
		t.MedianYes = waits[len(waits)/2]
	}
	return t, s.explain(err)
}

// wrong are the tasks whose end nobody wanted, which a person's no is not. The words up to
// the last are those of the index.
const wrong = ` from listing d where d.state in ('failed', 'rejected', 'expired') and d.parent_id = '' and d.ended_at >= ? and d.state <> 'rejected'`

const (
	selectWrong = "select " + delegationColumns + " from (select d.id, d.ended_at" + wrong + " order by d.ended_at desc limit ?) h join delegations d on d.id = h.id order by h.ended_at desc"
	countWrong  = "select count(*)" + wrong
)

// Wrong lists the tasks that failed or expired since then, the newest end
// first, and says how many there were.
func (s *Store) Wrong(ctx context.Context, since time.Time, limit int) ([]orchestrator.Delegation, int, error) {
	var n int
	s.upToDate(ctx)
	if err := s.r.row(ctx, countWrong, micros(since)).Scan(&n); err != nil || n == 0 {
		return nil, 0, s.explain(err)
	}
	rows, err := s.r.query(ctx, selectWrong, micros(since), limit)
	found, err := collect(rows, err, scanDelegation)
	return found, n, s.explain(err)
}

const (
	refused       = " from events e where e.type = 'delegation.refused' and e.at >= ?"
	selectRefused = `select x.task_id, x.n, x.delegation_id, x.actor, x.at, x.data, t.text from
	(select e.task_id, e.n, e.delegation_id, e.actor, e.at, e.data` + refused + ` order by e.at desc limit ?) x join tasks t on t.id = x.task_id order by x.at desc`
	countRefused = "select count(*)" + refused
)

// Refusals lists the hand-overs that guards have refused since then, newest first, and says
// how many there were.
func (s *Store) Refusals(ctx context.Context, since time.Time, limit int) ([]insight.Refusal, int, error) {
	var n int
	if err := s.r.row(ctx, countRefused, micros(since)).Scan(&n); err != nil || n == 0 {
		return nil, 0, s.explain(err)
	}
	rows, err := s.r.query(ctx, selectRefused, micros(since), limit)
	found, err := collect(rows, err, func(row scanner) (insight.Refusal, error) {
		var r insight.Refusal
		var at int64
		var data string
		err := row.Scan(&r.TaskID, &r.N, &r.DelegationID, &r.From, &at, &data, &r.Task)
		var more event.DelegationRefusedData
		event.Decode([]byte(data), &more)
		r.To, r.Code, r.Reason, r.Message, r.At = more.To, more.Code, guard.Reason(more.Reason), more.Message, fromMicros(at)
		return r, err
	})
	return found, n, s.explain(err)
}

// liveQuery finds the newest live tasks, a walk along the index for each state; what is
// parked in great numbers is not read to its end.
func liveQuery(states []orchestrator.State) (string, []any) {
	var walks []string
	var args []any
	for _, state := range states {
		walks = append(walks, `select s.id, s.state from (select d.id, d.state, d.parent_id from listing d where d.state = ? order by d.id desc limit ?) s where s.parent_id = ''`)
		args = append(args, string(state), mostLive)
	}
	return strings.Join(walks, " union all "), args
}

// LiveTasks returns the newest tasks that are in one of the states, at most limit: by the
// order of states, then newest first. It counts them by state, up to 500 of each.
func (s *Store) LiveTasks(ctx context.Context, limit int, states ...orchestrator.State) (found []orchestrator.Delegation, counts map[orchestrator.State]int, err error) {
	s.upToDate(ctx)
	text, args := liveQuery(states)
	rows, err := s.r.query(ctx, text, args...)
	byState := map[orchestrator.State][]string{}
	counts = map[orchestrator.State]int{}
	_, err = collect(rows, err, func(row scanner) (string, error) {
		var id string
		var state orchestrator.State
		err := row.Scan(&id, &state)
		byState[state] = append(byState[state], id)
		counts[state]++
		return id, err
	})
	if err != nil {
		return nil, nil, s.explain(err)
	}
	var ids []any
	for _, state := range states {
		of := byState[state]
		slices.Sort(of)
		slices.Reverse(of)
		for _, id := range of[:min(len(of), limit-len(ids))] {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, counts, nil
	}
	rows, err = s.r.query(ctx, selectDelegation+" where d.id in "+marks(len(ids)), ids...)
	found, err = collect(rows, err, scanDelegation)
	slices.SortFunc(found, func(a, b orchestrator.Delegation) int {
		return slices.Index(ids, any(a.ID)) - slices.Index(ids, any(b.ID))
	})
	return found, counts, s.explain(err)
}

// selectAgents hops along an index from one name to the next instead of reading all rows.
const selectAgents = `with recursive names (name) as (
	select min(to_agent) from listing
	union all
	select (select min(to_agent) from listing where to_agent > names.name) from names where names.name is not null)
	select name,
		(select d.ended_at from listing d where d.to_agent = name and d.ended_at is not null order by d.ended_at desc limit 1),
		(select e.error from delegations e where e.id =
			(select d.id from listing d where d.to_agent = name and d.ended_at is not null order by d.ended_at desc limit 1))
	from names where name is not null`

// Loads counts the live delegations of every agent that has any history, by name.
func (s *Store) Loads(ctx context.Context) ([]orchestrator.Load, error) {
	s.upToDate(ctx)
	rows, err := s.r.query(ctx, selectAgents)
	loads, err := collect(rows, err, func(row scanner) (orchestrator.Load, error) {
		var l orchestrator.Load
		var at sql.NullInt64
		var failure sql.NullString
		if err := row.Scan(&l.Agent, &at, &failure); err != nil {
			return l, err
		}
		l.LastAt = fromNull(at)
		var f agent.Failure
		if failure.Valid && json.Unmarshal([]byte(failure.String), &f) == nil {
			l.LastError = f.Message
		}
		return l, nil
	})
	if err != nil {
		return nil, s.explain(err)
	}
	return loads, s.explain(s.countLive(ctx, loads))
}

// countLive fills in what the agents are doing.
func (s *Store) countLive(ctx context.Context, loads []orchestrator.Load) error {
	byName := make(map[string]*orchestrator.Load, len(loads))
	for i := range loads {
		byName[loads[i].Agent] = &loads[i]
	}
	rows, err := s.r.query(ctx, "select to_agent, state, count(*) from listing where ended_at is null group by to_agent, state")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var state orchestrator.State
		var n int
		if err := rows.Scan(&name, &state, &n); err != nil {
			return err
		}
		l := byName[name]
		if l == nil {
			continue // made since the other query
		}
		switch state {
		case orchestrator.Queued:
			l.Queued += n
		case orchestrator.Waiting, orchestrator.AwaitingApproval:
			l.Waiting += n
		default:
			l.Running += n
		}
	}
	return rows.Err()
}
