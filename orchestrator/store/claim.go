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
// repository only the one whose turn it is can be claimed (landingTurns).
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
	// Many rows are locked at once, so the database may undo it for the sake of a step.
	err := s.transact(ctx, func(t *Tx) error {
		_, err := t.q.exec(ctx, "update delegations set lease_until = ? where holder = ? and holder <> '' and lease_until > ?", micros(now), node, micros(now))
		return err
	})
	s.tasks.clear()
	return err
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

// Node is a gatehouse process that works on this database.
type Node struct {
	Name    string
	URL     string
	Version string
	Seen    time.Time
}

// Lease gives the named lease to holder for ttl, or extends it, unless somebody else
// has it. It reports whether holder has it now.
func (s *Store) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	now := s.now()
	n, err := changed(s.w.exec(ctx, `insert into leases (name, holder, until) values (?, ?, ?)
		on conflict (name) do update set holder = excluded.holder, until = excluded.until
		where leases.holder = excluded.holder or leases.until <= ?`, name, holder, micros(now.Add(ttl)), micros(now)))
	return n == 1, s.explain(err)
}

// Unlease gives the lease up, if holder has it.
func (s *Store) Unlease(ctx context.Context, name, holder string) error {
	_, err := s.w.exec(ctx, "delete from leases where name = ? and holder = ?", name, holder)
	return s.explain(err)
}

// SaveNode records that a node lives; Seen is set to now.
func (s *Store) SaveNode(ctx context.Context, n Node) error {
	at, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	_, err = s.w.exec(ctx, `insert into nodes (name, url, version, seen, alive_at, ranges) values (?, ?, ?, ?, ?, 1)
		on conflict (name) do update set url = excluded.url, version = excluded.version, seen = excluded.seen, alive_at = excluded.alive_at, ranges = 1`, n.Name, n.URL, n.Version, micros(s.now()), micros(at))
	return s.explain(err)
}

// Nodes returns the nodes that were seen since then, by name.
func (s *Store) Nodes(ctx context.Context, since time.Time) ([]Node, error) {
	rows, err := s.r.query(ctx, "select name, url, version, seen from nodes where seen >= ? order by name", micros(since))
	found, err := collect(rows, err, func(row scanner) (Node, error) {
		var n Node
		var seen int64
		err := row.Scan(&n.Name, &n.URL, &n.Version, &seen)
		n.Seen = fromMicros(seen)
		return n, err
	})
	return found, s.explain(err)
}

// DropNode forgets a node that ended, or those that have not been seen since then.
func (s *Store) DropNode(ctx context.Context, name string, before time.Time) error {
	_, err := s.w.exec(ctx, "delete from nodes where name = ? or seen < ?", name, micros(before))
	return s.explain(err)
}

// landingTurns are the landings whose turn it is: of each repository the one that is due
// longest, and none while one of it is under way on some node. Those that wait hold no
// worker, and no two nodes make each other plan and check anew. Two nodes that look at the
// same moment may still take two: the push itself has the old value of the ref as its lease.
const landingTurns = `select id from (
	select id, row_number() over (partition by repository order by ready_at, id) as place from delegations
	where holder = '' and state = 'landing' and ready_at <= ?` + awake + `
	and repository not in (select repository from delegations where state = 'landing' and holder <> '' and lease_until > ?)) turns where place = 1`

// selectQueues counts the approved changes of each repository that have not landed yet.
const selectQueues = `select repository, count(*), sum(case when work like '%"problem":"%' then 1 else 0 end), min(since)
	from delegations where state = 'landing' group by repository order by repository`

// selectPaceOf has when the newest changes of a repository were approved, and when they had landed.
const selectPaceOf = `select r.decided_at, d.ended_at from requests r join delegations d on d.id = r.delegation_id
	where r.repository = ? and r.state in ('landed', 'reverted') and r.decided_at is not null and d.ended_at is not null order by r.id desc limit ? + 0`

// LandingQueues lists the repositories in which approved changes wait to land, by name, with
// the pace at which the last ones did.
func (s *Store) LandingQueues(ctx context.Context) ([]orchestrator.LandingQueue, error) {
	rows, err := s.r.query(ctx, selectQueues)
	queues, err := collect(rows, err, func(row scanner) (orchestrator.LandingQueue, error) {
		var q orchestrator.LandingQueue
		var since int64
		err := row.Scan(&q.Repository, &q.Waiting, &q.HeldUp, &since)
		q.Since = fromMicros(since)
		return q, err
	})
	if err != nil {
		return nil, s.explain(err)
	}
	for i := range queues {
		rows, err := s.r.query(ctx, selectPaceOf, queues[i].Repository, orchestrator.PaceOf+1)
		done, err := collect(rows, err, func(row scanner) ([2]time.Time, error) {
			var yes, landed int64
			err := row.Scan(&yes, &landed)
			return [2]time.Time{fromMicros(yes), fromMicros(landed)}, err
		})
		if err != nil {
			return nil, s.explain(err)
		}
		queues[i].Landed, queues[i].Pace = orchestrator.LandingPace(done)
	}
	return queues, nil
}

// underWay is what lives and was made by then, by the clock of Clock. Where one process
// makes all delegations that is when they say, as with those of before the column.
const underWay = " ended_at is null and case when made_at = 0 then created_at else made_at end <= ?"

const selectUnderWayIn = selectDelegation + " where task_id = ? and" + underWay + " order by seq"

// UnderWay counts by task the delegations of an agent, or of all, that live and were made
// by then.
func (s *Store) UnderWay(ctx context.Context, agent string, until time.Time) (map[string]int, error) {
	text, args := "select task_id, count(*) from delegations where"+underWay, []any{micros(until)}
	if agent != "" {
		text, args = text+" and to_agent = ?", append(args, agent)
	}
	type live struct {
		task string
		n    int
	}
	rows, err := s.r.query(ctx, text+" group by task_id", args...)
	all, err := collect(rows, err, func(row scanner) (l live, err error) {
		err = row.Scan(&l.task, &l.n)
		return l, err
	})
	found := map[string]int{}
	for _, l := range all {
		found[l.task] = l.n
	}
	return found, s.explain(err)
}
