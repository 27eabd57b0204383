package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/store"
)

const revisionColumns = `v.n, v.state, v.digest, v.deliver, v.base, v.tree, v.branch, v.commit_id, v.bundle, v.previous, v.text, v.files, v.added, v.removed,
	v.warnings, v.notes, v.checks, v.sandbox, v.at, v.made, v.made_from, v.editor, v.declined, v.shadow, v.authors, v.overtaken`

// A revision's tree never changes; what became of it does.
const upsertRevision = `insert into revisions (n, state, digest, deliver, base, tree, branch, commit_id, bundle, previous, text, files, added, removed,
	warnings, notes, checks, sandbox, at, request_id, made, made_from, editor, declined, shadow, authors, overtaken)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (request_id, n) do update set state = excluded.state, digest = excluded.digest, deliver = excluded.deliver, base = excluded.base,
	tree = excluded.tree, branch = excluded.branch, commit_id = excluded.commit_id, bundle = excluded.bundle, previous = excluded.previous,
	text = excluded.text, files = excluded.files, added = excluded.added, removed = excluded.removed, warnings = excluded.warnings,
	notes = excluded.notes, checks = excluded.checks, sandbox = excluded.sandbox, at = excluded.at,
	made = excluded.made, made_from = excluded.made_from, editor = excluded.editor, declined = excluded.declined, shadow = excluded.shadow, authors = excluded.authors,
	overtaken = excluded.overtaken`

// revisionRow reads the columns of a revision.
type revisionRow struct {
	into                                *approval.Revision
	base, files, warnings, notes, check string
	editor, declined, shadow, authors   string
	overtaken                           string
	at                                  int64
}

func (v *revisionRow) columns() []any {
	r := v.into
	return []any{&r.N, &r.State, &r.Digest, &r.Deliver, &v.base, &r.Tree, &r.Branch, &r.Commit, &r.Bundle, &r.Previous, &r.Text, &v.files, &r.Added, &r.Removed,
		&v.warnings, &v.notes, &v.check, &r.Sandbox, &v.at, &r.Made, &r.MadeFrom, &v.editor, &v.declined, &v.shadow, &v.authors, &v.overtaken}
}

func (v *revisionRow) decode() error {
	v.into.At = store.FromMicros(v.at)
	for _, c := range []struct {
		text []byte
		into any
	}{{[]byte(v.base), &v.into.Base}, {[]byte(v.files), &v.into.Files}, {[]byte(v.warnings), &v.into.Warnings}, {[]byte(v.notes), &v.into.Notes},
		{[]byte(v.check), &v.into.Checks}, {orNull(v.declined), &v.into.Declined}, {orNull(v.editor), &v.into.Editor}, {orNull(v.shadow), &v.into.Shadow},
		{orNull(v.authors), &v.into.Authors}, {orNull(v.overtaken), &v.into.Overtaken}} {
		if err := json.Unmarshal(c.text, c.into); err != nil {
			return fmt.Errorf("read revision %d: %w", v.into.N, err)
		}
	}
	return nil
}

// orNull is JSON text, null where the column holds nothing: what was nil is nil again.
func orNull(s string) []byte {
	if s == "" || s == "[]" {
		return []byte("null")
	}
	return []byte(s)
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
		columns[1], v.Added, v.Removed, columns[2], columns[3], columns[4], v.Sandbox, store.Micros(v.At), r.ID, v.Made, v.MadeFrom, columns[6], columns[5], columns[7], columns[8], columns[9])
	if err != nil {
		return fmt.Errorf("save revision %d of %s: %w", v.N, r.ID, err)
	}
	return nil
}

// Revisions returns all revisions of a request, oldest first.
func (s *Store) Revisions(ctx context.Context, id string) ([]approval.Revision, error) {
	rows, err := s.Query(ctx, "select "+revisionColumns+" from revisions v where v.request_id = ? order by v.n", id)
	found, err := store.Collect(rows, err, func(row store.Scanner) (approval.Revision, error) {
		var r approval.Revision
		v := revisionRow{into: &r}
		if err := row.Scan(v.columns()...); err != nil {
			return r, err
		}
		err := v.decode()
		return r, err
	})
	return found, s.Advise(err)
}
