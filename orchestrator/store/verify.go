package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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
		rows, err := s.r.query(ctx, "select id from tasks where id > ? order by id limit ?", after, verifyPage)
		page, err := collect(rows, err, func(row scanner) (string, error) {
			var id string
			err := row.Scan(&id)
			return id, err
		})
		if err != nil {
			return checked, s.explain(err)
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
	var id string
	err := s.r.row(ctx, "select e.task_id from events e where e.n = 1 and not exists (select 1 from tasks t where t.id = e.task_id) limit 1").Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		report(id, fmt.Errorf("task %s was removed and its events are still here: %w", id, orchestrator.ErrNotFound))
	}
	return err
}
