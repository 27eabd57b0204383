package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/trigger"
)

const delegationColumns = `d.id, d.task_id, d.parent_id, d.from_agent, d.to_agent, d.text, d.state, d.depth, d.chain, d.hop_key, d.generation,
	d.repository, d.requester, d.result, d.error, d.input_tokens, d.output_tokens, d.usd_micros, d.approval_id, d.attempt, d.losses,
	d.holder, d.lease_until, d.ready_at, d.open_children, d.token_hash, d.created_at, d.started_at, d.ended_at, d.since, d.work,
	d.spawned, d.open_spawned, d.taken, d.context_hash`

const (
	selectDelegation = "select " + delegationColumns + " from delegations d"
	// The second condition lets both planners use the partial index. The cast keeps SQLite
	// from comparing the parameter with the conditions of partial indexes: it would plan
	// the statement again for each value.
	selectChildren = selectDelegation + " where parent_id = cast(? as text) and parent_id <> '' and task_id = ? order by seq"
	selectBelow    = selectDelegation + " where parent_id = cast(? as text) and parent_id <> '' and ended_at is null and task_id = ? order by seq"
)

const insertDelegation = `insert into delegations (task_id, id, seq, parent_id, from_agent, to_agent, text, depth, chain, hop_key, generation,
	repository, requester, created_at, spawned, taken, context_hash, state, result, error, input_tokens, output_tokens, usd_micros,
	approval_id, attempt, losses, holder, ready_at, open_children, token_hash, started_at, ended_at, since, work, open_spawned, lease_until)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// A lease that the writer did not change is left alone: it may have been renewed meanwhile.
const moveDelegation = `update delegations set state = ?, result = ?, error = ?, input_tokens = ?, output_tokens = ?, usd_micros = ?,
	approval_id = ?, attempt = ?, losses = ?, holder = ?, ready_at = ?, open_children = ?, token_hash = ?,
	started_at = ?, ended_at = ?, since = ?, work = ?, open_spawned = ?, lease_until = coalesce(cast(? as bigint), lease_until)
	where id = ? and state = ? and attempt = ? and task_id = ?`

// stored is a delegation as its row has it. What is JSON is still text, so that one can be
// given out more than once without being shared.
type stored struct {
	plain           orchestrator.Delegation // without Chain, Work, Result and Error
	chain, work     string
	result, failure sql.NullString
}

// scanStored reads delegationColumns.
func scanStored(row scanner) (stored, error) {
	var s stored
	d := &s.plain
	var usd, started, ended sql.NullInt64
	var lease, ready, created, since int64
	err := row.Scan(&d.ID, &d.TaskID, &d.ParentID, &d.From, &d.To, &d.Text, &d.State, &d.Depth, &s.chain, &d.HopKey, &d.Generation,
		&d.Repository, &d.Requester, &s.result, &s.failure, &d.Usage.InputTokens, &d.Usage.OutputTokens, &usd, &d.ApprovalID, &d.Attempt, &d.Losses,
		&d.Holder, &lease, &ready, &d.OpenChildren, &d.TokenHash, &created, &started, &ended, &since, &s.work,
		&d.Spawned, &d.OpenSpawned, &d.Taken, &d.ContextHash)
	if errors.Is(err, sql.ErrNoRows) {
		return s, orchestrator.ErrNotFound
	}
	d.Usage.USD = fromUSD(usd)
	d.LeaseUntil, d.ReadyAt, d.CreatedAt, d.Since = fromMicros(lease), fromMicros(ready), fromMicros(created), fromMicros(since)
	d.StartedAt, d.EndedAt = fromNull(started), fromNull(ended)
	return s, err
}

// storedOf is d as its row will have it.
func storedOf(d *orchestrator.Delegation) (stored, error) {
	s := stored{plain: *d}
	var err error
	if s.chain, err = encode(d.Chain); err != nil {
		return s, fmt.Errorf("write the chain of %s: %w", d.ID, err)
	}
	s.chain = clean(s.chain)
	if s.result, err = encodeOr(d.Result); err != nil {
		return s, fmt.Errorf("write the result of %s: %w", d.ID, err)
	}
	if s.failure, err = encodeOr(d.Error); err != nil {
		return s, fmt.Errorf("write the error of %s: %w", d.ID, err)
	}
	if s.work, err = encode(d.Work); err != nil {
		return s, fmt.Errorf("write the work of %s: %w", d.ID, err)
	}
	p := &s.plain
	p.Chain, p.Work, p.Result, p.Error = chain.Chain{}, orchestrator.Work{}, nil, nil
	p.LeaseUntil, p.ReadyAt, p.CreatedAt, p.Since = whole(p.LeaseUntil), whole(p.ReadyAt), whole(p.CreatedAt), whole(p.Since)
	unshare(p)
	return s, nil
}

// delegation is what s says, shared with nobody.
func (s *stored) delegation() (orchestrator.Delegation, error) {
	d := s.plain
	unshare(&d)
	var err error
	if err := json.Unmarshal([]byte(s.chain), &d.Chain); err != nil {
		return d, fmt.Errorf("read the chain of %s: %w", d.ID, err)
	}
	if err := json.Unmarshal([]byte(s.work), &d.Work); err != nil {
		return d, fmt.Errorf("read the work of %s: %w", d.ID, err)
	}
	if d.Result, err = decodeOr[agent.Result](s.result); err != nil {
		return d, fmt.Errorf("read the result of %s: %w", d.ID, err)
	}
	if d.Error, err = decodeOr[agent.Failure](s.failure); err != nil {
		return d, fmt.Errorf("read the error of %s: %w", d.ID, err)
	}
	return d, nil
}

// unshare copies what d points at beside its JSON parts, as it comes back from the database.
func unshare(d *orchestrator.Delegation) {
	d.Usage.USD = fromUSD(usdMicros(d.Usage.USD))
	d.StartedAt, d.EndedAt = fromNull(nullMicros(d.StartedAt)), fromNull(nullMicros(d.EndedAt))
}

// mutable are the values of the columns that a move writes, in its order, but the lease.
func (s *stored) mutable() []any {
	d := &s.plain
	return []any{string(d.State), s.result, s.failure, d.Usage.InputTokens, d.Usage.OutputTokens, usdMicros(d.Usage.USD),
		d.ApprovalID, d.Attempt, d.Losses, d.Holder, micros(d.ReadyAt), d.OpenChildren, d.TokenHash,
		nullMicros(d.StartedAt), nullMicros(d.EndedAt), micros(d.Since), s.work, d.OpenSpawned}
}

func scanDelegation(row scanner) (orchestrator.Delegation, error) {
	s, err := scanStored(row)
	if err != nil {
		return s.plain, err
	}
	return s.delegation()
}

// Delegation returns a delegation.
func (s *Store) Delegation(ctx context.Context, id string) (orchestrator.Delegation, error) {
	d, err := scanDelegation(s.r.row(ctx, selectDelegation+" where id = ?", id))
	return d, s.explain(err)
}

// Tree returns every delegation of a task, oldest first.
func (s *Store) Tree(ctx context.Context, taskID string) ([]orchestrator.Delegation, error) {
	rows, err := s.r.query(ctx, selectDelegation+" where task_id = ? order by seq", taskID)
	all, err := collect(rows, err, scanDelegation)
	return all, s.explain(err)
}

// Children returns the delegations that one generation of parentID has made, oldest first.
func (s *Store) Children(ctx context.Context, parentID string, generation int) ([]orchestrator.Delegation, error) {
	rows, err := s.r.query(ctx, selectDelegation+" where parent_id = cast(? as text) and parent_id <> '' and generation = ? order by seq", parentID, generation)
	all, err := collect(rows, err, scanDelegation)
	return all, s.explain(err)
}

// RunByToken finds the live delegation whose run token has this hash.
func (s *Store) RunByToken(ctx context.Context, hash string) (orchestrator.Delegation, error) {
	if hash == "" {
		return orchestrator.Delegation{}, orchestrator.ErrNotFound
	}
	d, err := scanDelegation(s.r.row(ctx, selectDelegation+" where token_hash = ? and token_hash <> ''", hash))
	if err == nil && d.State.Ended() {
		return orchestrator.Delegation{}, orchestrator.ErrNotFound
	}
	return d, s.explain(err)
}

// Resolve returns the ids with one of the prefixes that end in ending, sorted.
func (s *Store) Resolve(ctx context.Context, ending string, limit int, prefixes ...string) ([]string, error) {
	ending = strings.ToLower(ending)
	if len(ending) < 6 || limit < 1 {
		return nil, nil
	}
	tables := map[string]string{orchestrator.TaskPrefix: "tasks", orchestrator.DelegationPrefix: "listing", orchestrator.RequestPrefix: "requests",
		orchestrator.UserPrefix: "users", orchestrator.TokenPrefix: "tokens", trigger.DeliveryPrefix: "deliveries"}
	var ids []string
	if slices.Contains(prefixes, orchestrator.DelegationPrefix) {
		s.upToDate(ctx)
	}
	for _, prefix := range prefixes {
		table, ok := tables[prefix]
		if !ok {
			return nil, fmt.Errorf("ids with the prefix %q are not looked up by their ending", prefix)
		}
		text := "select id from " + table + " where " + s.dialect.ending + " = ? and substr(id, length(id) - ? + 1) = ? order by id limit ?"
		rows, err := s.r.query(ctx, text, ending[len(ending)-6:], len(ending), ending, limit-len(ids))
		found, err := collect(rows, err, func(row scanner) (string, error) {
			var id string
			err := row.Scan(&id)
			return id, err
		})
		if err != nil {
			return nil, s.explain(err)
		}
		if ids = append(ids, found...); len(ids) >= limit {
			break
		}
	}
	return ids, nil
}

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
