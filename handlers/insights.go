package handlers

import (
	"context"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/insight"
)

// maxFolded is how many events of one task its figures read.
const maxFolded = 100_000

// TaskSums folds the events of a task; false says that it has more than were read.
func TaskSums(ctx context.Context, r Reader, taskID string) (insight.Sums, bool, error) {
	tree, err := r.Tree(ctx, taskID)
	if err != nil {
		return nil, false, err
	}
	f := newFold(tree)
	for after, read := int64(0), 0; read < maxFolded; {
		batch, err := r.Events(ctx, taskID, after, 1000)
		if err != nil {
			return nil, false, err
		}
		for _, e := range batch {
			f.Add(e)
		}
		if len(batch) < 1000 {
			return f.Sums, true, nil
		}
		after, read = batch[len(batch)-1].N, read+len(batch)
	}
	return f.Sums, false, nil
}

// sumsOf folds events that a page has read already.
func sumsOf(tree []orchestrator.Delegation, story []event.Event) insight.Sums {
	f := newFold(tree)
	for _, e := range story {
		f.Add(e)
	}
	return f.Sums
}

func newFold(tree []orchestrator.Delegation) *insight.Fold {
	f := insight.NewFold()
	for _, d := range tree {
		f.Subjects[d.ID] = insight.Subject{Agent: d.To, Repository: d.Repository, CreatedAt: d.CreatedAt, Hop: d.ParentID != ""}
	}
	return f
}
