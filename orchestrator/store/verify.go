package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/proof"
)

// verifyPage is how many events or tasks verification holds at once.
const verifyPage = 1000

// VerifyTask walks the hash chain of a task. Its error names the event that was
// changed, removed, added or moved, and says so when the end is missing.
func (s *Store) VerifyTask(ctx context.Context, taskID string) error {
	return s.verifyTask(ctx, taskID, func(int) {})
}

// verifyTask tells read how many events it has read each time.
func (s *Store) verifyTask(ctx context.Context, taskID string, read func(events int)) error {
	row, err := scanTask(s.r.row(ctx, selectTask+" where id = ?", taskID))
	if err != nil {
		return s.explain(err)
	}
	// The task is read first: what is appended meanwhile follows row.LastN.
	last, hash := int64(0), ""
	for last < row.LastN {
		events, err := s.Events(ctx, taskID, last, verifyPage)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("task %s: events %d to %d are missing: the end of its history was cut off", taskID, last+1, row.LastN)
		}
		for _, e := range events {
			if e.N != last+1 {
				return fmt.Errorf("task %s: event %d is missing: %s (n %d) comes after n %d", taskID, last+1, e.ID, e.N, last)
			}
			if err := e.Verify(hash); err != nil {
				return err
			}
			last, hash = e.N, e.Hash
			if e.N == row.LastN && e.Hash != row.LastHash {
				return fmt.Errorf("task %s: its newest event %s is not the one that the task names: history was written anew", taskID, e.ID)
			}
		}
		read(len(events))
	}
	return nil
}

// VerifyAll walks the hash chains of all tasks and of the stream "system". It calls
// report with each task that is not intact and returns how many tasks it checked; its
// error says that it could not go on.
func (s *Store) VerifyAll(ctx context.Context, report func(taskID string, broken error)) (int, error) {
	return s.verifyAll(ctx, report, &meter{tell: func(proof.Progress) {}})
}

// progressEvery is how many events are read between two words about it.
const progressEvery = 1000

// meter counts what a verification has read, and tells it now and then.
type meter struct {
	proof.Progress
	tell func(proof.Progress)
	told int64 // events of the last word
}

func (m *meter) read(events int) {
	if m.Events += int64(events); m.Events-m.told >= progressEvery {
		m.say()
	}
}

func (m *meter) say() {
	m.told, m.Of, m.OfEvents = m.Events, max(m.Of, m.Tasks), max(m.OfEvents, m.Events)
	m.tell(m.Progress)
}

func (s *Store) verifyAll(ctx context.Context, report func(string, error), m *meter) (checked int, err error) {
	for after := ""; ; {
		page, err := ReadAll(ctx, s, Scalar[string], "select id from tasks where id > ? order by id limit ?", after, verifyPage)
		if err != nil {
			return checked, err
		}
		for _, id := range page {
			if err := s.verifyTask(ctx, id, m.read); err != nil {
				if ctx.Err() != nil {
					return checked, ctx.Err()
				}
				if s.dialect.classify(err) == away {
					return checked, err
				}
				report(id, err)
			}
			checked++
			m.Tasks = checked
		}
		if len(page) < verifyPage {
			return checked, s.explain(s.verifyOrphans(ctx, report))
		}
		after = page[len(page)-1]
	}
}

// verifyOrphans reports a task whose row was removed while its events stayed.
func (s *Store) verifyOrphans(ctx context.Context, report func(string, error)) error {
	id, err := Scalar[string](s.r.row(ctx, "select e.task_id from events e where e.n = 1 and not exists (select 1 from tasks t where t.id = e.task_id) limit 1"))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	if err == nil {
		report(id, fmt.Errorf("task %s was removed and its events are still here: %w", id, orchestrator.ErrNotFound))
	}
	return err
}

// sealBatch is how many positions one checkpoint covers, and at most a range of events more.
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
	c := proof.Checkpoint{At: s.now()}
	const end = "select coalesce((select pos from event_order where pos >= ? order by pos limit 1), ?)"
	if err := s.r.row(ctx, end, last.Pos+sealBatch, newest).Scan(&c.Pos); err != nil {
		return false, s.explain(err)
	}
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

// selectHeads finds the newest event of each task with a position in (from, to], where ranges end.
const selectHeads = `select h.task_id, h.n, e.hash from (select task_id, max(n) as n from event_order where pos > ? and pos <= ? group by task_id) h
	join events e on e.task_id = h.task_id and e.n = h.n order by h.task_id`

// eachHead gives the heads of a checkpoint in their order.
func (s *Store) eachHead(ctx context.Context, from, to int64, each func(proof.Head) error) error {
	rows, err := s.r.query(ctx, selectHeads, from, to)
	return Each(rows, err, func(row scanner) error {
		var h proof.Head
		if err := row.Scan(&h.TaskID, &h.N, &h.Hash); err != nil {
			return err
		}
		return each(h)
	})
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
	err := row.Scan(&c.Pos, &c.Prev, &c.Heads, Time(&c.At), &c.KeyID, &c.Signature)
	return c, err
}

func (s *Store) lastCheckpoint(ctx context.Context) (proof.Checkpoint, error) {
	c, err := scanCheckpoint(s.r.row(ctx, selectCheckpoint))
	if errors.Is(err, orchestrator.ErrNotFound) {
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
	err = s.r.row(ctx, "select e.at"+fromOrder+inOrder, afterPlace(c.Pos, 1)...).Scan(Time(&waits))
	if errors.Is(err, orchestrator.ErrNotFound) {
		err = nil
	}
	return c.At, waits, s.explain(err)
}

// Checkpoints returns checkpoints with a position > after, ascending.
func (s *Store) Checkpoints(ctx context.Context, after int64, limit int) ([]proof.Checkpoint, error) {
	return ReadAll(ctx, s, scanCheckpoint, selectCheckpoints+" where pos > ? order by pos limit ?", after, limit)
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
