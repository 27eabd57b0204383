package store

import (
	"context"
	"strings"

	"gatehouse/orchestrator"
)

// more are the conditions of a beside its words.
func (a asked) more(c *clauses) {
	a.within.on(c, "d.id")
	rest := a.rest(-1)("d.id")
	c.add(strings.Join(append([]string{"1 = 1"}, rest.texts...), " and "), rest.args...)
}

// delegationsSQLite walks the full-text index from the newest row backwards. Rows are in
// the order in which they were made, as ids are but within one millisecond.
func delegationsSQLite(what string, a asked, after string, limit int) (string, []any) {
	var c clauses
	c.add("t.delegations_fts match ?", matchOf(a.words))
	if after != "" {
		c.add("t.rowid < (select row from delegations where id = ?)", after)
	}
	if a.within.below != "" {
		c.add("t.rowid < (select row from delegations where id < ? order by id desc limit 1) + ?", a.within.below, slack)
	}
	if a.within.from != "" {
		c.add("t.rowid > (select row from delegations where id >= ? order by id limit 1) - ?", a.within.from, slack)
	}
	a.more(&c)
	return "select " + what + " from delegations_fts t cross join delegations d on d.row = t.rowid" + c.where() + " order by t.rowid desc limit ?", append(c.args, limit)
}

func searchSQLite(ctx context.Context, s *Store, f orchestrator.Filter, a asked, limit int) ([]orchestrator.Delegation, error) {
	text, args := delegationsSQLite(delegationColumns, a, f.After, limit)
	rows, err := s.r.query(ctx, text, args...)
	return collect(rows, err, scanDelegation)
}

// windows are how many of the newest rows a search looks at before it widens; 0 is all.
// Asked for the newest matches of all, PostgreSQL's planner would walk the primary key
// backwards, which takes half a minute for rare words.
var windows = []int{5_000, 100_000, 0}

// delegationsPostgres is the text that lists delegations with the words of a.
func delegationsPostgres(what string, a asked, limit int) (string, []any) {
	var hit, c clauses
	a.within.on(&hit, "id")
	hit.add("words @@ plainto_tsquery('simple', ?)", strings.Join(a.words, " "))
	rest := a.rest(-1)("d.id")
	c.add(strings.Join(append([]string{"1 = 1"}, rest.texts...), " and "), rest.args...)
	return "select " + what + " from (with found as materialized (select id from delegations" + hit.where() + ") select id from found) h join delegations d on h.id = d.id" +
		c.where() + " order by d.id desc limit ?", append(append(hit.args, c.args...), limit)
}

func searchPostgres(ctx context.Context, s *Store, f orchestrator.Filter, a asked, limit int) ([]orchestrator.Delegation, error) {
	var found []orchestrator.Delegation
	within := a.within.under(f.After)
	if within.below == "" {
		within.below = orchestrator.DelegationPrefix + "~"
	}
	for _, size := range windows {
		a.within = within
		last := size == 0
		if !last {
			start, err := s.nth(ctx, "delegations", within.below, size)
			if err != nil {
				return nil, err
			}
			if last = start == "" || start <= within.from; !last {
				a.within.from = start
			}
		}
		text, args := delegationsPostgres(delegationColumns, a, limit-len(found))
		rows, err := s.r.query(ctx, text, args...)
		part, err := collect(rows, err, scanDelegation)
		if err != nil {
			return nil, err
		}
		if found = append(found, part...); len(found) >= limit || last {
			break
		}
		within.below = a.within.from
	}
	return found, nil
}
