package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"

	"github.com/oklog/ulid/v2"
)

// ListRequests lists the requests that q asks for, newest first, after the cursor of the page
// before. It walks along the index of the term with the fewest rows; nothing is counted
// or skipped. A cursor that is none is CodeBadRequest.
func (s *Store) ListRequests(ctx context.Context, q history.Query, after string, limit int) (history.Page, error) {
	limit = pageSize(limit)
	if err := isCursor(after, orchestrator.RequestPrefix); err != nil {
		return history.Page{}, err
	}
	rows, err := s.requestRows(ctx, q, after, limit+1)
	if err != nil {
		return history.Page{}, s.explain(err)
	}
	page := history.Page{Rows: rows}
	if len(rows) > limit {
		page.Rows = rows[:limit]
		page.Next = rows[limit-1].ID
	}
	return page, nil
}

// isCursor refuses what no page of ours has named as its next one.
func isCursor(cursor, prefix string) error {
	if cursor == "" {
		return nil
	}
	id, ok := strings.CutPrefix(cursor, prefix)
	if _, err := ulid.ParseStrict(strings.ToUpper(id)); !ok || err != nil || id != strings.ToLower(id) {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the first page.")
	}
	return nil
}

// requestRows reads a page of rows.
func (s *Store) requestRows(ctx context.Context, q history.Query, after string, limit int) ([]history.Row, error) {
	a, err := s.askRequests(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(a.words) > 0 {
		return s.dialect.searchRequests(ctx, s, a, after, limit)
	}
	text, args, err := s.requestIDs(ctx, a, after, limit)
	if err != nil {
		return nil, err
	}
	return s.shown(ctx, text, "r.id", args)
}

// selectShown is the rows of the ids that a query lists, in the order of one column.
func selectShown(ids, order string) string {
	return "select r.id, r.shown, d.usd_micros from (" + ids + ") h join requests r on r.id = h.id join tasks t on t.id = r.task_id left join delegations d on d.id = t.root_id order by " + order + " desc"
}

func (s *Store) shown(ctx context.Context, ids, order string, args []any) ([]history.Row, error) {
	rows, err := s.r.query(ctx, selectShown(ids, order), args...)
	return collect(rows, err, scanShown)
}

func scanShown(row scanner) (history.Row, error) {
	var r history.Row
	var id, shown string
	var usd sql.NullInt64
	if err := row.Scan(&id, &shown, &usd); err != nil {
		return r, err
	}
	r.ID = id
	if shown != "" { // else it is being made findable
		if err := json.Unmarshal([]byte(shown), &r); err != nil {
			return r, fmt.Errorf("read the row of %s: %w", id, err)
		}
	}
	r.USD = fromUSD(usd)
	return r, nil
}

// requestIDs is the text that lists the ids of a page without words.
func (s *Store) requestIDs(ctx context.Context, a asked, after string, limit int) (string, []any, error) {
	within := a.within.under(after)
	best, err := s.pick(ctx, a.ways, within)
	if err != nil {
		return "", nil, err
	}
	w := way{walks: []walk{{from: "requests f", id: "f.id"}}}
	if best >= 0 {
		w = a.ways[best]
	}
	text, args := w.ids(within, a.rest(best), limit)
	return text, args, nil
}

// HistoryCount counts the rows of a list, up to most; Least says that there may be more.
func (s *Store) HistoryCount(ctx context.Context, q history.Query, most int) (history.Count, error) {
	if q.List == history.Delegations {
		s.upToDate(ctx)
	}
	if q.Empty() && s.sizes.atLeast(q.List, most) {
		return history.Count{N: int64(most), Least: true}, nil
	}
	var text string
	var args []any
	var err error
	switch q.List {
	case history.Delegations:
		text, args, err = s.delegationIDs(ctx, orchestrator.Filter{Line: q}, most+1)
	case history.Events:
		text, args, err = s.eventIDs(ctx, q, most+1)
	default:
		var a asked
		if a, err = s.askRequests(ctx, q); err == nil && len(a.words) > 0 {
			text, args = s.dialect.requestsWith(a, most+1)
		} else if err == nil {
			text, args, err = s.requestIDs(ctx, a, "", most+1)
		}
	}
	if err != nil {
		return history.Count{}, s.explain(err)
	}
	var n int64
	if err := s.r.row(ctx, "select count(*) from ("+text+") c", args...).Scan(&n); err != nil {
		return history.Count{}, s.explain(err)
	}
	if q.Empty() {
		s.sizes.counted(q.List, n)
	}
	return history.Count{N: min(n, int64(most)), Least: n > int64(most)}, nil
}

// sizes are how many rows each list is known to have at least. No row of history is ever
// removed, so what was counted once stays true.
type sizes struct {
	mu    sync.Mutex
	least map[history.List]int64
}

// atLeast reports whether a list is known to have more rows than most.
func (k *sizes) atLeast(list history.List, most int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.least[list] > int64(most)
}

func (k *sizes) counted(list history.List, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.least == nil {
		k.least = map[history.List]int64{}
	}
	k.least[list] = max(k.least[list], n)
}

// spanOf is the stretch of ids of a period.
func spanOf(prefix string, from, to time.Time) span {
	var s span
	if !from.IsZero() {
		s.from = idAtTime(prefix, from)
	}
	if !to.IsZero() {
		s.below = idAtTime(prefix, to)
	}
	return s
}

// idAtTime is the smallest id made in the millisecond of t: ids are in the order of
// time, so a period is a range of them.
func idAtTime(prefix string, t time.Time) string {
	var id ulid.ULID
	if id.SetTime(uint64(max(t.UnixMilli(), 0))) != nil {
		return prefix + "~"
	}
	return prefix + strings.ToLower(id.String())
}

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

// RecordExport writes the event of an export into the stream "system".
func (s *Store) RecordExport(ctx context.Context, actor string, what event.AuditExportedData) error {
	return s.system(ctx, actor, what, func(*Tx) error { return nil })
}

// HistoryTotal counts everything that q takes, however long that lasts: it is for exports,
// which read all of it.
func (s *Store) HistoryTotal(ctx context.Context, q history.Query) (int64, error) {
	if q.List != history.Events {
		count, err := s.HistoryCount(ctx, q, math.MaxInt32)
		return count.N, err
	}
	a, err := s.askEvents(ctx, q)
	if err != nil {
		return 0, s.explain(err)
	}
	text, args := a.way.ids(a.within, func(string) clauses { return a.rest }, 0)
	var n int64
	err = s.r.row(ctx, "select count(*) from ("+text+") c", args...).Scan(&n)
	return n, s.explain(err)
}

// delegationsSQLite walks the full-text index from the newest row backwards. Rows are in
// the order in which they were made, as ids are but within one millisecond.
func delegationsSQLite(a asked, after string, limit int) (string, []any) {
	var c clauses
	c.add("t.delegations_fts match ?", matchOf(a.words))
	if after != "" {
		c.add("t.rowid < (select row from listing where id = ?)", after)
	}
	if a.within.below != "" {
		c.add("t.rowid < (select row from listing where id < ? order by id desc limit 1) + ?", a.within.below, slack)
	}
	if a.within.from != "" {
		c.add("t.rowid > (select row from listing where id >= ? order by id limit 1) - ?", a.within.from, slack)
	}
	a.more(&c)
	return "select d.id, t.rowid as n from delegations_fts t cross join listing d on d.row = t.rowid" + c.where() + " order by t.rowid desc limit ?", append(c.args, limit)
}

func searchSQLite(ctx context.Context, s *Store, f orchestrator.Filter, a asked, limit int) ([]orchestrator.Delegation, error) {
	text, args := delegationsSQLite(a, f.After, limit)
	rows, err := s.r.query(ctx, "select "+delegationColumns+" from ("+text+") h join delegations d on d.id = h.id order by h.n desc", args...)
	return collect(rows, err, scanDelegation)
}

// delegationsPostgres is the text that lists delegations with the words of a in no order,
// so that it ends at the limit; 0 is none. Words alone are found without their rows.
func delegationsPostgres(a asked, limit int) (string, []any) {
	c, rest := a.hits("w", "id"), a.rest(-1)("w.id")
	text := "select w.id from listing_words w"
	if len(rest.texts) > 0 {
		text += " join listing d on d.id = w.id"
		c.add(strings.Join(rest.texts, " and "), rest.args...)
	}
	text += c.where()
	if limit > 0 {
		text, c.args = text+" limit ?", append(c.args, limit)
	}
	return text, c.args
}

// newestDelegations lists all that match before it puts them in order: asked for an order,
// the planner would walk along an index that has it, and look for the words in each row.
func newestDelegations(a asked, limit int) (string, []any) {
	found, args := delegationsPostgres(a, 0)
	return "with found as materialized (" + found + ") select id from found order by id desc limit ?", append(args, limit)
}

// searchPostgres looks among the newest first and then wider.
func searchPostgres(ctx context.Context, s *Store, f orchestrator.Filter, a asked, limit int) ([]orchestrator.Delegation, error) {
	a.within = a.within.under(f.After)
	return widening(ctx, s, "listing", orchestrator.DelegationPrefix, a, limit, func(a asked, limit int) ([]orchestrator.Delegation, error) {
		text, args := newestDelegations(a, limit)
		return s.whole(ctx, text, args)
	})
}
