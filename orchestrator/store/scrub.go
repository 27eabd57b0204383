package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/sharedctx"
)

// goneHash marks a delegation whose texts were dropped: what it hashed is gone, too.
const goneHash = "gone"

// dropRows replaces the texts of a task's rows, at most room delegations and one more at a
// time, and returns how many delegations it changed. States, names, times, costs, digests
// and the names of changed files stay.
func (t *Tx) dropRows(e ended, room int) (int, error) {
	rows, err := t.q.query(t.ctx, "select id, chain, result, error, work from delegations where task_id = ? and context_hash <> ? order by seq limit ?", e.id, goneHash, room+1)
	type texts struct {
		id                     string
		chain, result, err, wo []byte
	}
	all, err := collect(rows, err, func(row scanner) (texts, error) {
		var d texts
		return d, row.Scan(&d.id, &d.chain, &d.result, &d.err, &d.wo)
	})
	if err != nil {
		return 0, err
	}
	for _, d := range all {
		var columns [4]any
		for i, c := range []struct {
			text  []byte
			blank []string
			cut   []string
		}{
			{d.chain, []string{"task"}, nil},
			{d.result, []string{"text"}, []string{"data", "artifacts"}},
			{d.err, []string{"message"}, nil},
			{d.wo, nil, []string{"memo", "refused", "feedback", "earlier", "unread", "read", "handover", "fallback", "follows", "problem", "discarded"}},
		} {
			if columns[i], err = scrub(c.text, c.blank, c.cut); err != nil {
				return 0, fmt.Errorf("the texts of %s: %w", d.id, err)
			}
		}
		if _, err := t.q.exec(t.ctx, "update delegations set text = ?, chain = ?, result = ?, error = ?, work = ?, context_hash = ? where id = ? and task_id = ?",
			retention.GoneText, columns[0], columns[1], columns[2], columns[3], goneHash, d.id, e.id); err != nil {
			return 0, err
		}
	}
	first, err := changed(t.q.exec(t.ctx, "update tasks set text = ?, source = '', attachments = '', dropped_at = ? where id = ? and dropped_at is null", retention.GoneText, micros(t.now), e.id))
	if err != nil || first == 0 && len(all) == 0 {
		return 0, err
	}
	if err := t.dropAround(e.id); err != nil {
		return 0, err
	}
	return max(len(all), int(first)), e.beside.DropTexts(t, e.id)
}

// dropAround drops what stands around the delegations of a task.
func (t *Tx) dropAround(taskID string) error {
	for _, text := range []string{
		"delete from turns where delegation_id in (select id from delegations where task_id = ?)",
		"delete from agent_shared_context where namespace = '" + sharedctx.BoardPrefix + "' || cast(? as text)",
		"update deliveries set text = '', body = null where task_id <> '' and task_id = ?",
	} {
		if _, err := t.q.exec(t.ctx, text, taskID); err != nil {
			return err
		}
	}
	return nil
}

// DropColumn replaces texts in a column of JSON, anywhere under the keys blank, and leaves out
// what stands under the keys cut: get gives ids and texts, put takes a text, an id and more.
func (t *Tx) DropColumn(get, put, taskID string, blank, cut []string, more ...any) error {
	rows, err := t.q.query(t.ctx, get, taskID)
	type row struct {
		id   string
		text []byte
	}
	all, err := collect(rows, err, func(r scanner) (row, error) {
		var one row
		return one, r.Scan(&one.id, &one.text)
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		text, err := scrub(one.text, blank, cut)
		if err != nil {
			return fmt.Errorf("the texts of %s: %w", one.id, err)
		}
		if _, err := t.q.exec(t.ctx, put, append([]any{text, one.id}, more...)...); err != nil {
			return err
		}
	}
	return nil
}

// scrub replaces, anywhere in a JSON text, what stands under the keys blank, and leaves
// out what stands under the keys cut. No text stays no text.
func scrub(text []byte, blank, cut []string) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		return nil, err
	}
	return encode(scrubbed(v, blank, cut))
}

func scrubbed(v any, blank, cut []string) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = scrubbed(v[i], blank, cut)
		}
	case map[string]any:
		for key := range v {
			switch {
			case slices.Contains(cut, key):
				delete(v, key)
			case slices.Contains(blank, key):
				v[key] = retention.GoneText
			default:
				v[key] = scrubbed(v[key], blank, cut)
			}
		}
	}
	return v
}
