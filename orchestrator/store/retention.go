package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/retention"
)

// retentionActor is who the log names for what retention removes.
const retentionActor = "retention"

// retainTasks is how many tasks one batch looks at, beside its limit of rows.
const retainTasks = 50

// passes are what retention does to a task that ended: the column that says that nothing
// is left to do, and the work.
var passes = map[retention.What]struct {
	column string
	run    func(t *Tx, e ended, room int) (retention.Done, error)
}{
	retention.Texts:   {"texts_gone", (*Tx).dropTexts},
	retention.Blobs:   {"blobs_gone", (*Tx).dropBlobs},
	retention.Orphans: {"orphans_gone", (*Tx).dropOrphans},
}

// ended is a task whose time has come.
type ended struct {
	id     string
	at     int64
	before time.Time
	beside Keeper
}

// After is where a run of batches goes on; the zero value begins.
type After struct {
	at int64
	id string
}

// Retain removes one batch, also of what others keep beside the store, of what belongs to tasks that ended by then, at most limit
// rows, in one transaction with its event; nothing of tasks that live, that people are
// asked about, or that a hold covers. It locks the row that holds lock, so a hold comes
// wholly before a batch or wholly after it. A run goes on at the returned place while
// Done.More is set; one that was cut off begins anew and finds what is left.
func (s *Store) Retain(ctx context.Context, beside Keeper, what retention.What, before time.Time, after After, limit int) (retention.Done, After, error) {
	pass, ok := passes[what]
	if !ok {
		return retention.Done{}, after, fmt.Errorf("retention knows no pass %q", what)
	}
	done, next := retention.Done{What: what, UpTo: before}, after
	err := s.inTask(ctx, event.System, func(t *Tx) error {
		done, next = retention.Done{What: what, UpTo: before}, after // when the database undid a try
		all, err := t.retained(pass.column, before, after)
		if err != nil {
			return err
		}
		done.More = len(all) == retainTasks
		for _, e := range all {
			if done.Events+done.Blobs >= limit {
				done.More = true
				break
			}
			e.beside = beside
			one, err := t.retain(pass.column, pass.run, e, limit-done.Events-done.Blobs)
			if err != nil {
				return fmt.Errorf("retention of %s: %w", e.id, err)
			}
			done.Tasks, done.Events, done.Blobs = done.Tasks+one.Tasks, done.Events+one.Events, done.Blobs+one.Blobs
			if one.More { // the task goes on in the next batch
				done.More = true
				break
			}
			next = After{e.at, e.id}
		}
		if done.Nothing() {
			return nil
		}
		defer s.trace("forgetting")
		return t.Append(ctx, event.Of("", retentionActor, event.RetentionAppliedData{
			What: string(what), Tasks: done.Tasks, Events: done.Events, Blobs: done.Blobs, UpTo: before.UTC().Format(time.RFC3339)}))
	})
	return done, next, err
}

// retained finds the next tasks of a pass.
func (t *Tx) retained(column string, before time.Time, after After) ([]ended, error) {
	rows, err := t.q.query(t.ctx, `select t.id, t.ended_at from tasks t where t.ended_at is not null and t.`+column+` = 0
		and t.ended_at <= ? and (t.ended_at > ? or t.ended_at = ? and t.id > ?) and t.id <> 'system' and not `+heldTask+`
		and not exists (select 1 from requests r where r.task_id = t.id and r.state = 'pending')
		and not exists (select 1 from delegations d where d.task_id = t.id and d.ended_at is null)
		order by t.ended_at, t.id limit ?`, micros(before), after.at, after.at, after.id, retainTasks)
	return collect(rows, err, func(row scanner) (ended, error) {
		e := ended{before: before}
		return e, row.Scan(&e.id, &e.at)
	})
}

// retain locks one task and does one pass on it. A task that was taken up again since it
// was found is left alone.
func (t *Tx) retain(column string, run func(*Tx, ended, int) (retention.Done, error), e ended, room int) (retention.Done, error) {
	var at *time.Time
	err := t.q.row(t.ctx, "select ended_at from tasks where id = ?"+t.s.dialect.lock, e.id).Scan(MaybeTime(&at))
	if errors.Is(err, orchestrator.ErrNotFound) || err == nil && (at == nil || at.After(whole(e.before))) {
		return retention.Done{}, nil
	}
	if err != nil {
		return retention.Done{}, err
	}
	done, err := run(t, e, room)
	if err == nil && !done.Nothing() {
		_, err = t.q.exec(t.ctx, countVersion, e.id)
	}
	if err != nil || done.More {
		return done, err
	}
	// Something may have come after the end that is not old yet.
	young, err := Scalar[bool](t.q.row(t.ctx, "select exists (select 1 from events where task_id = ? and at > ?)", e.id, micros(e.before)))
	if err != nil || young {
		return done, err
	}
	_, err = t.q.exec(t.ctx, "update tasks set "+column+" = 1, version = version + 1 where id = ?", e.id)
	return done, err
}

// dropTexts removes what a task was about: first the rows that people read, then the data
// of its events. Data of events that are younger than the rest stays until its time.
func (t *Tx) dropTexts(e ended, room int) (retention.Done, error) {
	var done retention.Done
	n, err := t.dropRows(e, room)
	if err != nil {
		return done, err
	}
	done.Tasks = min(n, 1)
	rows, err := t.q.query(t.ctx, "select n, data from events where task_id = ? and at <= ? and substr(data, 1, 16) <> ? order by n limit ?",
		e.id, micros(e.before), event.DroppedMark, room+1)
	type datum struct {
		n    int64
		text string
	}
	data, err := collect(rows, err, func(row scanner) (datum, error) {
		var d datum
		return d, row.Scan(&d.n, &d.text)
	})
	if err != nil {
		return done, err
	}
	if done.More = len(data) > room || n > room; len(data) > room {
		data = data[:room]
	}
	for _, d := range data {
		if _, err := t.q.exec(t.ctx, "update events set data = ? where task_id = ? and n = ?", event.DropData(d.text, t.now), e.id, d.n); err != nil {
			return done, fmt.Errorf("drop the data of event %d: %w", d.n, err)
		}
	}
	if done.Events = len(data); done.Events > 0 {
		done.Tasks = 1
	}
	return done, nil
}

// dropBlobs removes all bytes of a task.
func (t *Tx) dropBlobs(e ended, _ int) (retention.Done, error) {
	n, err := changed(t.q.exec(t.ctx, "delete from blobs where task_id = ? and created_at <= ?", e.id, micros(e.before)))
	return retention.Done{Tasks: min(int(n), 1), Blobs: int(n)}, err
}

// dropOrphans removes the bytes of a task that nothing refers to any more.
func (t *Tx) dropOrphans(e ended, _ int) (retention.Done, error) {
	rows, err := t.q.query(t.ctx, "select id from blobs where task_id = ? and created_at <= ?", e.id, micros(e.before))
	ids, err := collect(rows, err, Scalar[string])
	if err != nil || len(ids) == 0 {
		return retention.Done{}, err
	}
	used, err := t.usedBlobs(e)
	if err != nil {
		return retention.Done{}, err
	}
	var done retention.Done
	for _, id := range ids {
		if used[id] {
			continue
		}
		if err := t.DropBlob(t.ctx, id); err != nil {
			return done, err
		}
		done.Tasks, done.Blobs = 1, done.Blobs+1
	}
	return done, nil
}

// usedBlobs are the ids that the delegations of a task name, and the rows beside them.
func (t *Tx) usedBlobs(e ended) (map[string]bool, error) {
	used := map[string]bool{}
	beside, err := e.beside.Blobs(t, e.id)
	if err != nil {
		return nil, err
	}
	for _, id := range beside {
		used[id] = true
	}
	task, err := scanTask(t.q.row(t.ctx, selectTask+" where id = ?", e.id))
	if err != nil {
		return nil, err
	}
	for _, a := range task.Attachments {
		used[orchestrator.AttachmentBlob(e.id, a.SHA256)] = true
	}
	all, err := t.several(t.q.query(t.ctx, selectDelegation+" where task_id = ? order by seq", e.id))
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		used[d.Work.BaseBundle], used[d.Work.TreeBundle] = true, true
		if d.Work.From != nil {
			used[d.Work.From.Bundle] = true
		}
		if d.Work.Checkpoint != nil {
			used[d.Work.Checkpoint.Bundle] = true
		}
		if d.Result != nil {
			for _, a := range d.Result.Artifacts {
				used[orchestrator.ArtifactBlob(e.id, a.SHA256)] = true
			}
		}
		if d.Work.Land != nil {
			used[d.Work.Land.Bundle] = true
		}
	}
	return used, nil
}

// BlobsGone reports which delegations are of tasks whose blobs retention has removed: what
// nodes keep of them in their mirrors may go as well.
func (s *Store) BlobsGone(ctx context.Context, delegations []string) (map[string]bool, error) {
	gone := map[string]bool{}
	for some := range slices.Chunk(delegations, manyAtOnce) {
		ids, err := ReadAll(ctx, s, Scalar[string], "select d.id from delegations d join tasks t on t.id = d.task_id where t.blobs_gone = 1 and d.id in "+marks(len(some)), anys(some)...)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			gone[id] = true
		}
	}
	return gone, nil
}

const selectHolds = "select h.id, h.kind, h.subject, h.request_id, h.reason, h.set_by, h.set_at, h.lifted_by, h.lifted_at, h.lift_reason from holds h"

// heldTask is true of a task t that a standing hold covers.
const heldTask = "exists (select 1 from holds h where " + holdsTask + ")"

// holdsTask is true of a hold h that stands and covers a task t.
const holdsTask = `h.lifted_at is null and (h.kind = 'everything' or h.kind = 'task' and h.subject = t.id
	or h.kind = 'repository' and (h.subject = t.repository or exists (select 1 from delegations d where d.task_id = t.id and d.repository = h.subject)))`

func scanHold(row scanner) (retention.Hold, error) {
	var h retention.Hold
	err := row.Scan(&h.ID, &h.Kind, &h.Subject, &h.RequestID, &h.Reason, &h.By, Time(&h.At), &h.LiftedBy, MaybeTime(&h.LiftedAt), &h.LiftReason)
	return h, err
}

// Holds lists holds, newest first: the standing ones, or also those that were lifted.
func (s *Store) Holds(ctx context.Context, lifted bool) ([]retention.Hold, error) {
	query := selectHolds
	if !lifted {
		query += " where h.lifted_at is null"
	}
	return ReadAll(ctx, s, scanHold, query+" order by h.id desc")
}

// HoldsOn lists the standing holds that cover a task.
func (s *Store) HoldsOn(ctx context.Context, taskID string) ([]retention.Hold, error) {
	return ReadAll(ctx, s, scanHold, selectHolds+" join tasks t on t.id = ? where "+holdsTask+" order by h.id", taskID)
}

// SetHold sets a hold, with its event. What retention removes and holds lock the same row,
// so once this has returned nothing that it covers is removed any more. ErrExists: the
// same thing is held already.
func (s *Store) SetHold(ctx context.Context, h retention.Hold) (retention.Hold, error) {
	if err := h.Check(); err != nil {
		return h, orchestrator.Errorf(orchestrator.CodeBadRequest, "The hold was not set: %w", err)
	}
	h.Subject, h.Reason, h.By = clean(h.Subject), clean(h.Reason), clean(h.By)
	err := s.inTask(ctx, event.System, func(t *Tx) error {
		if h.Kind == retention.Task {
			if _, err := scanTask(t.q.row(t.ctx, selectTask+" where id = ? and id <> 'system'", h.Subject)); err != nil {
				return notThere(err, "task", h.Subject)
			}
		}
		first, err := scanHold(t.q.row(t.ctx, selectHolds+" where h.lifted_at is null and h.kind = ? and h.subject = ?", string(h.Kind), h.Subject))
		if err == nil {
			return orchestrator.Errorf(orchestrator.CodeConflict, "%s holds this since %s already (%s). (%w)", first.By, first.At.Format("2006-01-02"), first.ID, orchestrator.ErrExists)
		}
		if !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
		h.At, h.ID = t.now, orchestrator.NewID(retention.HoldPrefix, t.now)
		if _, err := t.q.exec(t.ctx, "insert into holds (id, kind, subject, request_id, reason, set_by, set_at) values (?, ?, ?, ?, ?, ?, ?)",
			h.ID, string(h.Kind), h.Subject, h.RequestID, h.Reason, h.By, micros(h.At)); err != nil {
			return err
		}
		return t.Append(ctx, event.Of("", h.By, event.HoldSetData{
			Hold: h.ID, Kind: string(h.Kind), Subject: h.Subject, Request: h.RequestID, Reason: h.Reason}))
	})
	return h, err
}

// notThere says that there is no such thing; other errors stay as they are.
func notThere(err error, what, id string) error {
	if errors.Is(err, orchestrator.ErrNotFound) {
		return orchestrator.Errorf(orchestrator.CodeNotFound, "There is no %s %.60q. (%w)", what, id, err)
	}
	return err
}

// LiftHold ends a hold, with its event; the row stays. One that was lifted already is
// CodeConflict.
func (s *Store) LiftHold(ctx context.Context, id, by, reason string) (retention.Hold, error) {
	var h retention.Hold
	if err := retention.CheckReason(reason); err != nil {
		return h, orchestrator.Errorf(orchestrator.CodeBadRequest, "The hold was not lifted: %w", err)
	}
	err := s.inTask(ctx, event.System, func(t *Tx) error {
		var err error
		if h, err = scanHold(t.q.row(t.ctx, selectHolds+" where h.id = ?", clean(id))); err != nil {
			return notThere(err, "hold", id)
		}
		if h.LiftedAt != nil {
			return orchestrator.Errorf(orchestrator.CodeConflict, "%s lifted this hold on %s already.", h.LiftedBy, h.LiftedAt.Format("2006-01-02"))
		}
		now := t.now
		h.LiftedBy, h.LiftedAt, h.LiftReason = clean(by), &now, clean(reason)
		if _, err := t.q.exec(t.ctx, "update holds set lifted_by = ?, lifted_at = ?, lift_reason = ? where id = ?", h.LiftedBy, micros(now), h.LiftReason, h.ID); err != nil {
			return err
		}
		return t.Append(ctx, event.Of("", h.LiftedBy, event.HoldLiftedData{
			Hold: h.ID, Kind: string(h.Kind), Subject: h.Subject, Reason: h.LiftReason}))
	})
	return h, err
}
