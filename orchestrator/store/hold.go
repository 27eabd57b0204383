package store

import (
	"context"
	"database/sql"
	"errors"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/retention"
)

const selectHolds = "select h.id, h.kind, h.subject, h.request_id, h.reason, h.set_by, h.set_at, h.lifted_by, h.lifted_at, h.lift_reason from holds h"

// heldTask is true of a task t that a standing hold covers.
const heldTask = `exists (select 1 from holds h where h.lifted_at is null and (h.kind = 'everything' or h.kind = 'task' and h.subject = t.id
	or h.kind = 'repository' and (h.subject = t.repository or exists (select 1 from delegations d where d.task_id = t.id and d.repository = h.subject))))`

func scanHold(row scanner) (retention.Hold, error) {
	var h retention.Hold
	var at int64
	var lifted sql.NullInt64
	err := row.Scan(&h.ID, &h.Kind, &h.Subject, &h.RequestID, &h.Reason, &h.By, &at, &h.LiftedBy, &lifted, &h.LiftReason)
	if errors.Is(err, sql.ErrNoRows) {
		return h, orchestrator.ErrNotFound
	}
	h.At, h.LiftedAt = fromMicros(at), fromNull(lifted)
	return h, err
}

// Holds lists holds, newest first: the standing ones, or also those that were lifted.
func (s *Store) Holds(ctx context.Context, lifted bool) ([]retention.Hold, error) {
	query := selectHolds
	if !lifted {
		query += " where h.lifted_at is null"
	}
	rows, err := s.r.query(ctx, query+" order by h.id desc")
	found, err := collect(rows, err, scanHold)
	return found, s.explain(err)
}

// HoldsOn lists the standing holds that cover a task.
func (s *Store) HoldsOn(ctx context.Context, taskID string) ([]retention.Hold, error) {
	rows, err := s.r.query(ctx, selectHolds+` join tasks t on t.id = ? where h.lifted_at is null and (h.kind = 'everything' or h.kind = 'task' and h.subject = t.id
		or h.kind = 'repository' and (h.subject = t.repository or exists (select 1 from delegations d where d.task_id = t.id and d.repository = h.subject))) order by h.id`, taskID)
	found, err := collect(rows, err, scanHold)
	return found, s.explain(err)
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
