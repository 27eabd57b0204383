package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// selectAgents hops along an index from one name to the next instead of reading all rows.
const selectAgents = `with recursive names (name) as (
	select min(to_agent) from delegations
	union all
	select (select min(to_agent) from delegations where to_agent > names.name) from names where names.name is not null)
	select name,
		(select d.ended_at from delegations d where d.to_agent = name and d.ended_at is not null order by d.ended_at desc limit 1),
		(select d.error from delegations d where d.to_agent = name and d.ended_at is not null order by d.ended_at desc limit 1)
	from names where name is not null`

// Loads counts the live delegations of every agent that has any history, by name.
func (s *Store) Loads(ctx context.Context) ([]orchestrator.Load, error) {
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
	rows, err := s.r.query(ctx, "select to_agent, state, count(*) from delegations where ended_at is null group by to_agent, state")
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
