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
	selectRecent = selectDelegation + " where task_id = ? and parent_id <> '' order by seq desc limit ? + 0"
	insertTurn   = `insert into turns (delegation_id, generation, n, task_id, agent, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took, kept)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`
	selectTurns = `select n, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took from turns
	where delegation_id = ? and generation = ? order by n`
	selectUntaken = selectDelegation + ` where parent_id = cast(? as text) and parent_id <> '' and generation = ? and not taken
	order by case when ended_at is null then 1 else 0 end, ended_at, seq`
)

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
	commit, tree, _ = strings.Cut(kept, " ")
	return commit, tree, s.explain(err)
}

// CopyTurns gives to the first turns of another delegation.
func (t *Tx) CopyTurns(_ context.Context, to *orchestrator.Delegation, c orchestrator.TurnCopy) (int, error) {
	n, err := changed(t.q.exec(t.ctx, `insert into turns (delegation_id, generation, n, task_id, agent, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took, kept)
	select cast(? as text), cast(? as bigint), n, cast(? as text), agent, message, model, stop, 0, 0, null, '', at, took,
		case when cast(? as bigint) = 1 then '' when kept = '' then cast(? as text) else kept end
	from turns where delegation_id = ? and generation = ? and n <= ?`, to.ID, to.Work.Runs, t.row.ID, flag(c.Bare), c.Kept, c.From, c.Generation, c.UpTo))
	if err != nil {
		return 0, fmt.Errorf("copy the turns of %s: %w", c.From, err)
	}
	return int(n), nil
}

// conversationQuery walks the index of what one person sent in the chat, or the two of what is
// in one thread of that person.
func conversationQuery(f orchestrator.Filter, limit int) (string, []any) {
	sent := clauses{texts: []string{"t.via = 'chat'", "t.requester_id = ?"}, args: []any{f.Conversation}}
	if f.Thread == "" {
		if f.After != "" {
			sent.add("t.root_id < ?", f.After)
		}
		return "select t.root_id as id from tasks t" + sent.where() + " order by t.root_id desc limit ?", append(sent.args, limit)
	}
	var walks []string
	var args []any
	for _, begun := range []string{"t.thread = ? and t.thread <> ''", "t.id = ?"} {
		one := clauses{texts: []string{begun, "t.requester_id = ?"}, args: []any{f.Thread, f.Conversation}}
		if f.After != "" {
			one.add("t.root_id < ?", f.After)
		}
		walks = append(walks, "select * from (select t.root_id as id from tasks t"+one.where()+" order by t.root_id desc limit ?) s")
		args = append(append(args, one.args...), limit)
	}
	return "select id from (" + strings.Join(walks, " union all ") + ") d order by d.id desc limit ?", append(args, limit)
}

// threadTitle is how much of the first text of a thread is read for its title, in characters.
const threadTitle = 400

// selectThreads walks a person's tasks from the newest one, and keeps those that are the
// newest of their thread.
const selectThreads = `select f.id, substr(f.text, 1, ?), t.agent, t.root_id, d.state, d.since,
	1 + (select count(*) from tasks n where n.thread = f.id and n.thread <> '' and n.requester_id = t.requester_id)
	from tasks t join tasks f on f.id = case when t.thread = '' then t.id else t.thread end join delegations d on d.id = t.root_id
	where t.requester_id = ? and (t.via = 'chat' or t.thread <> '') and (? = '' or t.root_id < ?)
	and not exists (select 1 from tasks n where n.thread = case when t.thread = '' then t.id else t.thread end and n.thread <> ''
		and n.requester_id = t.requester_id and n.root_id > t.root_id)
	order by t.root_id desc limit ?`

// Threads lists the threads of a person, as orchestrator.Reader wants it.
func (s *Store) Threads(ctx context.Context, personID, after string, limit int) ([]orchestrator.Thread, error) {
	return ReadAll(ctx, s, func(row scanner) (orchestrator.Thread, error) {
		var t orchestrator.Thread
		var text, state string
		var since int64
		err := row.Scan(&t.ID, &text, &t.Agent, &t.RootID, &state, &since, &t.Count)
		t.Title, t.State, t.UpdatedAt = orchestrator.Title(text), orchestrator.State(state), fromMicros(since)
		return t, err
	}, selectThreads, threadTitle, personID, after, after, limit)
}

// Take marks children as carried by a turn.
func (t *Tx) Take(_ context.Context, parentID string, ids []string) error {
	for _, id := range ids {
		if _, err := t.q.exec(t.ctx, "update delegations set taken = ? where id = ? and parent_id = ? and task_id = ?", true, id, parentID, t.row.ID); err != nil {
			return fmt.Errorf("mark %s as taken: %w", id, err)
		}
		t.wrote = true
		if l := t.lines[id]; l != nil {
			l.row.plain.Taken = true
			if l.d != nil {
				l.d.Taken = true
			}
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

// Untaken returns the children whose outcome no turn has carried.
func (s *Store) Untaken(ctx context.Context, parentID string, generation int) ([]orchestrator.Delegation, error) {
	rows, err := s.r.query(ctx, selectUntaken, parentID, generation)
	all, err := collect(rows, err, scanDelegation)
	return all, s.explain(err)
}

const (
	selectTurnPage = `select n, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took from turns
	where delegation_id = ? and generation = ? and n > ? order by n limit ?`
	selectLastTurn = "select coalesce(max(n), 0) from turns where delegation_id = ? and generation = ?"
)

// TurnPage returns turns with n > after of one generation, oldest first.
func (s *Store) TurnPage(ctx context.Context, delegationID string, generation, after, limit int) ([]agent.Turn, error) {
	rows, err := s.r.query(ctx, selectTurnPage, delegationID, generation, after, limit)
	found, err := collect(rows, err, scanTurn)
	return found, s.explain(err)
}

// LastTurn is the number of a generation's newest turn, 0 when it has none.
func (s *Store) LastTurn(ctx context.Context, delegationID string, generation int) (int, error) {
	var n int
	err := s.r.row(ctx, selectLastTurn, delegationID, generation).Scan(&n)
	return n, s.explain(err)
}

// PutBlob stores bytes under an id of the caller; the same id again is no error.
func (t *Tx) PutBlob(_ context.Context, id, kind string, data []byte) error {
	if data == nil {
		data = []byte{}
	}
	_, err := t.q.exec(t.ctx, "insert into blobs (id, kind, data, created_at, task_id) values (?, ?, ?, ?, ?) on conflict (id) do nothing", id, kind, data, micros(t.now), t.row.ID)
	if err != nil {
		return fmt.Errorf("store blob %s: %w", id, err)
	}
	return nil
}

// DropBlob removes the bytes of a blob; one that is not there is no error.
func (t *Tx) DropBlob(_ context.Context, id string) error {
	if _, err := t.q.exec(t.ctx, "delete from blobs where id = ?", id); err != nil {
		return fmt.Errorf("remove blob %s: %w", id, err)
	}
	return nil
}

// Blob returns the bytes of a blob.
func (s *Store) Blob(ctx context.Context, id string) ([]byte, error) {
	return ReadOne(ctx, s, Scalar[[]byte], "select data from blobs where id = ?", id)
}

// Remembered is the child that was noted under a key of what is done once.
func (t *Tx) Remembered(_ context.Context, key string) (id string, err error) {
	err = t.q.row(t.ctx, "select delegation_id from dedup where dedup_key = ?", clean(key)).Scan(&id)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return "", orchestrator.ErrNotFound
	case err != nil:
		return "", fmt.Errorf("look whether %s was done: %w", key, err)
	}
	return id, nil
}

// Remember notes a child under a key, ErrExists where one is noted.
func (t *Tx) Remember(_ context.Context, key, childID string) error {
	n, err := changed(t.q.exec(t.ctx, "insert into dedup (dedup_key, delegation_id, made_at) values (?, ?, ?) on conflict (dedup_key) do nothing", clean(key), childID, micros(t.now)))
	if err != nil {
		return fmt.Errorf("note that %s is done: %w", key, err)
	}
	if n == 0 {
		return orchestrator.ErrExists
	}
	return nil
}

// Forget drops what was noted under a key.
func (t *Tx) Forget(_ context.Context, key string) error {
	if _, err := t.q.exec(t.ctx, "delete from dedup where dedup_key = ?", clean(key)); err != nil {
		return fmt.Errorf("forget that %s was done: %w", key, err)
	}
	return nil
}

// sweepDedup is how many keys one statement of the sweep removes.
const sweepDedup = 5000

// A key that is young itself waits for a later sweep, so that most rows are not looked at.
const purgeDedup = `delete from dedup where dedup_key in (select k.dedup_key from dedup k where k.made_at < ?
	and exists (select 1 from delegations d where d.id = k.delegation_id and d.ended_at < ?) limit ? + 0)`

// PurgeDedup removes the keys of what is done once whose child ended before that time.
func (s *Store) PurgeDedup(ctx context.Context, ended time.Time) (all int64, err error) {
	for {
		n, err := changed(s.w.exec(ctx, purgeDedup, micros(ended), micros(ended), sweepDedup))
		if all += n; err != nil || n < sweepDedup {
			return all, s.explain(err)
		}
	}
}
