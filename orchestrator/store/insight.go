package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
)

// allTime is the day under which sums of all days stand, for /metrics.
const allTime = -1

// insightCursor is how far the sums have come.
const insightCursor = "insight"

const (
	selectCursor = "select pos, at from cursors where name = ?"
	// A cursor moves only from where its reader saw it: of two that count the same events
	// one finds it moved, and nothing is counted twice.
	moveCursor  = "update cursors set pos = ?, at = ? where name = ? and pos = ?"
	beginCursor = "insert into cursors (name, pos, at) values (?, 0, 0) on conflict do nothing"
	addSum      = `insert into insight (day, measure, agent, model, repository, code, bucket, n, total) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (day, measure, agent, model, repository, code, bucket) do update set n = insight.n + excluded.n, total = insight.total + excluded.total`
	putOpen = `insert into insight_open (delegation_id, kind, since, taken) values (?, ?, ?, ?)
	on conflict (delegation_id) do update set kind = excluded.kind, since = excluded.since, taken = excluded.taken`
)

// errCounted: another node has counted these events meanwhile.
var errCounted = errors.New("these events are counted already")

// CountInsight adds the next events of the order over all tasks to the sums, at most limit,
// and returns how many there were. It may run on several nodes at once; each event counts once.
func (s *Store) CountInsight(ctx context.Context, limit int) (int, error) {
	pos, _, err := s.Cursor(ctx, insightCursor)
	if err != nil {
		return 0, err
	}
	events, err := s.Ordered(ctx, pos, limit)
	if err != nil || len(events) == 0 {
		return 0, err
	}
	f := insight.NewFold()
	if err := s.subjects(ctx, events, f); err != nil {
		return 0, s.explain(err)
	}
	was := make(map[string]insight.Open, len(f.Open))
	for id, o := range f.Open {
		was[id] = o
	}
	for i := range events {
		if events[i].TaskID != event.System {
			f.Add(events[i].Event)
		}
	}
	last := events[len(events)-1]
	err = s.transact(ctx, func(t *Tx) error {
		if err := t.moveCursor(insightCursor, pos, last.Pos, last.At); err != nil {
			return err
		}
		if err := t.addSums(f.Sums); err != nil {
			return err
		}
		return t.keepOpen(was, f.Open)
	})
	if errors.Is(err, errCounted) {
		return len(events), nil
	}
	return len(events), err
}

// Cursor is how far a reader of the log has come, and when what it read last happened.
func (s *Store) Cursor(ctx context.Context, name string) (int64, time.Time, error) {
	var pos int64
	var at time.Time
	err := s.r.row(ctx, selectCursor, name).Scan(&pos, Time(&at))
	if errors.Is(err, orchestrator.ErrNotFound) {
		err = nil
	}
	return pos, at, s.explain(err)
}

// MoveCursor records that a reader has come from one position to the next.
func (s *Store) MoveCursor(ctx context.Context, name string, from, to int64, at time.Time) error {
	return s.transact(ctx, func(t *Tx) error { return t.moveCursor(name, from, to, at) })
}

func (t *Tx) moveCursor(name string, from, to int64, at time.Time) error {
	if _, err := t.q.exec(t.ctx, beginCursor, name); err != nil {
		return err
	}
	n, err := changed(t.q.exec(t.ctx, moveCursor, to, micros(at), name, from))
	if err == nil && n == 0 {
		err = errCounted
	}
	return err
}

func (t *Tx) addSums(sums insight.Sums) error {
	all := insight.Sums{}
	for k, sum := range sums {
		if err := t.addSum(k, sum); err != nil {
			return err
		}
		k.Day, k.Repository = allTime, ""
		all.Add(k, sum.N, sum.Total)
	}
	for k, sum := range all {
		if err := t.addSum(k, sum); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) addSum(k insight.Key, sum insight.Sum) error {
	_, err := t.q.exec(t.ctx, addSum, k.Day, string(k.Measure), clean(k.Agent), clean(k.Model), clean(k.Repository), clean(k.Code), k.Bucket, sum.N, sum.Total)
	return err
}

// keepOpen writes what is under way at the end of a batch, where that changed.
func (t *Tx) keepOpen(was, is map[string]insight.Open) error {
	for id, o := range is {
		if was[id] == o {
			continue
		}
		if _, err := t.q.exec(t.ctx, putOpen, id, string(o.Kind), micros(o.Since), flag(o.Taken)); err != nil {
			return err
		}
	}
	for id := range was {
		if _, lives := is[id]; lives {
			continue
		}
		if _, err := t.q.exec(t.ctx, "delete from insight_open where delegation_id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// subjects reads what the events of a batch are about, and what was under way before it.
func (s *Store) subjects(ctx context.Context, events []orchestrator.Positioned, f *insight.Fold) error {
	seen := map[string]bool{}
	var all []string
	for i := range events {
		if id := events[i].DelegationID; id != "" && !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	for some := range slices.Chunk(all, manyAtOnce) {
		rows, err := s.r.query(ctx, "select id, to_agent, repository, created_at, case when parent_id = '' then 0 else 1 end from delegations where id in "+marks(len(some)), anys(some)...)
		if err := Each(rows, err, func(row scanner) error {
			var id string
			var who insight.Subject
			err := row.Scan(&id, &who.Agent, &who.Repository, Time(&who.CreatedAt), &who.Hop)
			f.Subjects[id] = who
			return err
		}); err != nil {
			return fmt.Errorf("what the events are about: %w", err)
		}
		rows, err = s.r.query(ctx, "select delegation_id, kind, since, taken from insight_open where delegation_id in "+marks(len(some)), anys(some)...)
		if err := Each(rows, err, func(row scanner) error {
			var id string
			var o insight.Open
			err := row.Scan(&id, &o.Kind, Time(&o.Since), &o.Taken)
			f.Open[id] = o
			return err
		}); err != nil {
			return fmt.Errorf("what was under way: %w", err)
		}
	}
	return nil
}

// insightQuery sums a stretch of days by one dimension; the others are "".
func insightQuery(by insight.Dimension, only insight.Filter) (string, []any) {
	column := map[insight.Dimension]string{insight.ByAgent: "agent", insight.ByModel: "model", insight.ByRepository: "repository", insight.ByDay: "day"}[by]
	var c clauses
	c.add("day >= ? and day <= ?")
	if only.Agent != "" {
		c.add("agent = ?", only.Agent)
	}
	if only.Repository != "" {
		c.add("repository = ?", only.Repository)
	}
	return "select " + column + ", measure, code, bucket, sum(n), sum(total) from insight" + c.where() + " group by " + column + ", measure, code, bucket", c.args
}

// Insight sums the days from first to last, both included, by one dimension.
func (s *Store) Insight(ctx context.Context, first, last int64, by insight.Dimension, only insight.Filter) (insight.Sums, error) {
	text, args := insightQuery(by, only)
	return s.sums(ctx, func(k *insight.Key) []any {
		switch by {
		case insight.ByModel:
			return []any{&k.Model}
		case insight.ByRepository:
			return []any{&k.Repository}
		case insight.ByDay:
			return []any{&k.Day}
		default:
			return []any{&k.Agent}
		}
	}, text, append([]any{max(first, 0), last}, args...)...)
}

// sums reads sums by what their first columns say.
func (s *Store) sums(ctx context.Context, by func(*insight.Key) []any, text string, args ...any) (insight.Sums, error) {
	sums := insight.Sums{}
	rows, err := s.r.query(ctx, text, args...)
	err = Each(rows, err, func(row scanner) error {
		var k insight.Key
		var n, total int64
		err := row.Scan(append(by(&k), &k.Measure, &k.Code, &k.Bucket, &n, &total)...)
		sums.Add(k, n, total)
		return err
	})
	return sums, s.explain(err)
}

const selectAllTime = "select agent, model, measure, code, bucket, n, total from insight where day = -1"

// AllTime are the sums since the first event, by agent and model.
func (s *Store) AllTime(ctx context.Context) (insight.Sums, error) {
	return s.sums(ctx, func(k *insight.Key) []any { return []any{&k.Agent, &k.Model} }, selectAllTime)
}

// InsightState says how far the sums have come.
func (s *Store) InsightState(ctx context.Context) (insight.State, error) {
	pos, at, err := s.Cursor(ctx, insightCursor)
	if err != nil {
		return insight.State{}, err
	}
	last, err := s.LastPosition(ctx)
	return insight.State{At: at, Behind: max(0, last-pos)}, err
}
