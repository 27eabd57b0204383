package sqlstore

import (
	"context"
	"fmt"

	"gatehouse/approval"
	"gatehouse/orchestrator/store"
)

const selectGrants = "select id, task_id, agent, scope, request_id, given_by, uses, created_at, used_at, revoked_at, revoked_by from grants"

func scanGrant(row store.Scanner) (approval.Grant, error) {
	var g approval.Grant
	err := row.Scan(&g.ID, &g.TaskID, &g.Agent, store.JSON(&g.Scope), &g.RequestID, store.JSON(&g.By), &g.Uses, store.Time(&g.CreatedAt),
		store.MaybeTime(&g.UsedAt), store.MaybeTime(&g.RevokedAt), &g.RevokedBy)
	return g, err
}

// Grants implements approval.Store.
func (s *Store) Grants(ctx context.Context, taskID string) ([]approval.Grant, error) {
	return store.ReadAll(ctx, s.Store, scanGrant, selectGrants+" where task_id = ? order by id", taskID)
}

// Grant implements approval.Store.
func (s *Store) Grant(ctx context.Context, id string) (approval.Grant, error) {
	return store.ReadOne(ctx, s.Store, scanGrant, selectGrants+" where id = ?", id)
}

// Grants implements approval.Tx.
func (t *Tx) Grants(context.Context) ([]approval.Grant, error) {
	rows, err := t.Query(selectGrants+" where task_id = ? order by id", t.Task().ID)
	return store.Collect(rows, err, scanGrant)
}

// SaveGrant implements approval.Tx.
func (t *Tx) SaveGrant(_ context.Context, g approval.Grant) error {
	scope, err := store.Encode(g.Scope)
	if err != nil {
		return fmt.Errorf("write the scope of %s: %w", g.ID, err)
	}
	by, err := store.Encode(g.By)
	if err != nil {
		return fmt.Errorf("write who gave %s: %w", g.ID, err)
	}
	t.Wrote()
	_, err = t.Exec(`insert into grants (id, task_id, agent, scope, request_id, given_by, uses, created_at, used_at, revoked_at, revoked_by)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (id) do update set uses = excluded.uses, used_at = excluded.used_at, revoked_at = excluded.revoked_at, revoked_by = excluded.revoked_by`,
		g.ID, t.Task().ID, g.Agent, store.Clean(scope), g.RequestID, store.Clean(by), g.Uses, store.Micros(g.CreatedAt), store.NullMicros(g.UsedAt),
		store.NullMicros(g.RevokedAt), g.RevokedBy)
	if err != nil {
		return fmt.Errorf("save grant %s: %w", g.ID, err)
	}
	return nil
}
