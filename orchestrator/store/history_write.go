package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

// maxSearched bounds the text of a request that is searched, in bytes: PostgreSQL takes
// words of 1 MB, and an answer may be longer than anybody reads.
const maxSearched = 64 << 10

// Facet is one thing that lists filter requests by. Its value is in lower case.
type Facet struct {
	Key   history.Key
	Value string
}

// Facets are those of one request, each once.
type Facets []Facet

// Add adds one, unless its value is empty.
func (f *Facets) Add(key history.Key, value string) {
	one := Facet{key, facetValue(value)}
	if one.Value != "" && !slices.Contains(*f, one) {
		*f = append(*f, one)
	}
}

// facetValue is a value as it is stored and asked for.
func facetValue(s string) string { return strings.ToLower(clean(s)) }

// Listed is a request as lists show it, and what it is found by.
type Listed struct {
	Row    history.Row
	Facets Facets   // but for its codes, which the log brings
	Texts  []string // that are searched
}

// List writes the row, the facets and the texts of a request where they have changed.
func (t *Tx) List(l Listed) error {
	if err := t.writeFacets(l.Row.ID, l.Facets); err != nil {
		return err
	}
	shown, err := encode(l.Row)
	if err != nil {
		return err
	}
	if _, err := t.q.exec(t.ctx, "update requests set facets = ?, shown = ? where id = ?", l.Facets.String(), clean(shown), l.Row.ID); err != nil {
		return err
	}
	return t.writeText(l.Row.ID, l.Texts)
}

// ListCodes makes a request findable by the codes that its delegation has had so far.
func (t *Tx) ListCodes(requestID, delegationID string) error {
	_, err := t.q.exec(t.ctx, `insert into request_facets (key, value, request_id)
		select distinct 'code', lower(code), cast(? as text) from event_codes where delegation_id = ? on conflict do nothing`, requestID, delegationID)
	return err
}

// writeCodes makes the codes of this transaction's events findable, before its commit.
func (t *Tx) writeCodes() error {
	for i := range t.events {
		if err := t.writeCode(&t.events[i]); err != nil {
			return fmt.Errorf("list the code of event %s: %w", t.events[i].ID, err)
		}
	}
	return nil
}

// String is the facets as requests keep them.
func (f Facets) String() string {
	lines := []string{}
	for _, one := range f {
		lines = append(lines, string(one.Key)+":"+one.Value)
	}
	text, err := encode(lines)
	if err != nil { // never of strings
		return "[]"
	}
	return text
}

// writeFacets brings the rows of request_facets to f.
func (t *Tx) writeFacets(id string, f Facets) error {
	var had string
	if err := t.q.row(t.ctx, "select facets from requests where id = ?", id).Scan(&had); err != nil {
		return err
	}
	var was Facets
	if had != "" {
		var lines []string
		if err := json.Unmarshal([]byte(had), &lines); err != nil {
			return err
		}
		for _, line := range lines {
			key, value, _ := strings.Cut(line, ":")
			was = append(was, Facet{history.Key(key), value})
		}
	}
	for _, one := range was {
		if slices.Contains(f, one) {
			continue
		}
		if _, err := t.q.exec(t.ctx, "delete from request_facets where key = ? and value = ? and request_id = ?", string(one.Key), one.Value, id); err != nil {
			return err
		}
	}
	var args []any
	for _, one := range f {
		if !slices.Contains(was, one) {
			args = append(args, string(one.Key), one.Value, id)
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err := t.q.exec(t.ctx, "insert into request_facets (key, value, request_id) values "+strings.Repeat("(?, ?, ?), ", len(args)/3-1)+"(?, ?, ?) on conflict do nothing", args...)
	return err
}

// writeText writes what is searched. It is in lower case, because PostgreSQL knows the letters
// of its locale only.
func (t *Tx) writeText(id string, texts []string) error {
	var text strings.Builder
	for _, p := range texts {
		text.WriteString(p[:min(len(p), maxSearched-text.Len())])
		if text.Len() == maxSearched {
			break
		}
		text.WriteByte('\n')
		if text.Len() == maxSearched {
			break
		}
	}
	_, err := t.q.exec(t.ctx, `insert into request_texts (request_id, text) values (?, ?)
		on conflict (request_id) do update set text = excluded.text where request_texts.text <> excluded.text`, id, clean(strings.ToLower(text.String())))
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
