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

// delegationsPostgres is the text that lists delegations with the words of a in no order,
// so that it ends at the limit; 0 is none.
func delegationsPostgres(a asked, limit int) (string, []any) {
	c, rest := a.hits("d", "id"), a.rest(-1)("d.id")
	c.add(strings.Join(append([]string{"1 = 1"}, rest.texts...), " and "), rest.args...)
	text := "select d.id from delegations d" + c.where()
	if limit > 0 {
		text, c.args = text+" limit ?", append(c.args, limit)
	}
	return text, c.args
}

// newestDelegations lists all that match before it puts them in order: asked for an order,
// the planner would walk along an index that has it, and look for the words in each row.
func newestDelegations(a asked, limit int) (string, []any) {
	found, args := delegationsPostgres(a, 0)
	return "select " + delegationColumns + " from (with found as materialized (" + found + ") select id from found order by id desc limit ?) h join delegations d on d.id = h.id order by d.id desc", append(args, limit)
}

// searchPostgres looks among the newest first and then wider.
func searchPostgres(ctx context.Context, s *Store, f orchestrator.Filter, a asked, limit int) ([]orchestrator.Delegation, error) {
	a.within = a.within.under(f.After)
	return widening(ctx, s, "delegations", orchestrator.DelegationPrefix, a, limit, func(a asked, limit int) ([]orchestrator.Delegation, error) {
		text, args := newestDelegations(a, limit)
		rows, err := s.r.query(ctx, text, args...)
		return collect(rows, err, scanDelegation)
	})
}
