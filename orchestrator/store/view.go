package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

// ViewPrefix begins the ids of saved views.
const ViewPrefix = "viw_"

const (
	selectViews    = "select v.id, v.user_id, u.name, v.name, v.list, v.line, v.columns, v.shared, v.at from saved_views v join users u on u.id = v.user_id"
	selectOwnViews = selectViews + " where v.user_id = ? or v.shared = 1 order by v.name_key, v.id"
	upsertView     = `insert into saved_views (id, user_id, name, name_key, list, line, columns, shared, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (user_id, list, name_key) do update set name = excluded.name, line = excluded.line, columns = excluded.columns, shared = excluded.shared, at = excluded.at`
)

func scanView(row scanner) (history.View, error) {
	var v history.View
	var columns string
	var shared, at int64
	if err := row.Scan(&v.ID, &v.UserID, &v.Owner, &v.Name, &v.List, &v.Line, &columns, &shared, &at); err != nil {
		return v, err
	}
	v.Shared, v.At = shared == 1, fromMicros(at)
	if err := json.Unmarshal([]byte(columns), &v.Columns); err != nil {
		return v, fmt.Errorf("read the columns of view %s: %w", v.ID, err)
	}
	return v, nil
}

// SaveView keeps a view, in place of the one of that person, list and name; ErrExists
// when the person has that many others.
func (s *Store) SaveView(ctx context.Context, actor string, v history.View, most int) error {
	if problem := v.Problem(); problem != "" {
		return &orchestrator.Error{Code: orchestrator.CodeBadRequest, Message: problem}
	}
	columns, err := encode(list(v.Columns))
	if err != nil {
		return fmt.Errorf("write the columns of view %s: %w", v.Name, err)
	}
	at := s.now()
	save := func(t *Tx) error {
		var others int
		err := t.q.row(t.ctx, "select count(*) from saved_views where user_id = ? and not (list = ? and name_key = ?)", v.UserID, string(v.List), nameKey(v.Name)).Scan(&others)
		if err != nil {
			return fmt.Errorf("count the views of %s: %w", v.UserID, err)
		}
		if others >= most {
			return orchestrator.ErrExists
		}
		_, err = t.q.exec(t.ctx, upsertView, orchestrator.NewID(ViewPrefix, at), v.UserID, clean(v.Name), nameKey(clean(v.Name)), string(v.List), clean(v.Line), columns, flag(v.Shared), micros(at))
		return err
	}
	if v.Shared {
		return s.system(ctx, actor, event.ViewSharedData{Name: clean(v.Name), List: string(v.List), Filter: clean(v.Line)}, save)
	}
	return s.transact(ctx, save)
}

// Views are the saved views that a person sees: their own and the shared ones, by name.
func (s *Store) Views(ctx context.Context, userID string) ([]history.View, error) {
	rows, err := s.r.query(ctx, selectOwnViews, clean(userID))
	found, err := collect(rows, err, scanView)
	return found, s.explain(err)
}

// DeleteView removes a view of that person; with shared, a shared one of anybody. It is
// ErrNotFound where there is none of these.
func (s *Store) DeleteView(ctx context.Context, actor, userID, id string, shared bool) error {
	v, err := scanView(s.r.row(ctx, selectViews+" where v.id = ? and (v.user_id = ? or (v.shared = 1 and ? = 1))", clean(id), userID, flag(shared)))
	if err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return orchestrator.ErrNotFound
		}
		return s.explain(err)
	}
	remove := func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, "delete from saved_views where id = ?", v.ID))
		if err == nil && n == 0 {
			return orchestrator.ErrNotFound
		}
		return err
	}
	if v.Shared {
		return s.system(ctx, actor, event.ViewUnsharedData{Name: v.Name, List: string(v.List)}, remove)
	}
	return s.transact(ctx, remove)
}
