package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"

	"github.com/oklog/ulid/v2"
)

// looks are how many events a page looks at for what no index finds, such as words: first
// a few, and where these were not enough, more. A page then ends wherever it has come.
var looks = []int{2_000, 18_000}

// common are the types that every task has many of: events_type leaves them out. The
// conditions of partial indexes have to stand in a query as they stand in the index.
var common = []event.Type{event.TaskCreated, event.Queued, event.Acknowledged, event.Progress, event.Delegated, event.Waiting, event.Resumed, event.Completed,
	event.MessageCompleted, event.ToolCompleted, event.UsageRecorded, event.ContextRead, event.ContextWritten}

var (
	rareTypes = "e.type not in ('" + strings.Join(typeNames(common), "', '") + "')"
	withActor = "e.type in ('approval.decided', 'task.created')"
)

func typeNames(types []event.Type) []string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = string(t)
	}
	return out
}

// eventAsk is a query for events: the way to walk, and what is asked of each on it.
type eventAsk struct {
	within span
	way    way
	rest   clauses
}

// askEvents turns a query for events into one way and conditions. Of several terms the
// one that is rarest by its nature leads.
func (s *Store) askEvents(ctx context.Context, q history.Query) (eventAsk, error) {
	a := eventAsk{within: spanOf(orchestrator.EventPrefix, q.From, q.To), way: way{walks: []walk{{from: "events e", id: "e.id"}}}}
	rank, lead := 0, -1
	var conds []clauses
	for _, t := range q.Terms {
		if len(t.Values) == 0 {
			continue
		}
		values, text, r := t.Values, "", 0
		var walks []walk
		switch t.Key {
		case history.Task:
			ids, err := s.tasksOf(ctx, values)
			if err != nil {
				return a, err
			}
			values, text, r = ids, "e.task_id in "+marks(len(ids)), 4
			walks = eachValue(ids, "events e", "e.id", "e.task_id = ?")
		case history.Code:
			text, r = "(select x.code from event_codes x where x.event_id = e.id) in "+marks(len(values)), 3
			walks = eachValue(values, "event_codes c join events e on e.id = c.event_id", "c.event_id", "c.code = ?")
			for i := range walks {
				walks[i].only = "event_codes c"
			}
		case history.Approver, history.Requester:
			kind := event.Decided
			if t.Key == history.Requester {
				kind = event.TaskCreated
			}
			text, r = "e.type = '"+string(kind)+"' and coalesce(e.actor, '') in "+marks(len(values)), 2
			walks = eachValue(values, "events e", "e.id", withActor+" and e.type = '"+string(kind)+"' and e.actor = ?")
		case history.Type:
			text, r = "coalesce(e.type, '') in "+marks(len(values)), 1
			if slices.ContainsFunc(values, func(v string) bool { return slices.Contains(common, event.Type(v)) }) {
				r = 0
			}
			walks = eachValue(values, "events e", "e.id", rareTypes+" and e.type = ?")
		default:
			continue // Parse has refused it
		}
		if t.Not {
			text = "not coalesce((" + text + "), false)"
		} else if r > rank {
			a.way, rank, lead = way{walks: walks}, r, len(conds)
		}
		conds = append(conds, clauses{texts: []string{"(" + text + ")"}, args: anys(values)})
	}
	for i, c := range conds {
		if i != lead {
			a.rest.add(c.texts[0], c.args...)
		}
	}
	for _, w := range words(strings.Join(q.Words, " ")) {
		text, arg := s.dialect.contains(w)
		a.rest.add(text, arg)
	}
	return a, nil
}

// contains asks for a word in the data of an event, in any case. lower() may know the case of
// ASCII letters only, so others are asked for in each of theirs. A word is letters, digits and
// marks, which no pattern takes for something else.
func (d *dialect) contains(word string) (text, arg string) {
	if strings.IndexFunc(word, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return "lower(e.data) like ?", "%" + strings.ToLower(word) + "%"
	}
	var b strings.Builder
	for _, r := range word {
		if r <= unicode.MaxASCII {
			b.WriteRune(unicode.ToLower(r))
			continue
		}
		b.WriteRune('[')
		b.WriteRune(r)
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			b.WriteRune(other)
		}
		b.WriteRune(']')
	}
	return d.pattern, b.String()
}

// eventColumnsOf are the columns that a page shows.
const eventColumnsOf = "e.task_id, e.n, e.id, e.type, e.delegation_id, e.actor, e.at, e.data, e.prev_hash, e.hash"

// eventIDs is the text that lists the ids of events, to count them: of those that one
// page looks at.
func (s *Store) eventIDs(ctx context.Context, q history.Query, limit int) (string, []any, error) {
	a, err := s.askEvents(ctx, q)
	if err != nil {
		return "", nil, err
	}
	if len(a.rest.texts) > 0 {
		if a.within.from, err = s.farthest(ctx, a, looks[0]+looks[1]); err != nil {
			return "", nil, err
		}
	}
	text, args := a.way.ids(a.within, a.also, limit)
	return text, args, nil
}

// also are the conditions beside the way's own; the row of the event is e on each way.
func (a eventAsk) also(string) clauses { return a.rest }

// farthest is the id of the nth event on the way, or where the span begins when it has
// fewer.
func (s *Store) farthest(ctx context.Context, a eventAsk, n int) (string, error) {
	text, args := a.way.ids(a.within, func(string) clauses { return clauses{} }, n)
	var least sql.NullString
	var count int
	if err := s.r.row(ctx, "select min(id), count(*) from ("+text+") w", args...).Scan(&least, &count); err != nil {
		return "", err
	}
	if count < n {
		return a.within.from, nil
	}
	return least.String, nil
}

// HistoryEvents lists the events that q asks for, newest first, after the cursor of the
// page before. A cursor that is none is CodeBadRequest.
func (s *Store) HistoryEvents(ctx context.Context, q history.Query, after string, limit int) (history.EventPage, error) {
	limit = pageSize(limit)
	if err := isCursor(after, orchestrator.EventPrefix); err != nil {
		return history.EventPage{}, err
	}
	a, err := s.askEvents(ctx, q)
	if err != nil {
		return history.EventPage{}, s.explain(err)
	}
	a.within = a.within.under(after)
	var page history.EventPage
	var events []event.Event
	if len(a.rest.texts) == 0 {
		events, err = s.eventsOn(ctx, a, limit+1)
	} else {
		events, page.Next, err = s.lookFor(ctx, a, limit+1)
	}
	if err != nil {
		return history.EventPage{}, s.explain(err)
	}
	if len(events) > limit {
		events = events[:limit]
		page.Next = events[limit-1].ID
	}
	if page.Next != "" {
		page.To = timeOf(page.Next, orchestrator.EventPrefix)
	}
	inTask(events)
	for _, e := range events {
		page.Rows = append(page.Rows, history.Found{ID: e.ID, TaskID: e.TaskID, N: e.N, Type: string(e.Type), DelegationID: e.DelegationID, Actor: e.Actor, At: e.At, Data: e.Data, Hash: e.Hash})
	}
	return page, nil
}

// eventsOn reads the next events on the way that all conditions hold for.
func (s *Store) eventsOn(ctx context.Context, a eventAsk, limit int) ([]event.Event, error) {
	text, args := a.way.ids(a.within, a.also, limit)
	rows, err := s.r.query(ctx, "select "+eventColumnsOf+" from ("+text+") h join events e on e.id = h.id order by e.id desc", args...)
	return collect(rows, err, scanEvent)
}

// lookFor looks among the next events on the way, in wider and wider stretches. next is
// how far it came where it found too few and the way goes on.
func (s *Store) lookFor(ctx context.Context, a eventAsk, limit int) (found []event.Event, next string, err error) {
	begin := a.within.from
	for _, n := range looks {
		part := a
		if part.within.from, err = s.farthest(ctx, a, n); err != nil {
			return nil, "", err
		}
		some, err := s.eventsOn(ctx, part, limit-len(found))
		if err != nil {
			return nil, "", err
		}
		found = append(found, some...)
		if len(found) >= limit || part.within.from == begin {
			return found, "", nil
		}
		a.within.below = part.within.from
	}
	return found, a.within.below, nil
}

// timeOf is when an id was made.
func timeOf(id, prefix string) time.Time {
	parsed, err := ulid.ParseStrict(strings.ToUpper(strings.TrimPrefix(id, prefix)))
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(parsed.Time()).UTC()
}

// inTask puts events of one moment into the order of their task: ids of one millisecond
// are in any order.
func inTask(events []event.Event) {
	slices.SortStableFunc(events, func(a, b event.Event) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		if c := strings.Compare(b.TaskID, a.TaskID); c != 0 {
			return c
		}
		return int(b.N - a.N)
	})
}

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
