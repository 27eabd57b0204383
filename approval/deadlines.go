package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/record/event"
)

// sweepBatch is how many requests on which something is due are read at once.
const sweepBatch = 100

// Sweep expires every request whose stored deadline has come. Expiry is its own
// outcome, never a yes. Nodes may sweep at once: the task's row orders them.
func (g *Gateway) Sweep(ctx context.Context) error {
	for {
		due, err := g.store.Overdue(ctx, g.now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("looking for requests past their deadline: %w", err)
		}
		done := 0
		var failed error
		for _, r := range due {
			if err := g.expireOne(ctx, r); err != nil {
				failed = errors.Join(failed, fmt.Errorf("expiring %s: %w", r.ID, err))
				continue
			}
			done++
		}
		if failed != nil || len(due) < sweepBatch || done == 0 {
			return failed
		}
	}
}

// expireOne expires one request unless somebody was faster.
func (g *Gateway) expireOne(ctx context.Context, r Request) error {
	err := g.inTask(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil || !cur.overdue(tx.Now()) {
			return err
		}
		return expire(ctx, tx, cur)
	})
	return err
}

// expire ends a question on which nobody decided in time, and its delegation.
func expire(ctx context.Context, tx Tx, r *Request) error {
	d, err := tx.Delegation(ctx, r.DelegationID)
	if err != nil {
		return err
	}
	r.end(Expired, tx.Now())
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	said := event.ExpiredData{About: r.about(), Have: len(r.yes()), Need: r.Rule.Need}
	if err := tx.Append(ctx, r.event("gatehouse", said)); err != nil {
		return err
	}
	return r.subject().expire(ctx, tx, r, d)
}

// schedule sets when the next reminder or step of the escalation of r is due. A
// reminder whose time is past is never due again; a step that was not taken is.
func (r *Request) schedule(c Config, now time.Time) {
	r.NextAt = nil
	sooner := func(t time.Time) {
		if r.NextAt == nil || t.Before(*r.NextAt) {
			r.NextAt = &t
		}
	}
	for _, t := range r.reminders(c) {
		if t.After(now) {
			sooner(t)
		}
	}
	if r.Escalated < len(c.Escalate) {
		sooner(r.Revision.At.Add(c.Escalate[r.Escalated].After))
	}
}

// begin schedules a question that is new, or whose revision is.
func (r *Request) begin(c Config, now time.Time) {
	r.Reminded, r.Escalated = 0, 0
	r.schedule(c, now)
}

// reminders are the times of all reminders of r; none without a deadline.
func (r *Request) reminders(c Config) []time.Time {
	if r.ExpiresAt == nil {
		return nil
	}
	return each.Of(c.Remind, func(before time.Duration) time.Time { return r.ExpiresAt.Add(-before) })
}

// Act sends the reminders and takes the steps of escalations that are due. Nodes may
// act at once: the task's row orders them, and who comes second finds nothing due.
func (g *Gateway) Act(ctx context.Context) error {
	if refused, err := g.Behind(ctx); err != nil || refused != nil {
		return err // those who may decide in place of others are told by a node with the rules in force
	}
	for {
		due, err := g.store.DueActs(ctx, g.now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("looking for reminders and escalations: %w", err)
		}
		if len(due) == 0 {
			return nil
		}
		e, err := g.Electorate(ctx)
		if err != nil {
			return err
		}
		c, done := g.Config(), 0
		var failed error
		for _, r := range due {
			err := g.inTask(ctx, r.TaskID, func(tx Tx) error {
				cur, err := tx.Request(ctx, r.ID)
				if err != nil {
					return err
				}
				return act(ctx, tx, c, e, cur)
			})
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("reminding of %s: %w", r.ID, err))
				continue
			}
			done++
		}
		if failed != nil || len(due) < sweepBatch || done == 0 {
			return failed
		}
	}
}

// act does what is due on r: one reminder, however many were missed while the server
// was down or the clock stepped, and all steps of the escalation whose time has come.
// It never ends a request: only the deadline does.
func act(ctx context.Context, tx Tx, c Config, e Electorate, r *Request) error {
	now := tx.Now()
	if r.State != Pending || r.overdue(now) || r.NextAt == nil || r.NextAt.After(now) {
		return nil
	}
	remind := slices.ContainsFunc(r.reminders(c), func(t time.Time) bool { return !t.Before(*r.NextAt) && !t.After(now) })
	to := r.escalate(c, now)
	if remind {
		r.Reminded++
	}
	r.schedule(c, now)
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	if len(to) > 0 {
		if err := escalated(ctx, tx, c, e, r, to); err != nil {
			return err
		}
	}
	if !remind {
		return nil
	}
	if err := notify(ctx, tx, c, e, r, Reminder, nil); err != nil {
		return err
	}
	n := e.Needs(*r)
	return tx.Append(ctx, r.event("gatehouse", event.RemindedData{About: r.about(), Reminder: r.Reminded, Have: n.Have, Need: n.Count,
		Missing: Names(n.Missing), ExpiresAt: r.ExpiresAt.UTC().Format(time.RFC3339)}))
}

// escalate takes the steps whose time has come and returns the groups that they name.
// A rule without groups lets every approver decide already: nothing is widened then.
func (r *Request) escalate(c Config, now time.Time) []string {
	var to []string
	for r.Escalated < len(c.Escalate) && !r.Revision.At.Add(c.Escalate[r.Escalated].After).After(now) {
		for _, group := range c.Escalate[r.Escalated].To {
			if !slices.Contains(to, group) {
				to = append(to, group)
			}
			if len(r.Rule.From) > 0 && !slices.Contains(r.Rule.From, group) {
				r.Rule.From = append(slices.Clone(r.Rule.From), group)
				r.Rule.Widened++
			}
		}
		r.Escalated++
	}
	return to
}

// escalated tells those who know of r, and shows it to those who may decide now, too.
func escalated(ctx context.Context, tx Tx, c Config, e Electorate, r *Request, to []string) error {
	if err := notify(ctx, tx, c, e, r, Escalation, to); err != nil {
		return err
	}
	for _, card := range cardsFor(*r, c.Channels, e.voters(*r)) {
		card.RequestID, card.DueAt = r.ID, tx.Now()
		if err := tx.EnsureCard(ctx, card); err != nil {
			return err
		}
	}
	return tx.Append(ctx, r.event("gatehouse", event.EscalatedData{About: r.about(), Step: r.Escalated, To: to, From: r.Rule.From,
		Have: len(r.yes()), Need: r.Rule.Need}))
}
