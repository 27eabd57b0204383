package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gatehouse/orchestrator"
)

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
	var data []byte
	err := s.r.row(ctx, "select data from blobs where id = ?", id).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, orchestrator.ErrNotFound
	}
	return data, s.explain(err)
}
