package sqlstore

import (
	"context"
	"fmt"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/store"
)

const revisionColumns = `v.n, v.state, v.digest, v.deliver, v.base, v.tree, v.branch, v.commit_id, v.bundle, v.previous, v.text, v.files, v.added, v.removed,
	v.warnings, v.notes, v.checks, v.sandbox, v.at, v.made, v.made_from, v.editor, v.declined, v.shadow, v.authors, v.overtaken, v.input`

// A revision's tree never changes; what became of it does.
const upsertRevision = `insert into revisions (n, state, digest, deliver, base, tree, branch, commit_id, bundle, previous, text, files, added, removed,
	warnings, notes, checks, sandbox, at, request_id, made, made_from, editor, declined, shadow, authors, overtaken, input)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (request_id, n) do update set state = excluded.state, digest = excluded.digest, deliver = excluded.deliver, base = excluded.base,
	tree = excluded.tree, branch = excluded.branch, commit_id = excluded.commit_id, bundle = excluded.bundle, previous = excluded.previous,
	text = excluded.text, files = excluded.files, added = excluded.added, removed = excluded.removed, warnings = excluded.warnings,
	notes = excluded.notes, checks = excluded.checks, sandbox = excluded.sandbox, at = excluded.at,
	made = excluded.made, made_from = excluded.made_from, editor = excluded.editor, declined = excluded.declined, shadow = excluded.shadow, authors = excluded.authors,
	overtaken = excluded.overtaken, input = excluded.input`

// columnsOf is where the columns of a revision are read into.
func columnsOf(r *approval.Revision) []any {
	return []any{&r.N, &r.State, &r.Digest, &r.Deliver, store.JSON(&r.Base), &r.Tree, &r.Branch, &r.Commit, &r.Bundle, &r.Previous, &r.Text,
		store.JSON(&r.Files), &r.Added, &r.Removed, store.JSON(&r.Warnings), store.JSON(&r.Notes), store.JSON(&r.Checks), &r.Sandbox, store.Time(&r.At),
		&r.Made, &r.MadeFrom, store.MaybeJSON(&r.Editor), store.MaybeJSON(&r.Declined), store.MaybeJSON(&r.Shadow), store.MaybeJSON(&r.Authors), store.MaybeJSON(&r.Overtaken), store.MaybeJSON(&r.Input)}
}

// saveRevision writes the request's current revision.
func (t *Tx) saveRevision(r *approval.Request) error {
	v := &r.Revision
	if v.At.IsZero() {
		v.At = t.Now()
	}
	v.Text = store.Clean(v.Text)
	var columns [10]string
	for i, part := range []any{v.Base, store.List[patch.File](v.Files), store.List[patch.Warning](v.Warnings), store.List[patch.Note](v.Notes), store.List[orchestrator.Check](v.Checks), store.List(v.Declined), v.Editor, v.Shadow, store.List(v.Authors), v.Overtaken} {
		var err error
		if columns[i], err = store.Encode(part); err != nil {
			return fmt.Errorf("write revision %d of %s: %w", v.N, r.ID, err)
		}
	}
	_, err := t.Exec(upsertRevision, v.N, string(v.State), v.Digest, v.Deliver, columns[0], v.Tree, v.Branch, v.Commit, v.Bundle, v.Previous, v.Text,
		columns[1], v.Added, v.Removed, columns[2], columns[3], columns[4], v.Sandbox, store.Micros(v.At), r.ID, v.Made, v.MadeFrom, columns[6], columns[5], columns[7], columns[8], columns[9], string(v.Input))
	if err != nil {
		return fmt.Errorf("save revision %d of %s: %w", v.N, r.ID, err)
	}
	return nil
}

// Revisions returns all revisions of a request, oldest first.
func (s *Store) Revisions(ctx context.Context, id string) ([]approval.Revision, error) {
	return store.ReadAll(ctx, s.Store, func(row store.Scanner) (r approval.Revision, err error) {
		err = row.Scan(columnsOf(&r)...)
		return r, err
	}, "select "+revisionColumns+" from revisions v where v.request_id = ? order by v.n", id)
}
