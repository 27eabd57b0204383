package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator"
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
