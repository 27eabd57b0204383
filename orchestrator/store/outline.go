package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
)

// manyAtOnce is how many ids one statement names; SQLite counts its arguments.
const manyAtOnce = 500

const selectOutline = `select id, parent_id, from_agent, to_agent, state, depth, hop_key, generation, repository, requester, spawned, error,
	input_tokens, output_tokens, usd_micros, approval_id, created_at, started_at, ended_at, since from delegations where task_id = ? order by seq`

// Outline returns every delegation of a task, oldest first, without what is long: text,
// chain, result and work. A page of 10,000 of them reads this and then the few that it shows.
func (s *Store) Outline(ctx context.Context, taskID string) ([]orchestrator.Delegation, error) {
	rows, err := s.r.query(ctx, selectOutline, taskID)
	all, err := collect(rows, err, func(row scanner) (orchestrator.Delegation, error) {
		d := orchestrator.Delegation{TaskID: taskID}
		var failure sql.NullString
		var usd, started, ended sql.NullInt64
		var created, since int64
		err := row.Scan(&d.ID, &d.ParentID, &d.From, &d.To, &d.State, &d.Depth, &d.HopKey, &d.Generation, &d.Repository, &d.Requester, &d.Spawned, &failure,
			&d.Usage.InputTokens, &d.Usage.OutputTokens, &usd, &d.ApprovalID, &created, &started, &ended, &since)
		if err != nil {
			return d, err
		}
		d.Usage.USD, d.CreatedAt, d.Since = fromUSD(usd), fromMicros(created), fromMicros(since)
		d.StartedAt, d.EndedAt = fromNull(started), fromNull(ended)
		d.Error, err = decodeOr[agent.Failure](failure)
		return d, err
	})
	return all, s.explain(err)
}

// Delegations returns those with these ids, by id; ids that nobody has are left out.
func (s *Store) Delegations(ctx context.Context, ids []string) (map[string]orchestrator.Delegation, error) {
	all := map[string]orchestrator.Delegation{}
	for some := range slices.Chunk(ids, manyAtOnce) {
		rows, err := s.r.query(ctx, selectDelegation+" where id in ("+placeholders(len(some))+")", anys(some)...)
		found, err := collect(rows, err, scanDelegation)
		if err != nil {
			return nil, s.explain(err)
		}
		for _, d := range found {
			all[d.ID] = d
		}
	}
	return all, nil
}

// Hands returns what went along with the hand-overs to these delegations, by id. Results and
// the memos of agents, which may be large, are not read.
func (s *Store) Hands(ctx context.Context, ids []string) (map[string]orchestrator.Hand, error) {
	all := make(map[string]orchestrator.Hand, len(ids))
	for some := range slices.Chunk(ids, manyAtOnce) {
		rows, err := s.r.query(ctx, `select id, substr(text, 1, ?), case when work like '%"handover"%' then work else '{}' end from delegations
			where id in (`+placeholders(len(some))+")", append([]any{orchestrator.HandText}, anys(some)...)...)
		_, err = collect(rows, err, func(row scanner) (struct{}, error) {
			var id, text, work string
			if err := row.Scan(&id, &text, &work); err != nil {
				return struct{}{}, err
			}
			var came struct{ Handover *agent.Handover }
			if err := json.Unmarshal([]byte(work), &came); err != nil {
				return struct{}{}, fmt.Errorf("read the work of %s: %w", id, err)
			}
			all[id] = orchestrator.Hand{Text: text, Artifacts: came.Handover.ArtifactNames()}
			return struct{}{}, nil
		})
		if err != nil {
			return nil, s.explain(err)
		}
	}
	return all, nil
}

// FindInTask returns the ids of a task's delegations that have the words as they stand,
// in any case, in their text, agent, state or error; oldest first, at most limit.
func (s *Store) FindInTask(ctx context.Context, taskID, words string, limit int) ([]string, error) {
	like := "%" + sharedctx.EscapeLike(strings.ToLower(clean(words))) + "%"
	state := strings.ReplaceAll(like, " ", `\_`) // "awaiting approval" is awaiting_approval
	rows, err := s.r.query(ctx, `select id from delegations where task_id = ? and (lower(text) like ? escape '\' or lower(to_agent) like ? escape '\'
		or state like ? escape '\' or lower(coalesce(error, '')) like ? escape '\' or id like ? escape '\') order by seq limit ?`,
		taskID, like, like, state, like, like, limit)
	ids, err := collect(rows, err, func(row scanner) (string, error) {
		var id string
		err := row.Scan(&id)
		return id, err
	})
	return ids, s.explain(err)
}

// EventsOf returns events of one task.
func (s *Store) EventsOf(ctx context.Context, taskID string, f orchestrator.EventFilter) ([]event.Event, error) {
	c := clauses{texts: []string{"task_id = ?", "n > ?"}, args: []any{taskID, f.After}}
	if f.Before > 0 {
		c.add("n < ?", f.Before)
	}
	if len(f.Types) > 0 {
		c.texts = append(c.texts, "type in ("+placeholders(len(f.Types))+")")
		for _, t := range f.Types {
			c.args = append(c.args, string(t))
		}
	}
	if len(f.Delegations) > 0 {
		c.texts = append(c.texts, "delegation_id in ("+placeholders(len(f.Delegations))+")")
		c.args = append(c.args, anys(f.Delegations)...)
	}
	if f.Has != "" {
		c.add(`data like ? escape '\'`, "%"+sharedctx.EscapeLike(f.Has)+"%")
	}
	order := " order by n limit ?"
	if f.Newest {
		order = " order by n desc limit ?"
	}
	rows, err := s.r.query(ctx, "select "+eventColumns+" from events"+c.where()+order, append(c.args, f.Limit)...)
	found, err := collect(rows, err, scanEvent)
	return found, s.explain(err)
}

// TaskUses returns who used the shared context in the course of a task, newest first.
func (s *Store) TaskUses(ctx context.Context, taskID string, limit int) ([]sharedctx.Use, error) {
	rows, err := s.r.query(ctx, "select "+useColumns+" from context_uses where task_id = ? order by n desc limit ?", taskID, limit)
	found, err := collect(rows, err, scanUse)
	return found, s.explain(err)
}

// placeholders are n question marks.
func placeholders(n int) string { return strings.Repeat("?, ", max(n-1, 0)) + "?" }

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// Paths returns, by task, the delegations of some tasks, oldest first, with nothing but
// what says where the work is: ids, agent, state and depth. A list shows many tasks.
func (s *Store) Paths(ctx context.Context, tasks []string) (map[string][]orchestrator.Delegation, error) {
	found := map[string][]orchestrator.Delegation{}
	if len(tasks) == 0 {
		return found, nil
	}
	rows, err := s.r.query(ctx, "select task_id, id, parent_id, from_agent, to_agent, state, depth from delegations where task_id in "+marks(len(tasks))+" order by task_id, seq", anys(tasks)...)
	all, err := collect(rows, err, func(row scanner) (orchestrator.Delegation, error) {
		var d orchestrator.Delegation
		err := row.Scan(&d.TaskID, &d.ID, &d.ParentID, &d.From, &d.To, &d.State, &d.Depth)
		return d, err
	})
	for _, d := range all {
		found[d.TaskID] = append(found[d.TaskID], d)
	}
	return found, s.explain(err)
}
