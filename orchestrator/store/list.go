package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/orchestrator"
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
		text = "select " + delegationColumns + " from (" + text + ") h join delegations d on d.id = h.id order by d.id desc"
	}
	rows, err := s.r.query(ctx, text, args...)
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
		return selectDelegation + c.where() + " order by d.id desc limit ?", append(c.args, limit)
	}
	var walks []string
	var args []any
	for _, state := range f.States {
		one := clauses{texts: append([]string{"d.state = ?"}, c.texts...)}
		walks = append(walks, "select * from (select d.* from delegations d"+one.where()+" order by d.id desc limit ?) s")
		args = append(append(append(args, string(state)), c.args...), limit)
	}
	return "select " + delegationColumns + " from (" + strings.Join(walks, " union all ") + ") d order by d.id desc limit ?", append(args, limit)
}

// conversationQuery walks the index of what one person sent in the chat.
func conversationQuery(f orchestrator.Filter, limit int) (string, []any) {
	c := clauses{texts: []string{"t.via = 'chat'", "t.requester_id = ?"}, args: []any{f.Conversation}}
	if f.After != "" {
		c.add("t.root_id < ?", f.After)
	}
	return "select " + delegationColumns + " from tasks t join delegations d on d.id = t.root_id" + c.where() +
		" order by t.root_id desc limit ?", append(c.args, limit)
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

// ViewPrefix begins the ids of saved views.
const ViewPrefix = "viw_"

const (
	selectViews    = "select v.id, v.user_id, u.name, v.name, v.list, v.line, v.columns, v.shared, v.at from saved_views v join users u on u.id = v.user_id"
	selectOwnViews = selectViews + " where v.user_id = ? or v.shared = 1 order by v.name_key, v.id"
	upsertView     = `insert into saved_views (id, user_id, name, name_key, list, line, columns, shared, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (user_id, list, name_key) do update set name = excluded.name, line = excluded.line, columns = excluded.columns, shared = excluded.shared, at = excluded.at`
)

func scanView(row scanner) (history.View, error) {
	var v history.View
	err := row.Scan(&v.ID, &v.UserID, &v.Owner, &v.Name, &v.List, &v.Line, JSON(&v.Columns), &v.Shared, Time(&v.At))
	return v, err
}

// SaveView keeps a view, in place of the one of that person, list and name; ErrExists
// when the person has that many others.
func (s *Store) SaveView(ctx context.Context, actor string, v history.View, most int) error {
	if problem := v.Problem(); problem != "" {
		return &orchestrator.Error{Code: orchestrator.CodeBadRequest, Message: problem}
	}
	columns, err := encode(list(v.Columns))
	if err != nil {
		return fmt.Errorf("write the columns of view %s: %w", v.Name, err)
	}
	at := s.now()
	save := func(t *Tx) error {
		others, err := Scalar[int](t.q.row(t.ctx, "select count(*) from saved_views where user_id = ? and not (list = ? and name_key = ?)", v.UserID, string(v.List), nameKey(v.Name)))
		if err != nil {
			return fmt.Errorf("count the views of %s: %w", v.UserID, err)
		}
		if others >= most {
			return orchestrator.ErrExists
		}
		_, err = t.q.exec(t.ctx, upsertView, orchestrator.NewID(ViewPrefix, at), v.UserID, clean(v.Name), nameKey(clean(v.Name)), string(v.List), clean(v.Line), columns, flag(v.Shared), micros(at))
		return err
	}
	if v.Shared {
		return s.system(ctx, actor, event.ViewSharedData{Name: clean(v.Name), List: string(v.List), Filter: clean(v.Line)}, save)
	}
	return s.transact(ctx, save)
}

// Views are the saved views that a person sees: their own and the shared ones, by name.
func (s *Store) Views(ctx context.Context, userID string) ([]history.View, error) {
	return ReadAll(ctx, s, scanView, selectOwnViews, clean(userID))
}

// DeleteView removes a view of that person; with shared, a shared one of anybody. It is
// ErrNotFound where there is none of these.
func (s *Store) DeleteView(ctx context.Context, actor, userID, id string, shared bool) error {
	v, err := ReadOne(ctx, s, scanView, selectViews+" where v.id = ? and (v.user_id = ? or (v.shared = 1 and ? = 1))", clean(id), userID, flag(shared))
	if err != nil {
		return err
	}
	remove := func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, "delete from saved_views where id = ?", v.ID))
		if err == nil && n == 0 {
			return orchestrator.ErrNotFound
		}
		return err
	}
	if v.Shared {
		return s.system(ctx, actor, event.ViewUnsharedData{Name: v.Name, List: string(v.List)}, remove)
	}
	return s.transact(ctx, remove)
}
