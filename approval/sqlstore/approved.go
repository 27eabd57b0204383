package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"gatehouse/approval"
	"gatehouse/orchestrator/store"
)

// contentsAtOnce is how many contents one statement takes; SQLite counts its arguments.
const contentsAtOnce = 100

// KeepApproved remembers contents that people approved in a repository.
func (t *Tx) KeepApproved(_ context.Context, repository string, contents []approval.Content) error {
	for some := range slices.Chunk(contents, contentsAtOnce) {
		var args []any
		for _, c := range some {
			args = append(args, repository, c.Path, c.Blob)
		}
		_, err := t.Exec("insert into approved_contents (repository, path, blob) values "+store.Tuples(3, len(some))+" on conflict do nothing", args...)
		if err != nil {
			return fmt.Errorf("remember what was approved in %s: %w", repository, err)
		}
	}
	return nil
}

// Approved returns those of the contents that a person has approved at their path of a
// repository, by requests that landed.
func (t *Tx) Approved(_ context.Context, repository string, contents []approval.Content) (map[approval.Content]bool, error) {
	found := map[approval.Content]bool{}
	for some := range slices.Chunk(contents, contentsAtOnce) {
		args := []any{repository}
		for _, c := range some {
			args = append(args, c.Path, c.Blob)
		}
		rows, err := t.Query("select path, blob from approved_contents where repository = ? and (path, blob) in (values "+store.Tuples(2, len(some))+")", args...)
		if err := store.Each(rows, err, func(row store.Scanner) error {
			var c approval.Content
			err := row.Scan(&c.Path, &c.Blob)
			found[c] = true
			return err
		}); err != nil {
			return nil, fmt.Errorf("look for what was approved in %s: %w", repository, err)
		}
	}
	return found, nil
}
