package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator/record/proof"
)

// sealBatch is how many positions one checkpoint covers at most.
const sealBatch = 100_000

// Seal makes a checkpoint over the events that were ordered since the last one, and
// reports false when there were none. sign gets proof.Checkpoint.Message. Where two nodes
// seal at once, one reports false.
func (s *Store) Seal(ctx context.Context, sign func(message []byte) (signature []byte, keyID string)) (bool, error) {
	last, err := s.lastCheckpoint(ctx)
	if err != nil {
		return false, s.explain(err)
	}
	newest, err := s.LastPosition(ctx)
	if err != nil || newest == last.Pos {
		return false, err
	}
	c := proof.Checkpoint{Pos: min(newest, last.Pos+sealBatch), At: s.now()}
	if last.Pos > 0 {
		c.Prev = last.Digest()
	}
	if c.Heads, err = s.heads(ctx, last.Pos, c.Pos); err != nil {
		return false, s.explain(err)
	}
	c.Signature, c.KeyID = sign(c.Message())
	n, err := changed(s.w.exec(ctx, "insert into checkpoints (pos, prev, heads_hash, at, key_id, signature) values (?, ?, ?, ?, ?, ?) on conflict do nothing",
		c.Pos, c.Prev, c.Heads, micros(c.At), c.KeyID, c.Signature))
	return n == 1, s.explain(err)
}

// selectHeads finds the newest event of each task with a position in (from, to].
const selectHeads = `select h.task_id, h.n, e.hash from (select task_id, max(n) as n from event_order where pos > ? and pos <= ? group by task_id) h
	join events e on e.task_id = h.task_id and e.n = h.n order by h.task_id`

// eachHead gives the heads of a checkpoint in their order.
func (s *Store) eachHead(ctx context.Context, from, to int64, each func(proof.Head) error) error {
	rows, err := s.r.query(ctx, selectHeads, from, to)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var h proof.Head
		if err := rows.Scan(&h.TaskID, &h.N, &h.Hash); err != nil {
			return err
		}
		if err := each(h); err != nil {
			return err
		}
	}
	return rows.Err()
}

// heads hashes the heads of a checkpoint.
func (s *Store) heads(ctx context.Context, from, to int64) (string, error) {
	sum := proof.NewHeads()
	err := s.eachHead(ctx, from, to, func(h proof.Head) error {
		sum.Add(h)
		return nil
	})
	return sum.Sum(), err
}

const (
	selectCheckpoints = "select pos, prev, heads_hash, at, key_id, signature from checkpoints"
	selectCheckpoint  = selectCheckpoints + " order by pos desc limit 1"
)

func scanCheckpoint(row scanner) (proof.Checkpoint, error) {
	var c proof.Checkpoint
	var at int64
	err := row.Scan(&c.Pos, &c.Prev, &c.Heads, &at, &c.KeyID, &c.Signature)
	c.At = fromMicros(at)
	return c, err
}

func (s *Store) lastCheckpoint(ctx context.Context) (proof.Checkpoint, error) {
	c, err := scanCheckpoint(s.r.row(ctx, selectCheckpoint))
	if errors.Is(err, sql.ErrNoRows) {
		return proof.Checkpoint{}, nil
	}
	return c, err
}

// Sealed says when the newest checkpoint was made, and since when an event waits for the
// next one; zero where there is none.
func (s *Store) Sealed(ctx context.Context) (last, waits time.Time, err error) {
	c, err := s.lastCheckpoint(ctx)
	if err != nil {
		return last, waits, s.explain(err)
	}
	var at int64
	err = s.r.row(ctx, "select e.at from event_order o join events e on e.task_id = o.task_id and e.n = o.n where o.pos > ? order by o.pos limit 1", c.Pos).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return c.At, fromMicros(at), s.explain(err)
}

// Checkpoints returns checkpoints with a position > after, ascending.
func (s *Store) Checkpoints(ctx context.Context, after int64, limit int) ([]proof.Checkpoint, error) {
	rows, err := s.r.query(ctx, selectCheckpoints+" where pos > ? order by pos limit ?", after, limit)
	found, err := collect(rows, err, scanCheckpoint)
	return found, s.explain(err)
}

// VerifySeals checks that every checkpoint follows the one before, covers the events
// that it sealed as they are now, and that check accepts its signature. It returns
// how many there are.
func (s *Store) VerifySeals(ctx context.Context, check func(message, signature []byte, keyID string) error) (int, error) {
	return s.verifySeals(ctx, check, func(int) {})
}

// sealsEvery is how many checkpoints are checked between two words about it.
const sealsEvery = 50

func (s *Store) verifySeals(ctx context.Context, check func(message, signature []byte, keyID string) error, checked func(n int)) (int, error) {
	var last proof.Checkpoint
	for n := 0; ; {
		page, err := s.Checkpoints(ctx, last.Pos, verifyPage)
		if err != nil {
			return n, err
		}
		for _, c := range page {
			prev := ""
			if last.Pos > 0 {
				prev = last.Digest()
			}
			if c.Prev != prev {
				return n, fmt.Errorf("the checkpoint at position %d does not follow the one at %d: one was removed or changed", c.Pos, last.Pos)
			}
			heads, err := s.heads(ctx, last.Pos, c.Pos)
			if err != nil {
				return n, s.explain(err)
			}
			if heads != c.Heads {
				return n, fmt.Errorf("the events at positions %d to %d are not those that were sealed on %s", last.Pos+1, c.Pos, c.At.Format(time.RFC3339))
			}
			if err := check(c.Message(), c.Signature, c.KeyID); err != nil {
				return n, fmt.Errorf("the signature of the checkpoint at position %d: %w", c.Pos, err)
			}
			last, n = c, n+1
			if n%sealsEvery == 0 {
				checked(n)
			}
		}
		if len(page) < verifyPage {
			return n, nil
		}
	}
}
