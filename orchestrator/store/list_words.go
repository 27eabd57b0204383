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

// delegationsPostgres is the text that counts delegations with the words of a: in no
// order, so that it ends at the limit.
func delegationsPostgres(a asked, limit int) (string, []any) {
	c, rest := a.hits("d", "id"), a.rest(-1)("d.id")
	c.add(strings.Join(append([]string{"1 = 1"}, rest.texts...), " and "), rest.args...)
	return "select d.id from delegations d" + c.where() + " limit ?", append(c.args, limit)
}

// newestDelegations looks the words up first, as newestRequests does.
func newestDelegations(a asked, limit int) (string, []any) {
	hit, rest := a.hits("m", "id"), a.rest(-1)("d.id")
	found, args := "with found as materialized (select m.id from delegations m"+hit.where()+") select id from found", hit.args
	var where string
	if len(rest.texts) == 0 { // nothing else is asked of the rows, so only those shown are read
		found, args = found+" order by id desc limit ?", append(args, limit)
	} else {
		where, args = rest.where(), append(args, rest.args...)
	}
	return "select " + delegationColumns + " from (" + found + ") h join delegations d on h.id = d.id" + where + " order by d.id desc limit ?", append(args, limit)
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
