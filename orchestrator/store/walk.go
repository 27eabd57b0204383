package store

import (
	"context"
	"strings"
)

// walk is a way along an index to ids, newest first.
type walk struct {
	from string // tables
	id   string // the column whose order the index has
	only string // tables that are enough where nothing else is asked; "": from
	cond clauses
	once bool // an id may occur several times
}

// way is what one term of a filter offers: a walk for each of its values.
type way struct {
	walks []walk
	// few: the index is not in the order of ids, so that all it leads to has to be sorted.
	few bool
}

// manyRows is from where on a term is called common: it bounds how long the choice between
// the terms of a filter takes. fewRows bounds what is sorted.
const (
	manyRows = 1000
	fewRows  = 500
)

// span is a stretch of ids: from is included, below is not; "" is open.
type span struct{ from, below string }

func (s span) on(c *clauses, id string) {
	if s.below != "" {
		c.add(id+" < ?", s.below)
	}
	if s.from != "" {
		c.add(id+" >= ?", s.from)
	}
}

// under is the span before the id.
func (s span) under(id string) span {
	if id != "" && (s.below == "" || id < s.below) {
		s.below = id
	}
	return s
}

// ids is the text that lists the newest ids on the walks which the rest holds for; rest
// gets the column of the id. limit 0 is none.
func (w way) ids(s span, rest func(id string) clauses, limit int) (string, []any) {
	var texts []string
	var args []any
	for _, one := range w.walks {
		c := clauses{texts: append([]string{}, one.cond.texts...), args: append([]any{}, one.cond.args...)}
		s.on(&c, one.id)
		more := rest(one.id)
		c.add(strings.Join(append([]string{"1 = 1"}, more.texts...), " and "), more.args...)
		from := one.from
		if one.only != "" && len(more.texts) == 0 {
			from = one.only
		}
		text := "select " + one.id + " as id from " + from + c.where()
		if one.once {
			text = strings.Replace(text, "select ", "select distinct ", 1)
		}
		if limit > 0 {
			text += " order by " + one.id + " desc limit ?"
			c.args = append(c.args, limit)
		}
		texts, args = append(texts, text), append(args, c.args...)
	}
	if len(texts) == 1 {
		return texts[0], args
	}
	text := "select id from (select * from (" + strings.Join(texts, ") s union select * from (") + ") s) u"
	if limit > 0 {
		text += " order by id desc limit ?"
		args = append(args, limit)
	}
	return text, args
}

// pick returns the number of the way with the fewest rows in the span, -1 when there is
// none to go. Only one whose rows have to be sorted must have few.
func (s *Store) pick(ctx context.Context, ways []way, within span) (int, error) {
	if len(ways) == 0 {
		return -1, nil
	}
	if len(ways) == 1 && !ways[0].few {
		return 0, nil
	}
	var columns []string
	var args []any
	for _, w := range ways {
		var sums []string
		for _, one := range w.walks {
			c := clauses{texts: append([]string{}, one.cond.texts...), args: append([]any{}, one.cond.args...)}
			if !w.few { // its index cannot bound ids
				within.on(&c, one.id)
			}
			sums = append(sums, "(select count(*) from (select 1 from "+one.from+c.where()+" limit ?) s)")
			args = append(append(args, c.args...), manyRows)
		}
		columns = append(columns, strings.Join(sums, " + "))
	}
	counts := make([]int64, len(ways))
	into := make([]any, len(ways))
	for i := range counts {
		into[i] = &counts[i]
	}
	if err := s.r.row(ctx, "select "+strings.Join(columns, ", "), args...).Scan(into...); err != nil {
		return -1, err
	}
	best := -1
	for i, n := range counts {
		if (!ways[i].few || n < fewRows) && (best < 0 || n < counts[best]) {
			best = i
		}
	}
	return best, nil
}
