package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator"
)

// selectClaimable: each half reads one partial index and stops at the limit, so parked
// rows cost nothing. The second one has the rows of dead nodes, and those whose process
// waits. With statistics SQLite would read all of a state, so it is told the index.
// SQLite plans a statement again each time when its limit is a bare parameter. Of a
// paused task only a landing goes on whose intent is stored. Of the landings of one
// repository only the one whose turn it is can be claimed (landings.go).
func selectClaimable(d *dialect) string {
	return `select task_id, id, attempt, state from (
	select * from (select task_id, id, attempt, state, ready_at from delegations` + d.useReady + `
		where holder = '' and state in ('queued', 'checking', 'landing') and ready_at <= ?` + awake + `
		and (state <> 'landing' or id in (` + landingTurns + `)) order by ready_at limit ? + 0) due
	union all
	select * from (select task_id, id, attempt, state, lease_until as ready_at from delegations
		where holder <> '' and lease_until <= ?` + awake + ` order by lease_until limit ? + 0) lost
	) claimable order by ready_at limit ? + 0`
}

// awake leaves out the rows of paused tasks.
const awake = ` and (task_id not in (select id from tasks where paused_at is not null) or state = 'landing' and work like '%"intent":{%')`

// Claimable lists delegations that any node may claim now, longest ready first.
func (s *Store) Claimable(ctx context.Context, _ string, now time.Time, limit int) ([]orchestrator.Ref, error) {
	at := micros(now)
	rows, err := s.r.query(ctx, s.dialect.claimable, at, at, at, limit, at, limit, limit)
	refs, err := collect(rows, err, scanRef)
	return refs, s.explain(err)
}

// selectUnclaimed reads the same index as selectClaimable. What was made to run again says
// so in its work.
func selectUnclaimed(d *dialect) string {
	return `select task_id, id, attempt, state from delegations` + d.useReady + `
		where holder = '' and state in ('queued', 'checking', 'landing') and ready_at <= ? and state = 'queued' and since <= ?
		and (started_at is null or work like '%"anew":true%') and task_id not in (select id from tasks where paused_at is not null)
		order by ready_at limit ? + 0`
}

// Unclaimed lists queued delegations that nobody has taken up since before, longest ready first.
func (s *Store) Unclaimed(ctx context.Context, before time.Time, limit int) ([]orchestrator.Ref, error) {
	rows, err := s.r.query(ctx, selectUnclaimed(s.dialect), micros(before), micros(before), limit)
	refs, err := collect(rows, err, scanRef)
	return refs, s.explain(err)
}

func scanRef(row scanner) (orchestrator.Ref, error) {
	var r orchestrator.Ref
	err := row.Scan(&r.TaskID, &r.DelegationID, &r.Attempt, &r.State)
	return r, err
}

// renewTries is how often Renew looks again at rows that a transaction had locked.
const renewTries = 3

// Renew extends the leases of held in one statement and returns those that node does
// not hold any more at that attempt. A row that a transaction has locked is skipped,
// because waiting for it could deadlock; it still has most of its lease.
func (s *Store) Renew(ctx context.Context, node string, held []orchestrator.Ref, until time.Time) ([]orchestrator.Ref, error) {
	left := held
	for try := 0; len(left) > 0 && try < renewTries; try++ {
		renewed, err := s.renew(ctx, node, left, until)
		if err != nil {
			return nil, s.explain(err)
		}
		left = without(left, renewed)
	}
	for _, r := range held { // whoever reads them next sees the new lease
		s.tasks.drop(r.TaskID)
	}
	if len(left) == 0 {
		return nil, nil
	}
	args := append([]any{node}, ids(left)...)
	rows, err := s.w.query(ctx, "select id, attempt from delegations where holder = ? and id in "+marks(len(left)), args...)
	still, err := collect(rows, err, scanAttempt)
	if err != nil {
		return nil, s.explain(err)
	}
	return without(left, still), nil
}

func (s *Store) renew(ctx context.Context, node string, held []orchestrator.Ref, until time.Time) ([]orchestrator.Ref, error) {
	text := "update delegations set lease_until = ? where holder = ? and id in (select id from delegations where id in " + marks(len(held)) + s.dialect.skip + ") returning id, attempt"
	rows, err := s.w.query(ctx, text, append([]any{micros(until), node}, ids(held)...)...)
	return collect(rows, err, scanAttempt)
}

// Release ends every lease of node, which holds nothing: others, and itself, may
// claim what it had.
func (s *Store) Release(ctx context.Context, node string, now time.Time) error {
	if node == "" {
		return fmt.Errorf("release: the node has no name")
	}
	_, err := s.w.exec(ctx, "update delegations set lease_until = ? where holder = ? and holder <> '' and lease_until > ?", micros(now), node, micros(now))
	s.tasks.clear()
	return s.explain(err)
}

func scanAttempt(row scanner) (orchestrator.Ref, error) {
	var r orchestrator.Ref
	err := row.Scan(&r.DelegationID, &r.Attempt)
	return r, err
}

// without returns the refs that are not in gone, by delegation and attempt.
func without(refs, gone []orchestrator.Ref) []orchestrator.Ref {
	type id struct {
		delegation string
		attempt    int
	}
	drop := make(map[id]bool, len(gone))
	for _, r := range gone {
		drop[id{r.DelegationID, r.Attempt}] = true
	}
	var left []orchestrator.Ref
	for _, r := range refs {
		if !drop[id{r.DelegationID, r.Attempt}] {
			left = append(left, r)
		}
	}
	return left
}

func ids(refs []orchestrator.Ref) []any {
	all := make([]any, len(refs))
	for i, r := range refs {
		all[i] = r.DelegationID
	}
	return all
}

// marks is a list of n question marks in brackets; n is at least 1.
func marks(n int) string { return "(" + strings.Repeat("?, ", n-1) + "?)" }
