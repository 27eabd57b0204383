package store

import (
	"context"
	"time"

	"gatehouse/orchestrator"
)

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
