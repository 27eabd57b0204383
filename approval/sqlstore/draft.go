package sqlstore

import (
	"context"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/store"
)

const (
	selectDrafts = `select user_id, request_id, revision, path, side, line, code, text, at from drafts
		where user_id = ? and request_id = ? order by path, side, line`
	upsertDraft = `insert into drafts (user_id, request_id, revision, path, side, line, code, text, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (user_id, request_id, path, side, line) do update set revision = excluded.revision, code = excluded.code, text = excluded.text, at = excluded.at`
)

func scanDraft(row store.Scanner) (approval.Draft, error) {
	var d approval.Draft
	err := row.Scan(&d.UserID, &d.RequestID, &d.Revision, &d.Path, &d.Side, &d.Line, &d.Code, &d.Text, store.Time(&d.At))
	return d, err
}

// SaveDraft writes a draft, in place of the one on the same line; ErrExists when the
// person has that many others on the request.
func (s *Store) SaveDraft(ctx context.Context, d approval.Draft, most int) error {
	return s.transact(ctx, func(t *Tx) error {
		others, err := store.Scalar[int](t.Row("select count(*) from drafts where user_id = ? and request_id = ? and not (path = ? and side = ? and line = ?)",
			d.UserID, d.RequestID, store.Clean(d.Path), d.Side, d.Line))
		if err != nil {
			return fmt.Errorf("count the drafts on %s: %w", d.RequestID, err)
		}
		if others >= most {
			return orchestrator.ErrExists
		}
		if _, err := t.Exec(upsertDraft, d.UserID, d.RequestID, d.Revision, store.Clean(d.Path), d.Side, d.Line, store.Clean(d.Code), store.Clean(d.Text), store.Micros(d.At)); err != nil {
			return fmt.Errorf("save a draft on %s: %w", d.RequestID, err)
		}
		return nil
	})
}

// DeleteDraft removes the draft on the same line, if there is one.
func (s *Store) DeleteDraft(ctx context.Context, d approval.Draft) error {
	_, err := s.Exec(ctx, "delete from drafts where user_id = ? and request_id = ? and path = ? and side = ? and line = ?",
		d.UserID, d.RequestID, store.Clean(d.Path), d.Side, d.Line)
	return s.Advise(err)
}

// Drafts returns a person's drafts on a request, by path, side and line.
func (s *Store) Drafts(ctx context.Context, userID, requestID string) ([]approval.Draft, error) {
	return store.ReadAll(ctx, s.Store, scanDraft, selectDrafts, userID, requestID)
}

// TakeDrafts removes a person's drafts on a request and returns them.
func (t *Tx) TakeDrafts(_ context.Context, userID, requestID string) ([]approval.Draft, error) {
	rows, err := t.Query(selectDrafts, userID, requestID)
	found, err := store.Collect(rows, err, scanDraft)
	if err != nil {
		return nil, fmt.Errorf("read the drafts on %s: %w", requestID, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	if _, err := t.Exec("delete from drafts where user_id = ? and request_id = ?", userID, requestID); err != nil {
		return nil, fmt.Errorf("take the drafts on %s: %w", requestID, err)
	}
	return found, nil
}

// PurgeDrafts removes drafts that were written last before that time.
func (s *Store) PurgeDrafts(ctx context.Context, before time.Time) (int64, error) {
	n, err := store.Changed(s.Exec(ctx, "delete from drafts where at < ?", store.Micros(before)))
	return n, s.Advise(err)
}
