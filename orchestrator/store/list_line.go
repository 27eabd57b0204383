package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

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
			"delegations c join delegations d on d.task_id = c.task_id", "d.id")
		return nil
	case history.Task:
		ids, err := s.tasksOf(ctx, values)
		if err != nil {
			return err
		}
		a.addColumn(t.Not, "d.task_id", ids)
		walks = eachValue(ids, "delegations d", "d.id", "d.task_id = ?")
	case history.Code:
		a.addCode(t.Not, "code", values)
		walks = eachValue(values, "event_codes c join delegations d on d.id = c.delegation_id", "c.delegation_id", "c.code = ?")
	case history.Via:
		const via = "(select t.via from tasks t where t.id = d.task_id)"
		named := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !origin.Channel(v).Triggers() })
		if len(named) > 0 { // their tasks say which, too: webhook ci-failed
			a.addVia(t.Not, via, values, named)
			return nil
		}
		a.addColumn(t.Not, via, values)
		if roots {
			walks = eachValue(values, "tasks t join delegations d on d.id = t.root_id", "t.root_id", "t.via = ?")
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
		walks = eachValue(values, "delegations d", "d.id", column.name+" = ?"+column.more)
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
			one := walk{from: "event_codes c join delegations d on d.id = c.delegation_id", id: "c.delegation_id", once: true}
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
	w := way{walks: []walk{{from: "delegations d", id: "d.id"}}}
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
