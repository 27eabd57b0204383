package sqlstore

import (
	"context"
	"time"

	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
)

// Retain is the store's, with the gate's rows.
func (s *Store) Retain(ctx context.Context, what retention.What, before time.Time, after store.After, limit int) (retention.Done, store.After, error) {
	return s.Store.Retain(ctx, keeper{}, what, before, after, limit)
}

// keeper is what retention does to the gate's rows.
type keeper struct{}

const ofTask = "(select id from requests where task_id = ?)"

// dropTexts are what becomes of the rows of one task.
var dropTexts = []string{
	"delete from drafts where request_id in " + ofTask,
	"update answers set text = '" + retention.GoneText + "' where text <> '' and request_id in " + ofTask,
	"delete from notices where request_id in " + ofTask,
	"update decisions set comment = '" + retention.GoneText + "' where comment <> '' and request_id in " + ofTask,
	"update decisions set comments = '[]' where request_id in " + ofTask,
	"update revisions set text = '" + retention.GoneText + "' where request_id in " + ofTask,
	"update revisions set input = '{}' where input <> '' and request_id in " + ofTask,
	"update grants set scope = '{}' where task_id = ?",
	"update requests set title = '" + retention.GoneText + "' where task_id = ?",
}

// DropTexts implements store.Keeper. Lists show and find of the requests what is left.
func (keeper) DropTexts(t *store.Tx, taskID string) error {
	for _, text := range dropTexts {
		if _, err := t.Exec(text, taskID); err != nil {
			return err
		}
	}
	if err := t.DropColumn("select id, question from requests where task_id = ? and question <> ''", "update requests set question = ? where id = ?",
		taskID, []string{"text"}, []string{"context", "handover", "choices", "input", "attachments"}); err != nil {
		return err
	}
	for column, blank := range map[string][]string{"warnings": {"text"}, "notes": {"text"}, "checks": {"output"}} {
		// A revision has a key of two parts; its number goes into the id and out again.
		if err := t.DropColumn("select v.request_id || ' ' || v.n, v."+column+" from revisions v join requests r on r.id = v.request_id where r.task_id = ?",
			"update revisions set "+column+" = ? where request_id || ' ' || n = ? and request_id in "+ofTask, taskID, blank, nil, taskID); err != nil {
			return err
		}
	}
	rows, err := t.Query(selectRequest+" where r.task_id = ? order by r.id", taskID)
	all, err := store.Collect(rows, err, scanRequest)
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := listRequest(t, r, retention.GoneText); err != nil {
			return err
		}
	}
	return nil
}

// Blobs implements store.Keeper.
func (keeper) Blobs(t *store.Tx, taskID string) ([]string, error) {
	rows, err := t.Query("select v.bundle from revisions v join requests r on r.id = v.request_id where r.task_id = ?", taskID)
	return store.Collect(rows, err, store.Scalar[string])
}
