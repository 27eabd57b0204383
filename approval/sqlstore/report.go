package sqlstore

import (
	"context"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/store"
)

const (
	reportColumns = "task_id, channel, address, kind, answers, external_id, shown, due_at, attempts, error, dead, sent_at"
	addReport     = "insert into reports (task_id, channel, address, kind, answers, due_at) values (?, ?, ?, ?, ?, ?)"
	reportKeys    = "task_id, channel, address"
	whereOfReport = " where task_id = ? and channel = ? and address = ?"
	// reportsDue is what is open and whose task has gone on since.
	reportsDue = ` from reports r where r.open = 1 and r.dead = 0 and r.due_at <= ? and r.channel = ?
		and r.shown < (select t.last_n from tasks t where t.id = r.task_id) and r.sent_at`
	leaseReports = "update reports set due_at = ?, holder = ? where (" + reportKeys + ") in (select " + reportKeys + "%s" +
		" order by r.due_at limit ?%s) returning " + reportColumns
	updateReport = `update reports set holder = '', external_id = ?, shown = ?, due_at = ?, attempts = ?, error = ?,
		dead = ?, sent_at = ?,
		open = case when ? = 1 and ? >= (select last_n from tasks where id = reports.task_id) then 0 else 1 end`
	selectLiveWork = `select d.to_agent, d.state from delegations d where d.task_id = ? and d.ended_at is null
		order by d.seq`
)

func scanReport(row store.Scanner) (approval.Report, error) {
	var r approval.Report
	err := row.Scan(&r.TaskID, &r.Channel, &r.Address, &r.Kind, &r.Answers, &r.ExternalID, &r.Shown,
		store.Time(&r.DueAt), &r.Attempts, &r.Error, &r.Dead, store.MaybeTime(&r.SentAt))
	return r, err
}

// TellEnds has every task that ends from now on reported to these addresses.
func (s *Store) TellEnds(to []approval.Told) { s.told.Store(&to) }

// Follow adds the report unless there is one of its task and address, due at once.
func (s *Store) Follow(ctx context.Context, r approval.Report) error {
	_, err := s.Exec(ctx, addReport+" on conflict ("+reportKeys+") do nothing",
		r.TaskID, r.Channel, r.Address, r.Kind, r.Answers, store.Micros(s.Now()))
	return s.Advise(err)
}

// Reported is the task that a message at an address is about.
func (s *Store) Reported(ctx context.Context, channel origin.Channel, address, message string) (string, error) {
	return store.ReadOne(ctx, s.Store, store.Scalar[string], `select task_id from reports where channel = ? and address = ? and kind = ?
		and (cast(? as text) = '' or external_id = ? or substr(external_id, 1, cast(? as integer)) = ?) order by task_id desc limit 1`,
		channel, address, approval.LiveReport, message, message, len(message)+1, message+"#")
}

// report opens the reports of a task that ends in this transaction, or is run again.
func (t *Tx) report() error {
	ended := t.Task().EndedAt != nil
	if ended == t.wasEnded {
		return nil
	}
	if !ended {
		_, err := t.Exec("update reports set open = 1 where task_id = ?", t.Task().ID)
		return err
	}
	told := t.s.told.Load()
	if told == nil {
		return nil
	}
	for _, to := range *told {
		_, err := t.Exec(addReport+" on conflict ("+reportKeys+`) do update
			set open = 1, dead = 0, attempts = 0, due_at = excluded.due_at`,
			t.Task().ID, to.Channel, to.Address, approval.EndReport, 0, store.Micros(t.Now()))
		if err != nil {
			return fmt.Errorf("have the end of %s told to %s in %s: %w", t.Task().ID, to.Address, to.Channel, err)
		}
	}
	return nil
}

// DueReports leases reports of a channel whose task has gone on since: those that were sent
// before, or those that were not. Nobody else gets them before until.
func (s *Store) DueReports(
	ctx context.Context, channel origin.Channel, sent bool, now, until time.Time, limit int,
) ([]approval.Report, error) {
	due := reportsDue + " is null"
	if sent {
		due = reportsDue + " is not null"
	}
	if due, err := s.anyDue(ctx, due, store.Micros(now), channel); err != nil || !due {
		return nil, err
	}
	rows, err := s.Change(ctx, fmt.Sprintf(leaseReports, due, s.SkipLocked()),
		store.Micros(until), s.Node(), store.Micros(now), channel, limit)
	found, err := store.Collect(rows, err, scanReport)
	return found, s.Advise(err)
}

// SaveReport records a delivery. With done nothing more is told, unless the task has gone
// on since what r shows. The row is locked first: a change that commits just now is seen by
// the second statement.
func (s *Store) SaveReport(ctx context.Context, r approval.Report, done bool) error {
	err := s.transact(ctx, func(t *Tx) error {
		key := []any{r.TaskID, r.Channel, r.Address}
		if _, err := store.Scalar[int](t.Row("select 1 from reports"+whereOfReport+s.ForUpdate(), key...)); err != nil {
			return fmt.Errorf("report of %s in %s: %w", r.TaskID, r.Channel, err)
		}
		now := []any{r.ExternalID, r.Shown, store.Micros(r.DueAt), r.Attempts, store.Clean(r.Error),
			store.Flag(r.Dead), store.NullMicros(r.SentAt), store.Flag(done), r.Shown}
		_, err := t.Exec(updateReport+whereOfReport, append(now, key...)...)
		return err
	})
	return s.Advise(err)
}

// LiveWork lists what of a task has not ended, oldest first.
func (s *Store) LiveWork(ctx context.Context, taskID string) ([]approval.Work, error) {
	return store.ReadAll(ctx, s.Store, func(row store.Scanner) (w approval.Work, err error) {
		err = row.Scan(&w.Agent, &w.State)
		return w, err
	}, selectLiveWork, taskID)
}
