package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
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

// The hop key decides between two that make the same hop; any other conflict is an error.
const insertDelegation = `insert into delegations (id, task_id, seq, parent_id, from_agent, to_agent, text, state, depth, chain, hop_key, generation,
	repository, requester, result, error, input_tokens, output_tokens, usd_micros, approval_id, attempt, losses,
	holder, lease_until, ready_at, open_children, token_hash, created_at, started_at, ended_at, since, work, open_spawned, spawned, taken, context_hash)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (parent_id, generation, hop_key) where parent_id <> '' do nothing`

const moveDelegation = `update delegations set state = ?, result = ?, error = ?, input_tokens = ?, output_tokens = ?, usd_micros = ?,
	approval_id = ?, attempt = ?, losses = ?, holder = ?, lease_until = ?, ready_at = ?, open_children = ?, token_hash = ?,
	started_at = ?, ended_at = ?, since = ?, work = ?, open_spawned = ?
	where id = ? and task_id = ? and state = ? and attempt = ?`

func scanDelegation(row scanner) (orchestrator.Delegation, error) {
	var d orchestrator.Delegation
	var chain, work string
	var result, failure sql.NullString
	var usd, started, ended sql.NullInt64
	var lease, ready, created, since int64
	err := row.Scan(&d.ID, &d.TaskID, &d.ParentID, &d.From, &d.To, &d.Text, &d.State, &d.Depth, &chain, &d.HopKey, &d.Generation,
		&d.Repository, &d.Requester, &result, &failure, &d.Usage.InputTokens, &d.Usage.OutputTokens, &usd, &d.ApprovalID, &d.Attempt, &d.Losses,
		&d.Holder, &lease, &ready, &d.OpenChildren, &d.TokenHash, &created, &started, &ended, &since, &work,
		&d.Spawned, &d.OpenSpawned, &d.Taken, &d.ContextHash)
	if errors.Is(err, sql.ErrNoRows) {
		return d, orchestrator.ErrNotFound
	}
	if err != nil {
		return d, err
	}
	d.Usage.USD = fromUSD(usd)
	d.LeaseUntil, d.ReadyAt, d.CreatedAt, d.Since = fromMicros(lease), fromMicros(ready), fromMicros(created), fromMicros(since)
	d.StartedAt, d.EndedAt = fromNull(started), fromNull(ended)
	if err := json.Unmarshal([]byte(chain), &d.Chain); err != nil {
		return d, fmt.Errorf("read the chain of %s: %w", d.ID, err)
	}
	if err := json.Unmarshal([]byte(work), &d.Work); err != nil {
		return d, fmt.Errorf("read the work of %s: %w", d.ID, err)
	}
	if d.Result, err = decodeOr[agent.Result](result); err != nil {
		return d, fmt.Errorf("read the result of %s: %w", d.ID, err)
	}
	if d.Error, err = decodeOr[agent.Failure](failure); err != nil {
		return d, fmt.Errorf("read the error of %s: %w", d.ID, err)
	}
	return d, nil
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
	tables := map[string]string{orchestrator.TaskPrefix: "tasks", orchestrator.DelegationPrefix: "delegations", orchestrator.RequestPrefix: "requests",
		orchestrator.UserPrefix: "users", orchestrator.TokenPrefix: "tokens", trigger.DeliveryPrefix: "deliveries"}
	var ids []string
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

// keep remembers a row that was read, unless this transaction has it already.
func (t *Tx) keep(d orchestrator.Delegation) *orchestrator.Delegation {
	if known := t.delegations[d.ID]; known != nil {
		return known
	}
	if t.delegations == nil {
		t.delegations = map[string]*orchestrator.Delegation{}
	}
	t.delegations[d.ID] = &d
	return &d
}

// Delegation returns a delegation of the task; ErrNotFound for one of another task.
func (t *Tx) Delegation(_ context.Context, id string) (*orchestrator.Delegation, error) {
	if known := t.delegations[id]; known != nil {
		return known, nil
	}
	d, err := scanDelegation(t.q.row(t.ctx, selectDelegation+" where id = ? and task_id = ?", id, t.row.ID))
	if err != nil {
		return nil, err
	}
	return t.keep(d), nil
}

// Tree returns every delegation of the task, oldest first.
func (t *Tx) Tree(context.Context) ([]*orchestrator.Delegation, error) {
	return t.several(t.q.query(t.ctx, selectDelegation+" where task_id = ? order by seq", t.row.ID))
}

// Children returns the delegations that parentID has made, oldest first.
func (t *Tx) Children(_ context.Context, parentID string) ([]*orchestrator.Delegation, error) {
	return t.several(t.q.query(t.ctx, selectChildren, parentID, t.row.ID))
}

// Live returns the children of parentID that have not ended, oldest first.
func (t *Tx) Live(_ context.Context, parentID string) ([]*orchestrator.Delegation, error) {
	return t.several(t.q.query(t.ctx, selectBelow, parentID, t.row.ID))
}

func (t *Tx) several(rows *sql.Rows, err error) ([]*orchestrator.Delegation, error) {
	return collect(rows, err, func(row scanner) (*orchestrator.Delegation, error) {
		d, err := scanDelegation(row)
		if err != nil {
			return nil, err
		}
		return t.keep(d), nil
	})
}

// mutable are the values of the columns that Move writes, in its order.
func mutable(d *orchestrator.Delegation) ([]any, error) {
	result, err := encodeOr(d.Result)
	if err != nil {
		return nil, fmt.Errorf("write the result of %s: %w", d.ID, err)
	}
	failure, err := encodeOr(d.Error)
	if err != nil {
		return nil, fmt.Errorf("write the error of %s: %w", d.ID, err)
	}
	work, err := encode(d.Work)
	if err != nil {
		return nil, fmt.Errorf("write the work of %s: %w", d.ID, err)
	}
	return []any{string(d.State), result, failure, d.Usage.InputTokens, d.Usage.OutputTokens, usdMicros(d.Usage.USD),
		d.ApprovalID, d.Attempt, d.Losses, d.Holder, micros(d.LeaseUntil), micros(d.ReadyAt), d.OpenChildren, d.TokenHash,
		nullMicros(d.StartedAt), nullMicros(d.EndedAt), micros(d.Since), work, d.OpenSpawned}, nil
}

// Insert adds a delegation; ErrExists when its hop key is taken.
func (t *Tx) Insert(_ context.Context, d *orchestrator.Delegation) error {
	if d.CreatedAt.IsZero() {
		d.CreatedAt = t.now
	}
	if d.Since.IsZero() {
		d.Since = t.now
	}
	d.TaskID, d.Text, d.HopKey = t.row.ID, clean(d.Text), clean(d.HopKey)
	chain, err := encode(d.Chain)
	if err != nil {
		return fmt.Errorf("write the chain of %s: %w", d.ID, err)
	}
	m, err := mutable(d)
	if err != nil {
		return err
	}
	n, err := changed(t.q.exec(t.ctx, insertDelegation, d.ID, d.TaskID, t.row.seq+1, d.ParentID, d.From, d.To, d.Text, m[0], d.Depth, clean(chain), d.HopKey, d.Generation,
		d.Repository, d.Requester, m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9], m[10], m[11], m[12], m[13],
		micros(d.CreatedAt), m[14], m[15], m[16], m[17], m[18], d.Spawned, d.Taken, d.ContextHash))
	if err != nil {
		return fmt.Errorf("insert delegation %s: %w", d.ID, err)
	}
	if n == 0 {
		return orchestrator.ErrExists
	}
	t.row.seq++
	if t.delegations == nil {
		t.delegations = map[string]*orchestrator.Delegation{}
	}
	t.delegations[d.ID] = d
	return nil
}

// Move writes d where the row still has that state and attempt; else ErrLost.
func (t *Tx) Move(_ context.Context, d *orchestrator.Delegation, from orchestrator.State, attempt int) error {
	args, err := mutable(d)
	if err != nil {
		return err
	}
	n, err := changed(t.q.exec(t.ctx, moveDelegation, append(args, d.ID, t.row.ID, string(from), attempt)...))
	if err != nil {
		return fmt.Errorf("move delegation %s: %w", d.ID, err)
	}
	if n == 0 {
		delete(t.delegations, d.ID) // whoever asks again sees the row as it is
		return orchestrator.ErrLost
	}
	if known := t.delegations[d.ID]; known != nil && known != d {
		*known = *d
	}
	return nil
}
