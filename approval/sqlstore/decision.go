package sqlstore

import (
	"context"
	"fmt"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/store"
)

const selectDecisions = "select request_id, id, revision, user_id, user_name, channel, verdict, comment, digest, at, seen, for_id, for_name, files, comments, start_over, for_task from decisions"

type decisionRow struct {
	approval.Decision
	requestID string
}

func scanDecision(row store.Scanner) (decisionRow, error) {
	var d decisionRow
	err := row.Scan(&d.requestID, &d.ID, &d.Revision, &d.UserID, &d.User, &d.Channel, &d.Verdict, &d.Comment, &d.Digest, store.Time(&d.At),
		store.JSON(&d.Seen), &d.ForID, &d.For, store.MaybeJSON(&d.Files), store.MaybeJSON(&d.Comments), &d.StartOver, &d.ForTask)
	return d, err
}

// InsertDecision adds a decision to a request, also to the one that this transaction
// has read. A missing id and time are filled in.
func (t *Tx) InsertDecision(_ context.Context, requestID string, d approval.Decision) error {
	if d.ID == "" {
		d.ID = orchestrator.NewID(orchestrator.DecisionPrefix, t.Now())
	}
	if d.At.IsZero() {
		d.At = t.Now()
	}
	d.Comment = store.Clean(d.Comment)
	var columns [3]string
	for i, part := range []any{d.Seen, store.List(d.Files), store.List(d.Comments)} {
		var err error
		if columns[i], err = store.Encode(part); err != nil {
			return fmt.Errorf("write decision %s: %w", d.ID, err)
		}
	}
	_, err := t.Exec(`insert into decisions (id, request_id, revision, user_id, user_name, channel, verdict, comment, digest, at, seen, for_id, for_name, files, comments, start_over, for_task)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, d.ID, requestID, d.Revision, d.UserID, d.User, d.Channel, string(d.Verdict), d.Comment, d.Digest, store.Micros(d.At),
		store.Clean(columns[0]), d.ForID, d.For, store.Clean(columns[1]), store.Clean(columns[2]), store.Flag(d.StartOver), store.Flag(d.ForTask))
	if err != nil {
		return fmt.Errorf("insert decision %s: %w", d.ID, err)
	}
	t.touch(requestID)
	if r := t.requests[requestID]; r != nil {
		r.Decisions = append(r.Decisions, d)
	}
	return nil
}

// decisionsOf reads the decisions on a request, oldest first.
func decisionsOf(t *store.Tx, requestID string) ([]approval.Decision, error) {
	rows, err := t.Query(selectDecisions+" where request_id = ? order by at, id", requestID)
	found, err := store.Collect(rows, err, scanDecision)
	return each.Of(found, func(d decisionRow) approval.Decision { return d.Decision }), err
}
