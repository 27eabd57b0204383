package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

// maxSearched bounds the text of a request that is searched, in bytes: PostgreSQL takes
// words of 1 MB, and an answer may be longer than anybody reads.
const maxSearched = 64 << 10

// sortBatch is how many requests of before are made findable in one transaction.
const sortBatch = 200

// touch notes that the commit has to make the request findable as it is then.
func (t *Tx) touch(id string) {
	if !slices.Contains(t.touched, id) {
		t.touched = append(t.touched, id)
	}
}

// writeHistory makes what this transaction changed findable, before its commit.
func (t *Tx) writeHistory() error {
	for _, id := range t.touched {
		r, err := scanRequest(t.q.row(t.ctx, selectRequest+" where r.id = ?", id))
		if err != nil {
			return fmt.Errorf("read request %s to list it: %w", id, err)
		}
		if err := t.sort(&r, t.row.Text); err != nil {
			return fmt.Errorf("list request %s: %w", id, err)
		}
	}
	for i := range t.events {
		if err := t.writeCode(&t.events[i]); err != nil {
			return fmt.Errorf("list the code of event %s: %w", t.events[i].ID, err)
		}
	}
	return nil
}

// sortTask makes all requests of a task findable as they are now, by the task's text.
func (t *Tx) sortTask(taskID, text string) error {
	rows, err := t.q.query(t.ctx, selectRequest+" where r.task_id = ? order by r.id", taskID)
	all, err := collect(rows, err, scanRequest)
	for i := range all {
		if err == nil {
			err = t.sort(&all[i], text)
		}
	}
	if err != nil {
		return fmt.Errorf("list the requests of %s: %w", taskID, err)
	}
	return nil
}

// sort writes the facets, the row and the text of a request where they have changed.
func (t *Tx) sort(r *approval.Request, task string) error {
	rows, err := t.q.query(t.ctx, selectDecisions+" where request_id = ? order by at, id", r.ID)
	decisions, err := collect(rows, err, scanDecision)
	if err != nil {
		return err
	}
	r.Decisions = nil
	for _, d := range decisions {
		r.Decisions = append(r.Decisions, d.Decision)
	}
	f := facetsOf(r)
	if err := t.writeFacets(r.ID, f); err != nil {
		return err
	}
	shown, err := encode(rowOf(r, f))
	if err != nil {
		return err
	}
	if _, err := t.q.exec(t.ctx, "update requests set facets = ?, shown = ? where id = ?", f.String(), clean(shown), r.ID); err != nil {
		return err
	}
	return t.writeText(r, task)
}

// String is the facets as requests keep them.
func (f facets) String() string {
	lines := []string{}
	for _, one := range f {
		lines = append(lines, string(one.key)+":"+one.value)
	}
	text, err := encode(lines)
	if err != nil { // never of strings
		return "[]"
	}
	return text
}

// writeFacets brings the rows of request_facets to f.
func (t *Tx) writeFacets(id string, f facets) error {
	var had string
	if err := t.q.row(t.ctx, "select facets from requests where id = ?", id).Scan(&had); err != nil {
		return err
	}
	var was facets
	if had != "" {
		var lines []string
		if err := json.Unmarshal([]byte(had), &lines); err != nil {
			return err
		}
		for _, line := range lines {
			key, value, _ := strings.Cut(line, ":")
			was = append(was, facet{history.Key(key), value})
		}
	}
	for _, one := range was {
		if slices.Contains(f, one) {
			continue
		}
		if _, err := t.q.exec(t.ctx, "delete from request_facets where key = ? and value = ? and request_id = ?", string(one.key), one.value, id); err != nil {
			return err
		}
	}
	var args []any
	for _, one := range f {
		if !slices.Contains(was, one) {
			args = append(args, string(one.key), one.value, id)
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err := t.q.exec(t.ctx, "insert into request_facets (key, value, request_id) values "+strings.Repeat("(?, ?, ?), ", len(args)/3-1)+"(?, ?, ?) on conflict do nothing", args...)
	return err
}

// writeText writes what is searched: the task, the title, the answers, the comments. It is
// in lower case, because PostgreSQL knows the letters of its locale only.
func (t *Tx) writeText(r *approval.Request, task string) error {
	rows, err := t.q.query(t.ctx, "select text from revisions where request_id = ? order by n", r.ID)
	answers, err := collect(rows, err, scanText)
	if err != nil {
		return err
	}
	parts := []string{task}
	if !strings.Contains(task, r.Title) {
		parts = append(parts, r.Title)
	}
	parts = append(parts, answers...)
	for _, d := range r.Decisions {
		parts = append(parts, d.Comment)
		for _, c := range d.Comments {
			parts = append(parts, c.Text)
		}
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p[:min(len(p), maxSearched-text.Len())])
		if text.Len() == maxSearched {
			break
		}
		text.WriteByte('\n')
		if text.Len() == maxSearched {
			break
		}
	}
	_, err = t.q.exec(t.ctx, `insert into request_texts (request_id, text) values (?, ?)
		on conflict (request_id) do update set text = excluded.text where request_texts.text <> excluded.text`, r.ID, clean(strings.ToLower(text.String())))
	return err
}

// writeCode makes the code of an event findable, also at the request of its delegation.
func (t *Tx) writeCode(e *event.Event) error {
	code := e.Code()
	if code == "" {
		return nil // the event is what counts; what has no code is not found by one
	}
	_, err := t.q.exec(t.ctx, "insert into event_codes (event_id, type, code, delegation_id) values (?, ?, ?, ?)", e.ID, string(e.Type), clean(code), e.DelegationID)
	if err == nil {
		_, err = t.q.exec(t.ctx, `insert into request_facets (key, value, request_id)
			select 'code', cast(? as text), id from requests where delegation_id = ? order by id desc limit 1 on conflict do nothing`, facetValue(code), e.DelegationID)
	}
	return err
}

// Sort makes requests findable that an older program wrote, newest first. It is quick
// where there are none, and may run on several nodes at once.
func (s *Store) Sort(ctx context.Context) error {
	for {
		rows, err := s.r.query(ctx, "select id, task_id, delegation_id from requests where facets = '' order by id desc limit ?", sortBatch)
		some, err := collect(rows, err, func(row scanner) (approval.Request, error) {
			var r approval.Request
			err := row.Scan(&r.ID, &r.TaskID, &r.DelegationID)
			return r, err
		})
		if err != nil || len(some) == 0 {
			return s.explain(err)
		}
		// In the order of their tasks, whose rows are locked: two nodes cannot block each other.
		slices.SortFunc(some, func(a, b approval.Request) int { return strings.Compare(a.TaskID, b.TaskID) })
		if err := s.transact(ctx, func(t *Tx) error {
			for _, r := range some {
				if err := t.sortOld(r); err != nil {
					return fmt.Errorf("make request %s findable: %w", r.ID, err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
}

// sortOld makes one request findable that is in no list yet.
func (t *Tx) sortOld(r approval.Request) error {
	var task string
	if err := t.q.row(t.ctx, "select text from tasks where id = ?"+t.s.dialect.lock, r.TaskID).Scan(&task); err != nil {
		return err
	}
	if _, err := t.q.exec(t.ctx, `insert into request_facets (key, value, request_id)
		select distinct 'code', lower(code), cast(? as text) from event_codes where delegation_id = ? on conflict do nothing`, r.ID, r.DelegationID); err != nil {
		return err
	}
	r, err := scanRequest(t.q.row(t.ctx, selectRequest+" where r.id = ?", r.ID))
	if err != nil {
		return err
	}
	return t.sort(&r, task)
}
