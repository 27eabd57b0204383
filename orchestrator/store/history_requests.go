package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

// asked is a query as the database is asked it.
type asked struct {
	within span
	words  []string
	ways   []way // of some terms, each with the number of its term
	terms  []condition
	of     []int // of each way: its term
}

// condition holds for a row, whose id stands in a column of that name.
type condition func(id string) (string, []any)

// rest are the conditions beside the one that way best walks along; -1 is none.
func (a asked) rest(best int) func(id string) clauses {
	return func(id string) clauses {
		var c clauses
		for i, holds := range a.terms {
			if best >= 0 && a.of[best] == i {
				continue
			}
			text, args := holds(id)
			c.add(text, args...)
		}
		return c
	}
}

// offer adds a way for the term that was added last.
func (a *asked) offer(w way) {
	a.ways = append(a.ways, w)
	a.of = append(a.of, len(a.terms)-1)
}

// askRequests turns a query for requests into conditions and ways.
func (s *Store) askRequests(ctx context.Context, q history.Query) (asked, error) {
	a := asked{within: spanOf(orchestrator.RequestPrefix, q.From, q.To), words: words(strings.ToLower(strings.Join(q.Words, " ")))}
	for _, t := range q.Terms {
		if len(t.Values) == 0 {
			continue
		}
		switch t.Key {
		case history.Task:
			ids, err := s.tasksOf(ctx, t.Values)
			if err != nil {
				return a, err
			}
			a.add(t.Not, func(id string) (string, []any) {
				return "(select x.task_id from requests x where x.id = " + id + ") in " + marks(len(ids)), anys(ids)
			})
			if !t.Not {
				a.offer(way{walks: eachValue(ids, "requests f", "f.id", "f.task_id = ?")})
			}
		case history.Cost:
			s.upToDate(ctx)
			a.addCost(t, "(select d.usd_micros from requests x join tasks t on t.id = x.task_id join delegations d on d.id = t.root_id where x.id = %s)",
				"listing c join requests f on f.task_id = c.task_id", "f.id")
		default:
			key, values := string(t.Key), make([]string, len(t.Values))
			for i, v := range t.Values {
				values[i] = facetValue(v)
			}
			a.add(t.Not, func(id string) (string, []any) { return hasFacet(key, values, id) })
			if !t.Not {
				walks := eachValue(values, "request_facets f", "f.request_id", "f.value = ?")
				for i := range walks {
					walks[i].cond.add("f.key = ?", key)
				}
				if i := slices.Index(values, history.Pushed); i >= 0 && t.Key == history.State {
					walks[i] = walk{from: "request_facets f", id: "f.request_id"}
					walks[i].cond.add("f.value = ?", landed)
					walks[i].cond.add("f.key = ?", key)
					walks[i].cond.add(wasPushed("f.request_id"))
				}
				a.offer(way{walks: walks})
			}
		}
	}
	return a, nil
}

// add adds a condition, or its opposite.
func (a *asked) add(not bool, holds condition) {
	if not {
		yes := holds
		holds = func(id string) (string, []any) {
			text, args := yes(id)
			return "not coalesce((" + text + "), false)", args
		}
	}
	a.terms = append(a.terms, holds)
}

// hasFacet asks in a way that no planner turns into a read of all rows of the facet.
func hasFacet(key string, values []string, id string) (string, []any) {
	var texts []string
	var args []any
	for _, v := range values {
		if key == string(history.State) && v == history.Pushed {
			texts = append(texts, "(select 1 from request_facets x where x.key = ? and x.value = ? and x.request_id = "+id+" and "+wasPushed(id)+") = 1")
			args = append(args, key, landed)
			continue
		}
		texts = append(texts, "(select 1 from request_facets x where x.key = ? and x.value = ? and x.request_id = "+id+") = 1")
		args = append(args, key, v)
	}
	return "coalesce(" + strings.Join(texts, ", false) or coalesce(") + ", false)", args
}

// landed is the state of a request whose change is where a yes puts it.
const landed = string(orchestrator.RequestLanded)

// wasPushed holds for a request whose row in lists names the branch that it was pushed to:
// what says pushed is found by it. A title cannot say so, because its quotes are escaped.
func wasPushed(id string) string {
	return `(select y.shown from requests y where y.id = ` + id + `) like '%"pushed":"%'`
}

// addCost adds the sums of a term. Their index is in the order of money, so it leads to
// few tasks or is not taken.
func (a *asked) addCost(t history.Term, root, from, id string) {
	var walks []walk
	var ranges [][2]int64
	for _, v := range t.Values {
		least, most, ok := history.CostRange(v)
		if !ok {
			continue // Parse has refused it
		}
		ranges = append(ranges, [2]int64{least, most})
		one := walk{from: from, id: id}
		one.cond.add("c.parent_id = '' and c.usd_micros is not null and c.usd_micros >= ? and c.usd_micros <= ?", least, most)
		walks = append(walks, one)
	}
	a.add(t.Not, func(id string) (string, []any) {
		texts, args := []string{"1 = 0"}, []any(nil)
		for _, r := range ranges {
			texts = append(texts, strings.Replace(root, "%s", id, 1)+" between ? and ?")
			args = append(args, r[0], r[1])
		}
		return "(" + strings.Join(texts, " or ") + ")", args
	})
	if !t.Not && len(walks) > 0 {
		a.offer(way{walks: walks, few: true})
	}
}

// eachValue is a walk for each value.
func eachValue(values []string, from, id, cond string) []walk {
	var walks []walk
	for _, v := range values {
		one := walk{from: from, id: id}
		one.cond.add(cond, v)
		walks = append(walks, one)
	}
	return walks
}

// tasksOf are the tasks that are meant by whole ids, theirs or of their roots, or by
// endings of theirs that fit some.
func (s *Store) tasksOf(ctx context.Context, values []string) ([]string, error) {
	var ids []string
	for _, v := range values {
		v = strings.ToLower(v)
		if strings.HasPrefix(v, orchestrator.TaskPrefix) {
			ids = append(ids, v)
			continue
		}
		if strings.HasPrefix(v, orchestrator.DelegationPrefix) {
			d, err := s.Delegation(ctx, v)
			if err == nil {
				v = d.TaskID
			}
			ids = append(ids, v)
			continue
		}
		found, err := s.Resolve(ctx, v, history.MaxValues, orchestrator.TaskPrefix)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			found = []string{v}
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

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

// Columns are what the row of a request has of it: its facets, and what lists show.
func (l Listed) Columns() (facets, shown string, err error) {
	shown, err = encode(l.Row)
	return l.Facets.String(), clean(shown), err
}

// List writes the row, the facets and the texts of a request where they have changed.
func (t *Tx) List(l Listed) error {
	if err := t.writeFacets(l.Row.ID, l.Facets); err != nil {
		return err
	}
	facets, shown, err := l.Columns()
	if err != nil {
		return err
	}
	if _, err := t.q.exec(t.ctx, "update requests set facets = ?, shown = ? where id = ?", facets, shown, l.Row.ID); err != nil {
		return err
	}
	_, err = t.q.exec(t.ctx, insertText+` on conflict (request_id) do update set text = excluded.text
		where request_texts.text <> excluded.text`, l.Row.ID, searched(l.Texts))
	return err
}

// ListNew is List for a request that was inserted with its columns. Nothing of it is listed
// yet, and PostgreSQL logs less where it is not told what to do if it were.
func (t *Tx) ListNew(l Listed) error {
	if err := t.addFacets(l.Row.ID, l.Facets, nil, ""); err != nil {
		return err
	}
	_, err := t.q.exec(t.ctx, insertText, l.Row.ID, searched(l.Texts))
	return err
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
	return t.addFacets(id, f, was, " on conflict do nothing")
}

// addFacets writes the rows of f that were not there.
func (t *Tx) addFacets(id string, f, was Facets, otherwise string) error {
	var args []any
	for _, one := range f {
		if !slices.Contains(was, one) {
			args = append(args, string(one.Key), one.Value, id)
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err := t.q.exec(t.ctx, "insert into request_facets (key, value, request_id) values "+strings.Repeat("(?, ?, ?), ", len(args)/3-1)+"(?, ?, ?)"+otherwise, args...)
	return err
}

const insertText = "insert into request_texts (request_id, text) values (?, ?)"

// searched is what is searched of texts: each once, also where one is a part of those before
// it. It is in lower case, because PostgreSQL knows the letters of its locale only.
func searched(texts []string) string {
	all := ""
	for _, text := range texts {
		if !strings.Contains(all, text) {
			all += text + "\n"
		}
	}
	return clean(strings.ToLower(all[:min(len(all), maxSearched)]))
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
