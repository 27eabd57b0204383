package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
)

const (
	breakerColumns = "agent, state, failures, opened_at, until, probe, probe_until, reason, changed_at"
	selectBreakers = "select " + breakerColumns + " from breakers order by agent"
	selectBreaker  = "select " + breakerColumns + " from breakers where agent = ?"
	insertBreaker  = `insert into breakers (agent, state, failures, changed_at) values (?, 'closed', 0, ?) on conflict do nothing`
	updateBreaker  = `update breakers set state = ?, failures = ?, opened_at = ?, until = ?, probe = ?, probe_until = ?, reason = ?, changed_at = ?
	where agent = ?`
)

func scanBreaker(row scanner) (guard.Breaker, error) {
	var b guard.Breaker
	var opened, until, probe sql.NullInt64
	var changed int64
	err := row.Scan(&b.Agent, &b.State, &b.Failures, &opened, &until, &b.Probe, &probe, &b.Reason, &changed)
	b.OpenedAt, b.Until, b.ProbeUntil, b.ChangedAt = fromMicros(opened.Int64), fromMicros(until.Int64), fromMicros(probe.Int64), fromMicros(changed)
	return b, err
}

// BreakerStates returns the breakers of agents that ever failed, by name.
func (s *Store) BreakerStates(ctx context.Context) ([]guard.Breaker, error) {
	rows, err := s.r.query(ctx, selectBreakers)
	all, err := collect(rows, err, scanBreaker)
	return all, s.explain(err)
}

// Breaker reads the breaker of an agent without locking it. Where a server would have to be
// asked it is taken for one that is closed and counts nothing, and the write proves it.
func (t *Tx) Breaker(_ context.Context, agent string) (guard.Breaker, error) {
	if t.s.told != nil && t.tx == nil && !t.s.failing.has(agent) {
		if !slices.Contains(t.assumed, agent) {
			t.assumed = append(t.assumed, agent)
		}
		return guard.Breaker{Agent: agent, State: guard.Closed}, nil
	}
	b, err := readBreaker(t.read().row(t.ctx, selectBreaker, agent), agent)
	if err == nil {
		t.s.failing.note(agent, b.Resting() || b.Failures > 0 || b.Probe != "")
	}
	return b, err
}

// failing are agents whose breakers were found to count or to rest, so that they are read
// before the write. It decides nothing: what it does not know costs a step a second try.
type failing struct {
	mu     sync.Mutex
	agents map[string]bool
}

func (f *failing) has(agent string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.agents[agent]
}

func (f *failing) note(agent string, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !is {
		delete(f.agents, agent)
		return
	}
	if f.agents == nil {
		f.agents = map[string]bool{}
	}
	f.agents[agent] = true
}

// troubled is a breaker that is not as one is assumed to be.
const troubled = "(state <> 'closed' or failures <> 0 or probe <> '')"

// assured reports whether breakers are as this transaction has assumed. Where one is not,
// those agents' are read from now on.
func (t *Tx) assured(q querier) (bool, error) {
	if len(t.assumed) == 0 {
		return true, nil
	}
	var n int
	err := q.row(t.ctx, "select count(*) from breakers where "+troubled+" and agent in "+marks(len(t.assumed)), anys(t.assumed)...).Scan(&n)
	if err == nil && n > 0 {
		t.doubt()
	}
	return n == 0, err
}

// doubt has the breakers read that this transaction has assumed.
func (t *Tx) doubt() {
	for _, agent := range t.assumed {
		t.s.failing.note(agent, true)
	}
}

// LockBreaker reads it and, on PostgreSQL, locks its row, which is made where there is
// none; SQLite's transaction has locked everything.
func (t *Tx) LockBreaker(_ context.Context, agent string) (guard.Breaker, error) {
	if _, err := t.q.exec(t.ctx, insertBreaker, agent, micros(t.now)); err != nil {
		return guard.Breaker{}, fmt.Errorf("make the breaker of %s: %w", agent, err)
	}
	return readBreaker(t.q.row(t.ctx, selectBreaker+t.s.dialect.lock, agent), agent)
}

func readBreaker(row scanner, agent string) (guard.Breaker, error) {
	b, err := scanBreaker(row)
	if errors.Is(err, sql.ErrNoRows) {
		return guard.Breaker{Agent: agent, State: guard.Closed}, nil
	}
	if err != nil {
		return b, fmt.Errorf("read the breaker of %s: %w", agent, err)
	}
	return b, nil
}

// PutBreaker stores a breaker whose row LockBreaker has locked.
func (t *Tx) PutBreaker(_ context.Context, b guard.Breaker) error {
	_, err := t.q.exec(t.ctx, updateBreaker, string(b.State), b.Failures, zeroNull(b.OpenedAt), zeroNull(b.Until), b.Probe, zeroNull(b.ProbeUntil),
		clean(b.Reason), micros(b.ChangedAt), b.Agent)
	if err != nil {
		return fmt.Errorf("write the breaker of %s: %w", b.Agent, err)
	}
	return nil
}

// zeroNull is a time of which zero means none.
func zeroNull(at time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: micros(at), Valid: !at.IsZero()}
}

// Breakers lists the breakers of all agents that ever failed, by name.
func (s *Store) Breakers(ctx context.Context) ([]insight.Breaker, error) {
	rows, err := s.r.query(ctx, "select agent, state, failures, opened_at, until, reason, changed_at from breakers order by agent")
	all, err := collect(rows, err, func(row scanner) (insight.Breaker, error) {
		var b insight.Breaker
		var opened, until sql.NullInt64
		var changed int64
		err := row.Scan(&b.Agent, &b.State, &b.Failures, &opened, &until, &b.Reason, &changed)
		b.OpenedAt, b.Until, b.ChangedAt = fromNull(opened), fromNull(until), fromMicros(changed)
		return b, err
	})
	return all, s.explain(err)
}

const selectTurnsOfBreakers = `select task_id, n, type, actor, at, data from events
	where type in ('breaker.opened', 'breaker.closed') and at >= ? and at < ? order by at desc limit ?`

// BreakerTurns lists when breakers opened and closed, newest first.
func (s *Store) BreakerTurns(ctx context.Context, from, to time.Time, limit int) ([]insight.Turn, error) {
	rows, err := s.r.query(ctx, selectTurnsOfBreakers, micros(from), micros(to), limit)
	all, err := collect(rows, err, func(row scanner) (insight.Turn, error) {
		var t insight.Turn
		var kind event.Type
		var actor, data string
		var at int64
		err := row.Scan(&t.TaskID, &t.N, &kind, &actor, &at, &data)
		var more event.BreakerOpenedData // one that closed has the agent alone
		event.Decode([]byte(data), &more)
		t.Agent, t.Reason, t.Opened, t.At = cmp.Or(more.Agent, actor), more.Reason, kind == event.BreakerOpened, fromMicros(at)
		return t, err
	})
	return all, s.explain(err)
}

// selectOpen lists live children of some parents, oldest first.
func selectOpen(n int) string {
	return "select parent_id, id, to_agent, state, since, spawned from delegations where parent_id in " + marks(n) + " and parent_id <> '' and ended_at is null order by id limit ?"
}

// mostOpen bounds the children that one question lists.
const mostOpen = 2000

// LiveBelow lists the live children of some delegations, oldest first, by parent.
func (s *Store) LiveBelow(ctx context.Context, parents []string) (map[string][]orchestrator.Below, error) {
	found := map[string][]orchestrator.Below{}
	if len(parents) == 0 {
		return found, nil
	}
	args := make([]any, 0, len(parents)+1)
	for _, id := range parents {
		args = append(args, id)
	}
	rows, err := s.r.query(ctx, selectOpen(len(parents)), append(args, mostOpen)...)
	_, err = collect(rows, err, func(row scanner) (string, error) {
		var parent string
		var b orchestrator.Below
		var since int64
		err := row.Scan(&parent, &b.ID, &b.Agent, &b.State, &since, &b.Spawned)
		b.Since = fromMicros(since)
		found[parent] = append(found[parent], b)
		return parent, err
	})
	return found, s.explain(err)
}

// Stuck counts the delegations whose lease ran out that long ago and that nobody has
// taken up since.
func (s *Store) Stuck(ctx context.Context, before time.Time) (int64, error) {
	var n int64
	err := s.r.row(ctx, selectStuck, micros(before)).Scan(&n)
	return n, s.explain(err)
}

const selectStuck = "select count(*) from delegations where holder <> '' and lease_until <= ?"

// selectLive goes along the index of what each agent is doing.
const selectLive = "select state, count(*) from listing where ended_at is null group by to_agent, state"

// Live counts the live delegations by state.
func (s *Store) Live(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	s.upToDate(ctx)
	rows, err := s.r.query(ctx, selectLive)
	_, err = collect(rows, err, func(row scanner) (string, error) {
		var state string
		var n int64
		err := row.Scan(&state, &n)
		counts[state] += n
		return state, err
	})
	return counts, s.explain(err)
}
