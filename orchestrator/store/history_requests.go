package store

import (
	"context"
	"slices"
	"strings"

	"gatehouse/orchestrator"
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
			a.addCost(t, "(select d.usd_micros from requests x join tasks t on t.id = x.task_id join delegations d on d.id = t.root_id where x.id = %s)",
				"delegations c join requests f on f.task_id = c.task_id", "f.id")
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
