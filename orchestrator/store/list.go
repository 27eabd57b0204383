package store

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

// The sizes of a page.
const (
	defaultPage = 50
	maxPage     = 200
)

// pageSize is how many rows a page has.
func pageSize(limit int) int {
	if limit < 1 {
		return defaultPage
	}
	return min(limit, maxPage)
}

// List returns delegations, newest first. It reads along an index from the cursor on
// and never counts or skips rows.
func (s *Store) List(ctx context.Context, f orchestrator.Filter) (orchestrator.Page, error) {
	limit := pageSize(f.Limit)
	if f.Conversation == "" { // else it is read from the tasks
		s.upToDate(ctx)
	}
	items, err := s.list(ctx, f, limit+1)
	if err != nil {
		return orchestrator.Page{}, s.explain(err)
	}
	page := orchestrator.Page{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		page.Next = items[limit-1].ID
	}
	return page, nil
}

func (s *Store) list(ctx context.Context, f orchestrator.Filter, limit int) ([]orchestrator.Delegation, error) {
	var text string
	var args []any
	if len(f.Line.Terms) == 1 && onlyRoots(f.Line.Terms[0]) { // as the list of tasks begins
		f.RootsOnly, f.Line.Terms = true, nil
	}
	if f.Conversation != "" || len(f.Line.Terms) == 0 && len(words(f.Query))+len(f.Line.Words) == 0 {
		text, args = listQuery(during(f), limit)
	} else {
		a, err := s.askDelegations(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(a.words) > 0 {
			return s.dialect.search(ctx, s, f, a, limit)
		}
		if text, args, err = s.walkDelegations(ctx, f, a, limit); err != nil {
			return nil, err
		}
	}
	return s.whole(ctx, text, args)
}

// whole reads the delegations whose ids a query lists, newest first.
func (s *Store) whole(ctx context.Context, text string, args []any) ([]orchestrator.Delegation, error) {
	rows, err := s.r.query(ctx, s.dialect.whole(text), args...)
	return collect(rows, err, scanDelegation)
}

// during is f with the period of its line.
func during(f orchestrator.Filter) orchestrator.Filter {
	if f.From.Before(f.Line.From) {
		f.From = f.Line.From
	}
	if !f.Line.To.IsZero() && (f.To.IsZero() || f.Line.To.Before(f.To)) {
		f.To = f.Line.To
	}
	return f
}

// listQuery is the query for a page without words. Several states are one walk along
// the index for each: a planner would read every row of one state, or all rows.
func listQuery(f orchestrator.Filter, limit int) (string, []any) {
	if f.Conversation != "" {
		return conversationQuery(f, limit)
	}
	c := conditions(f)
	if f.After != "" {
		c.add("d.id < ?", f.After)
	}
	if len(f.States) < 2 {
		if len(f.States) == 1 {
			c.add("d.state = ?", string(f.States[0]))
		}
		return "select d.id from listing d" + c.where() + " order by d.id desc limit ?", append(c.args, limit)
	}
	var walks []string
	var args []any
	for _, state := range f.States {
		one := clauses{texts: append([]string{"d.state = ?"}, c.texts...)}
		walks = append(walks, "select * from (select d.id from listing d"+one.where()+" order by d.id desc limit ?) s")
		args = append(append(append(args, string(state)), c.args...), limit)
	}
	return "select id from (" + strings.Join(walks, " union all ") + ") d order by d.id desc limit ?", append(args, limit)
}

// clauses collects the conditions of a query.
type clauses struct {
	texts []string
	args  []any
}

func (c *clauses) add(text string, args ...any) {
	c.texts = append(c.texts, text)
	c.args = append(c.args, args...)
}

func (c *clauses) where() string {
	if len(c.texts) == 0 {
		return ""
	}
	return " where " + strings.Join(c.texts, " and ")
}

// conditions are those of f but for its states, words and cursor. Where a partial
// index could serve, its condition is repeated literally.
func conditions(f orchestrator.Filter) clauses {
	var c clauses
	if f.Agent != "" {
		c.add("d.to_agent = ?", f.Agent)
	}
	if f.Repository != "" {
		c.add("d.repository = ? and d.repository <> ''", f.Repository)
	}
	if f.Requester != "" {
		c.add("d.requester = ? and d.requester <> ''", f.Requester)
	}
	if f.RootsOnly {
		c.add("d.parent_id = ''")
	}
	if !f.From.IsZero() {
		c.add("d.id >= ? and d.created_at >= ?", idAt(f.From), micros(f.From))
	}
	if !f.To.IsZero() {
		c.add("d.id < ? and d.created_at < ?", idAt(f.To.Add(time.Millisecond)), micros(f.To))
	}
	return c
}

// idAt is the smallest id of a delegation made in the millisecond of t.
func idAt(t time.Time) string { return idAtTime(orchestrator.DelegationPrefix, t) }

// words are the words that are searched for, each once: letters and digits, as both
// databases cut the texts.
func words(query string) []string {
	all := strings.FieldsFunc(clean(query), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
	seen := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(w string) bool {
		known := seen[w]
		seen[w] = true
		return known
	})
}

// more are the conditions of a beside its words.
func (a asked) more(c *clauses) {
	a.within.on(c, "d.id")
	rest := a.rest(-1)("d.id")
	c.add(strings.Join(append([]string{"1 = 1"}, rest.texts...), " and "), rest.args...)
}

// askDelegations turns a filter with a line into conditions and ways. The row of the
// delegation is d in all of them.
func (s *Store) askDelegations(ctx context.Context, f orchestrator.Filter) (asked, error) {
	f = during(f)
	a := asked{words: words(f.Query + " " + strings.Join(f.Line.Words, " "))}
	a.within = spanOf(orchestrator.DelegationPrefix, f.From, time.Time{})
	if !f.To.IsZero() {
		a.within.below = idAt(f.To.Add(time.Millisecond))
	}
	roots := f.RootsOnly || slices.ContainsFunc(f.Line.Terms, onlyRoots)
	for _, t := range append(termsOf(f), f.Line.Terms...) {
		if len(t.Values) == 0 {
			continue
		}
		if err := s.askDelegation(ctx, &a, t, roots); err != nil {
			return a, err
		}
	}
	if f.RootsOnly {
		a.add(false, func(string) (string, []any) { return "d.parent_id = ''", nil })
	}
	// Ids hold milliseconds, and periods may be finer.
	if !f.From.IsZero() {
		a.add(false, func(string) (string, []any) { return "d.created_at >= ?", []any{micros(f.From)} })
	}
	if !f.To.IsZero() {
		a.add(false, func(string) (string, []any) { return "d.created_at < ?", []any{micros(f.To)} })
	}
	return a, nil
}

// onlyRoots reports whether a term leaves nothing but roots.
func onlyRoots(t history.Term) bool {
	return t.Key == history.Is && !t.Not && slices.Equal(t.Values, []string{"root"})
}

// termsOf are the fields of the filter as terms.
func termsOf(f orchestrator.Filter) []history.Term {
	var terms []history.Term
	for _, one := range []struct {
		key   history.Key
		value string
	}{{history.Agent, f.Agent}, {history.Repository, f.Repository}, {history.Requester, f.Requester}} {
		if one.value != "" {
			terms = append(terms, history.Term{Key: one.key, Values: []string{one.value}})
		}
	}
	if len(f.States) > 0 {
		states := history.Term{Key: history.State}
		for _, state := range f.States {
			states.Values = append(states.Values, string(state))
		}
		terms = append(terms, states)
	}
	return terms
}

// columns are the terms that are columns of delegations with an index of their own.
// Where it is partial, more is its condition.
var columns = map[history.Key]struct{ name, more string }{
	history.State: {"d.state", ""}, history.Agent: {"d.to_agent", ""},
	history.Repository: {"d.repository", " and d.repository <> ''"}, history.Requester: {"d.requester", " and d.requester <> ''"},
}

func (s *Store) askDelegation(ctx context.Context, a *asked, t history.Term, roots bool) error {
	var walks []walk
	values := t.Values
	switch t.Key {
	case history.Cost:
		a.addCost(t, "(select r.usd_micros from tasks t join delegations r on r.id = t.root_id where t.id = d.task_id)",
			"listing c join delegations x on x.task_id = c.task_id join listing d on d.id = x.id", "d.id")
		return nil
	case history.Task:
		ids, err := s.tasksOf(ctx, values)
		if err != nil {
			return err
		}
		a.addColumn(t.Not, "d.task_id", ids)
		walks = eachValue(ids, "delegations x join listing d on d.id = x.id", "d.id", "x.task_id = ?")
	case history.Code:
		a.addCode(t.Not, "code", values)
		walks = eachValue(values, "event_codes c join listing d on d.id = c.delegation_id", "c.delegation_id", "c.code = ?")
	case history.Via:
		const via = "(select t.via from tasks t where t.id = d.task_id)"
		named := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !origin.Channel(v).Triggers() })
		if len(named) > 0 { // their tasks say which, too: webhook ci-failed
			a.addVia(t.Not, via, values, named)
			return nil
		}
		a.addColumn(t.Not, via, values)
		if roots {
			walks = eachValue(values, "tasks t join listing d on d.id = t.root_id", "t.root_id", "t.via = ?")
		}
	case history.Is:
		return a.addIs(t)
	default:
		if t.Key == history.State {
			values = statesOf(values)
		}
		column := columns[t.Key]
		// As a value and not a column, so that only the way that was picked is walked.
		a.addColumn(t.Not, "coalesce("+column.name+", '')", values)
		walks = eachValue(values, "listing d", "d.id", column.name+" = ?"+column.more)
	}
	if !t.Not && len(walks) > 0 {
		for i := range walks {
			walks[i].once = t.Key == history.Code
		}
		a.offer(way{walks: walks})
	}
	return nil
}

// addColumn asks whether a column has one of the values.
func (a *asked) addColumn(not bool, column string, values []string) {
	a.add(not, func(string) (string, []any) { return column + " in " + marks(len(values)), anys(values) })
}

// addVia asks whether a task came through one of the values, or through any trigger of
// the kinds.
func (a *asked) addVia(not bool, column string, values, kinds []string) {
	text, args := column+" in "+marks(len(values)), anys(values)
	for _, kind := range kinds {
		text += " or " + column + " like ?"
		args = append(args, origin.Trigger(origin.Channel(kind), "%").String())
	}
	a.add(not, func(string) (string, []any) { return "(" + text + ")", args })
}

// addCode asks whether an event of the delegation has one of the codes, or types.
func (a *asked) addCode(not bool, column string, values []string) {
	a.add(not, func(string) (string, []any) {
		return "(select 1 from event_codes x where x.delegation_id = d.id and x." + column + " in " + marks(len(values)) + " limit 1) = 1", anys(values)
	})
}

// addIs asks for hops that were refused, or for roots.
func (a *asked) addIs(t history.Term) error {
	const refused, root = "refused", "root"
	wanted := func(what string) bool { return slices.Contains(t.Values, what) }
	switch {
	case wanted(refused) && wanted(root):
		a.add(t.Not, func(string) (string, []any) {
			return "(d.parent_id = '' or (select 1 from event_codes x where x.delegation_id = d.id and x.type = 'delegation.refused' limit 1) = 1)", nil
		})
	case wanted(root):
		a.add(t.Not, func(string) (string, []any) { return "d.parent_id = ''", nil })
	default:
		a.addCode(t.Not, "type", []string{string(event.DelegationRefused)})
		if !t.Not {
			one := walk{from: "event_codes c join listing d on d.id = c.delegation_id", id: "c.delegation_id", once: true}
			one.cond.add("c.type = 'delegation.refused'")
			a.offer(way{walks: []walk{one}})
		}
	}
	return nil
}

// statesOf are the states that are meant: two words stand for several.
func statesOf(values []string) []string {
	var all []string
	for _, v := range values {
		switch v {
		case history.Live:
			for _, state := range orchestrator.States() {
				if !state.Ended() {
					all = append(all, string(state))
				}
			}
		case history.Wrong:
			all = append(all, string(orchestrator.Failed), string(orchestrator.Expired))
		default:
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// walkDelegations is the text that lists the ids of a page without words.
func (s *Store) walkDelegations(ctx context.Context, f orchestrator.Filter, a asked, limit int) (string, []any, error) {
	within := a.within.under(f.After)
	best, err := s.pick(ctx, a.ways, within)
	if err != nil {
		return "", nil, err
	}
	w := way{walks: []walk{{from: "listing d", id: "d.id"}}}
	if best >= 0 {
		w = a.ways[best]
	}
	text, args := w.ids(within, a.rest(best), limit)
	return text, args, nil
}

// delegationIDs is the text that lists the ids of delegations, to count them.
func (s *Store) delegationIDs(ctx context.Context, f orchestrator.Filter, limit int) (string, []any, error) {
	a, err := s.askDelegations(ctx, f)
	if err != nil {
		return "", nil, err
	}
	if len(a.words) > 0 {
		text, args := s.dialect.delegationsWith(a, limit)
		return text, args, nil
	}
	return s.walkDelegations(ctx, f, a, limit)
}
