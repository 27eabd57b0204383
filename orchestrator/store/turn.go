package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

const (
	selectChild = selectDelegation + " where parent_id = cast(? as text) and parent_id <> '' and generation = ? and hop_key = ? and task_id = ?"
	// The seq is unique within a task, so the index gives the newest first.
	selectRecent = selectDelegation + " where task_id = ? and parent_id <> '' order by seq desc limit ?"
	insertTurn   = `insert into turns (delegation_id, generation, n, task_id, agent, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took, kept)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`
	selectTurns = `select n, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took from turns
	where delegation_id = ? and generation = ? order by n`
	selectUntaken = selectDelegation + ` where parent_id = cast(? as text) and parent_id <> '' and generation = ? and not taken
	order by case when ended_at is null then 1 else 0 end, ended_at, seq`
)

// Child finds the child that was made under a key.
func (t *Tx) Child(_ context.Context, parentID string, generation int, hopKey string) (*orchestrator.Delegation, error) {
	d, err := scanDelegation(t.q.row(t.ctx, selectChild, parentID, generation, clean(hopKey), t.row.ID))
	if err != nil {
		return nil, err
	}
	return t.keep(d), nil
}

// Recent returns the task's last hand-overs, oldest first.
func (t *Tx) Recent(_ context.Context, limit int) ([]*orchestrator.Delegation, error) {
	found, err := t.several(t.q.query(t.ctx, selectRecent, t.row.ID, limit))
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found, err
}

// PutTurn stores a turn of d's generation.
func (t *Tx) PutTurn(_ context.Context, d *orchestrator.Delegation, turn agent.Turn) error {
	message, err := encode(turn.Message)
	if err != nil {
		return fmt.Errorf("write turn %d of %s: %w", turn.N, d.ID, err)
	}
	n, err := changed(t.q.exec(t.ctx, insertTurn, d.ID, d.Work.Runs, turn.N, t.row.ID, d.To, clean(message), clean(turn.Model), clean(turn.Stop),
		turn.Usage.InputTokens, turn.Usage.OutputTokens, usdMicros(turn.Usage.USD), strings.Join(turn.Children, " "), micros(t.now), turn.Took.Microseconds(), keptText(d.Work.Checkpoint)))
	if err != nil {
		return fmt.Errorf("write turn %d of %s: %w", turn.N, d.ID, err)
	}
	if n == 0 {
		return orchestrator.ErrExists
	}
	return nil
}

// keptText is how a turn refers to the files of its checkout.
func keptText(k *orchestrator.Checkpoint) string {
	if k == nil {
		return ""
	}
	return k.Commit + " " + k.Tree
}

// KeptAt returns the commit and tree of the checkout when a turn was stored.
func (s *Store) KeptAt(ctx context.Context, delegationID string, generation, n int) (commit, tree string, err error) {
	var kept string
	err = s.r.row(ctx, "select kept from turns where delegation_id = ? and generation = ? and n = ?", delegationID, generation, n).Scan(&kept)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", orchestrator.ErrNotFound
	}
	commit, tree, _ = strings.Cut(kept, " ")
	return commit, tree, s.explain(err)
}

// CopyTurns gives to the first turns of another delegation.
func (t *Tx) CopyTurns(_ context.Context, to *orchestrator.Delegation, from string, generation, upTo int, kept string) (int, error) {
	n, err := changed(t.q.exec(t.ctx, `insert into turns (delegation_id, generation, n, task_id, agent, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took, kept)
	select cast(? as text), cast(? as bigint), n, cast(? as text), agent, message, model, stop, 0, 0, null, '', at, took, case when kept = '' then cast(? as text) else kept end
	from turns where delegation_id = ? and generation = ? and n <= ?`, to.ID, to.Work.Runs, t.row.ID, kept, from, generation, upTo))
	if err != nil {
		return 0, fmt.Errorf("copy the turns of %s: %w", from, err)
	}
	return int(n), nil
}

// Take marks children as carried by a turn.
func (t *Tx) Take(_ context.Context, parentID string, ids []string) error {
	for _, id := range ids {
		if _, err := t.q.exec(t.ctx, "update delegations set taken = ? where id = ? and parent_id = ? and task_id = ?", true, id, parentID, t.row.ID); err != nil {
			return fmt.Errorf("mark %s as taken: %w", id, err)
		}
		if known := t.delegations[id]; known != nil {
			known.Taken = true
		}
	}
	return nil
}

// Turns returns the conversation of one generation of a delegation.
func (s *Store) Turns(ctx context.Context, delegationID string, generation int) ([]agent.Turn, error) {
	rows, err := s.r.query(ctx, selectTurns, delegationID, generation)
	all, err := collect(rows, err, scanTurn)
	return all, s.explain(err)
}

func scanTurn(row scanner) (agent.Turn, error) {
	var t agent.Turn
	var message, children string
	var usd sql.NullInt64
	var at, took int64
	err := row.Scan(&t.N, &message, &t.Model, &t.Stop, &t.Usage.InputTokens, &t.Usage.OutputTokens, &usd, &children, &at, &took)
	if err != nil {
		return t, err
	}
	t.Usage.USD, t.Children, t.At, t.Took = fromUSD(usd), strings.Fields(children), fromMicros(at), time.Duration(took)*time.Microsecond
	if err := json.Unmarshal([]byte(message), &t.Message); err != nil {
		return t, fmt.Errorf("read turn %d: %w", t.N, err)
	}
	return t, nil
}

// Untold reports whether a spawned child has ended that no turn has carried.
func (t *Tx) Untold(_ context.Context, parentID string, generation int) (bool, error) {
	var n int
	err := t.q.row(t.ctx, `select count(*) from (select 1 from delegations
	where parent_id = cast(? as text) and parent_id <> '' and generation = ? and not taken and spawned and ended_at is not null limit 1) one`, parentID, generation).Scan(&n)
	return n > 0, err
}

// Untaken returns the children whose outcome no turn has carried.
func (s *Store) Untaken(ctx context.Context, parentID string, generation int) ([]orchestrator.Delegation, error) {
	rows, err := s.r.query(ctx, selectUntaken, parentID, generation)
	all, err := collect(rows, err, scanDelegation)
	return all, s.explain(err)
}
