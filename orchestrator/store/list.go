package store

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/orchestrator"
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
