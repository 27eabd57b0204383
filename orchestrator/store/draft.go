package store

import (
	"context"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

const (
	selectDrafts = `select user_id, request_id, revision, path, side, line, code, text, at from drafts
		where user_id = ? and request_id = ? order by path, side, line`
	upsertDraft = `insert into drafts (user_id, request_id, revision, path, side, line, code, text, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (user_id, request_id, path, side, line) do update set revision = excluded.revision, code = excluded.code, text = excluded.text, at = excluded.at`
)

func scanDraft(row scanner) (approval.Draft, error) {
	var d approval.Draft
	var at int64
	err := row.Scan(&d.UserID, &d.RequestID, &d.Revision, &d.Path, &d.Side, &d.Line, &d.Code, &d.Text, &at)
	d.At = fromMicros(at)
	return d, err
}

// SaveDraft writes a draft, in place of the one on the same line; ErrExists when the
// person has that many others on the request.
func (s *Store) SaveDraft(ctx context.Context, d approval.Draft, most int) error {
	return s.transact(ctx, func(t *Tx) error {
		var others int
		err := t.q.row(t.ctx, "select count(*) from drafts where user_id = ? and request_id = ? and not (path = ? and side = ? and line = ?)",
			d.UserID, d.RequestID, clean(d.Path), d.Side, d.Line).Scan(&others)
		if err != nil {
			return fmt.Errorf("count the drafts on %s: %w", d.RequestID, err)
		}
		if others >= most {
			return orchestrator.ErrExists
		}
		if _, err := t.q.exec(t.ctx, upsertDraft, d.UserID, d.RequestID, d.Revision, clean(d.Path), d.Side, d.Line, clean(d.Code), clean(d.Text), micros(d.At)); err != nil {
			return fmt.Errorf("save a draft on %s: %w", d.RequestID, err)
		}
		return nil
	})
}

// DeleteDraft removes the draft on the same line, if there is one.
func (s *Store) DeleteDraft(ctx context.Context, d approval.Draft) error {
	_, err := s.w.exec(ctx, "delete from drafts where user_id = ? and request_id = ? and path = ? and side = ? and line = ?",
		d.UserID, d.RequestID, clean(d.Path), d.Side, d.Line)
	return s.explain(err)
}

// Drafts returns a person's drafts on a request, by path, side and line.
func (s *Store) Drafts(ctx context.Context, userID, requestID string) ([]approval.Draft, error) {
	rows, err := s.r.query(ctx, selectDrafts, userID, requestID)
	found, err := collect(rows, err, scanDraft)
	return found, s.explain(err)
}

// TakeDrafts removes a person's drafts on a request and returns them.
func (t *Tx) TakeDrafts(_ context.Context, userID, requestID string) ([]approval.Draft, error) {
	rows, err := t.q.query(t.ctx, selectDrafts, userID, requestID)
	found, err := collect(rows, err, scanDraft)
	if err != nil {
		return nil, fmt.Errorf("read the drafts on %s: %w", requestID, err)
	}
	if _, err := t.q.exec(t.ctx, "delete from drafts where user_id = ? and request_id = ?", userID, requestID); err != nil {
		return nil, fmt.Errorf("take the drafts on %s: %w", requestID, err)
	}
	return found, nil
}

// PurgeDrafts removes drafts that were written last before that time.
func (s *Store) PurgeDrafts(ctx context.Context, before time.Time) (int64, error) {
	n, err := changed(s.w.exec(ctx, "delete from drafts where at < ?", micros(before)))
	return n, s.explain(err)
}
