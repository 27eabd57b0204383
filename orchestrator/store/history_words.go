package store

import (
	"context"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
)

// slack is how many rows the order of rows may differ from that of ids: requests are
// numbered when they commit, and have their id a moment before.
const slack = 1000

// matchOf is the words as FTS5 takes them.
func matchOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = `"` + w + `"`
	}
	return strings.Join(quoted, " ")
}

// requestsSQLite is the text that lists requests with the words of a.
func requestsSQLite(a asked, limit int) (string, []any) { return requestsSQLiteAfter(a, "", limit) }

// requestsSQLiteAfter walks the full-text index from the newest row backwards.
func requestsSQLiteAfter(a asked, after string, limit int) (string, []any) {
	var c clauses
	c.add("w.request_words match ?", matchOf(a.words))
	if after != "" {
		c.add("w.rowid < (select row from request_texts where request_id <= ? order by request_id desc limit 1)", after)
	}
	if a.within.below != "" {
		c.add("w.rowid < (select row from request_texts where request_id < ? order by request_id desc limit 1) + ?", a.within.below, slack)
	}
	if a.within.from != "" {
		c.add("w.rowid > (select row from request_texts where request_id >= ? order by request_id limit 1) - ?", a.within.from, slack)
	}
	a.within.on(&c, "m.request_id")
	rest := a.rest(-1)("m.request_id")
	c.add(strings.Join(append([]string{"1 = 1"}, rest.texts...), " and "), rest.args...)
	return "select m.request_id as id, w.rowid as n from request_words w cross join request_texts m on m.row = w.rowid" + c.where() + " order by w.rowid desc limit ?", append(c.args, limit)
}

func searchRequestsSQLite(ctx context.Context, s *Store, a asked, after string, limit int) ([]history.Row, error) {
	text, args := requestsSQLiteAfter(a, after, limit)
	return s.shown(ctx, text, "h.n", args)
}

// requestsPostgres is the text that counts requests with the words of a: in no order, so
// that it ends at the limit.
func requestsPostgres(a asked, limit int) (string, []any) {
	c := a.hits("m", "request_id")
	rest := a.rest(-1)("m.request_id")
	c.add(strings.Join(append([]string{"1 = 1"}, rest.texts...), " and "), rest.args...)
	return "select m.request_id as id from request_texts m" + c.where() + " limit ?", append(c.args, limit)
}

// hits are the rows with the words of a in its period.
func (a asked) hits(row, id string) clauses {
	var c clauses
	id = row + "." + id
	c.add(row+".words @@ plainto_tsquery('simple', ?)", strings.Join(a.words, " "))
	a.within.on(&c, id)
	return c
}

// newestRequests looks the words up first: asked for the newest matches, the planner would
// walk the primary key backwards, which takes long for rare words.
func newestRequests(a asked, limit int) (string, []any) {
	c, rest := a.hits("m", "request_id"), a.rest(-1)("f.id")
	args := append(c.args, rest.args...)
	return "select f.id from (with hit as materialized (select m.request_id as id from request_texts m" + c.where() + ") select id from hit) f where " +
		strings.Join(append([]string{"1 = 1"}, rest.texts...), " and ") + " order by f.id desc limit ?", append(args, limit)
}

// searchRequestsPostgres looks among the newest first and then wider.
func searchRequestsPostgres(ctx context.Context, s *Store, a asked, after string, limit int) ([]history.Row, error) {
	a.within = a.within.under(after)
	return widening(ctx, s, "requests", orchestrator.RequestPrefix, a, limit, func(a asked, limit int) ([]history.Row, error) {
		text, args := newestRequests(a, limit)
		return s.shown(ctx, text, "r.id", args)
	})
}

// newest is how many of the newest rows a search looks at first. There frequent words are
// often enough for a page, and the planner may read each row; all matches of rarer ones
// stand together in their index. A window between the two costs more than it saves: it has
// to be counted off, and its rows are read whether they match or not.
const newest = 1000

// widening looks for the newest matches in a table among its newest rows, and then among
// all. Asked for the newest matches of all at once, the planner would walk the primary key
// backwards, which takes half a minute for rare words.
func widening[T any](ctx context.Context, s *Store, table, prefix string, a asked, limit int, look func(a asked, limit int) ([]T, error)) ([]T, error) {
	begin := a.within.from
	if a.within.below == "" {
		a.within.below = prefix + "~"
	}
	start, err := s.nth(ctx, table, a.within.below, newest)
	if err != nil {
		return nil, err
	}
	a.within.from = max(begin, start)
	found, err := look(a, limit)
	if err != nil || len(found) >= limit || a.within.from == begin {
		return found, err
	}
	a.within.from, a.within.below = begin, a.within.from
	older, err := look(a, limit-len(found))
	return append(found, older...), err
}

// nth is the id of the nth row before the id below, "" when there are fewer.
func (s *Store) nth(ctx context.Context, table, below string, n int) (string, error) {
	rows, err := s.r.query(ctx, "select id from "+table+" where id < ? order by id desc limit 1 offset ?", below, n-1)
	start, err := collect(rows, err, scanText)
	if err != nil || len(start) == 0 {
		return "", err
	}
	return start[0], nil
}
