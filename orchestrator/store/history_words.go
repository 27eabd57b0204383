package store

import (
	"context"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/history"
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

// requestsPostgres is the text that lists requests with the words of a.
func requestsPostgres(a asked, limit int) (string, []any) { return requestsWithin(a, a.within, limit) }

// requestsWithin looks the words up first: asked for the newest matches, the planner
// would walk the primary key backwards, which takes long for rare words.
func requestsWithin(a asked, within span, limit int) (string, []any) {
	var c clauses
	c.add("m.words @@ plainto_tsquery('simple', ?)", strings.Join(a.words, " "))
	within.on(&c, "m.request_id")
	rest := a.rest(-1)("f.id")
	args := append(c.args, rest.args...)
	return "select f.id from (with hit as materialized (select m.request_id as id from request_texts m" + c.where() + ") select id from hit) f where " +
		strings.Join(append([]string{"1 = 1"}, rest.texts...), " and ") + " order by f.id desc limit ?", append(args, limit)
}

// searchRequestsPostgres looks among the newest first and then wider.
func searchRequestsPostgres(ctx context.Context, s *Store, a asked, after string, limit int) ([]history.Row, error) {
	var found []history.Row
	within := a.within.under(after)
	if within.below == "" {
		within.below = orchestrator.RequestPrefix + "~"
	}
	for _, size := range windows {
		part := within
		last := size == 0
		if !last {
			start, err := s.nth(ctx, "requests", within.below, size)
			if err != nil {
				return nil, err
			}
			if last = start == "" || start <= within.from; !last {
				part.from = start
			}
		}
		text, args := requestsWithin(a, part, limit-len(found))
		rows, err := s.shown(ctx, text, "r.id", args)
		if err != nil {
			return nil, err
		}
		if found = append(found, rows...); len(found) >= limit || last {
			break
		}
		within.below = part.from
	}
	return found, nil
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
