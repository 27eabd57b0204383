package intake

import (
	"context"
	"errors"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
)

const (
	tellEvery  = time.Minute
	cleanEvery = time.Hour
	lease      = 30 * time.Second
	batch      = 20
	lastWords  = 2 * time.Second // at shutdown
)

// Keep is for how long the bodies of deliveries are kept, and deliveries without a task,
// where Options.KeepFor does not say.
const Keep = 30 * 24 * time.Hour

// Run takes up what is stored, fires schedules and cleans up, until ctx ends. What fails
// is tried again at the next look.
func (in *Intake) Run(ctx context.Context) error {
	tick := time.NewTicker(in.Every)
	defer tick.Stop()
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer cancel()
		in.tell(last)
	}()
	clock := &clock{in: in}
	var told, cleaned time.Time
	for {
		in.warn(ctx, "looking at schedules", clock.look(ctx))
		in.warn(ctx, "taking up deliveries", in.takeUp(ctx))
		now := in.Now()
		if now.Sub(told) >= tellEvery || now.Before(told) {
			told = now
			in.tell(ctx)
		}
		if now.Sub(cleaned) >= cleanEvery || now.Before(cleaned) {
			cleaned = now
			if keep := in.keep(); keep > 0 {
				_, _, err := in.Store.ForgetDeliveries(ctx, now.Add(-keep))
				in.warn(ctx, "forgetting old deliveries", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-in.changed:
			clock.next = nil
		case <-tick.C:
		}
	}
}

// keep is how long what deliveries carried is kept; 0 is for ever.
func (in *Intake) keep() time.Duration {
	if in.KeepFor == nil {
		return Keep
	}
	return in.KeepFor()
}

func (in *Intake) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		in.Log.Warn(what+" failed; trying again", "err", err)
	}
}

// takeUp works on stored deliveries that are due.
func (in *Intake) takeUp(ctx context.Context) error {
	for ctx.Err() == nil {
		now := in.Now()
		found, err := in.Store.DueDeliveries(ctx, now, now.Add(lease), batch)
		if err != nil {
			return err
		}
		for _, d := range found {
			if t, ok := in.find(d.Trigger); !ok || t.Kind != d.Kind {
				_, err = in.end(ctx, d, trigger.Refused, trigger.CodeGone, "The trigger is not configured any more, so nothing was started.")
			} else {
				_, err = in.work(ctx, t, d, t.Decide(d))
			}
			in.warn(ctx, "making the task of "+d.ID, err)
		}
		if len(found) < batch {
			return nil
		}
	}
	return nil
}

// tell writes the counts of wrong signatures to the log, one event for each trigger.
func (in *Intake) tell(ctx context.Context) {
	in.mu.Lock()
	counts := in.wrong
	in.wrong = map[string]trigger.Refusals{}
	in.mu.Unlock()
	for name, r := range counts {
		if err := in.Store.AddRefusals(ctx, name, r); err != nil {
			in.warn(ctx, "writing an event", err)
			in.count(name, r) // they are told the next time
			continue
		}
		in.Log.Warn("calls of a webhook were refused", "trigger", name, "calls", r.Calls, "last", r.Last, "reason", r.Reason, "address", r.Address)
	}
}

func (in *Intake) record(ctx context.Context, actor string, said event.Payload) error {
	return in.Tasks.InTask(ctx, event.System, func(tx orchestrator.Tx) error {
		return tx.Append(ctx, event.Of("", actor, said))
	})
}

// overlaps reports whether the task before keeps a time from making one: then the time was
// skipped, or it is looked at again.
func (in *Intake) overlaps(ctx context.Context, t *trigger.Trigger, d trigger.Delivery) (trigger.Delivery, bool, error) {
	if t.Overlap == trigger.OverlapAllow {
		return d, false, nil
	}
	last, err := in.Store.LastStarted(ctx, t.Name)
	if err != nil {
		return d, false, nilIfGone(err)
	}
	task, err := in.Tasks.Task(ctx, last.TaskID)
	if err != nil || task.EndedAt != nil {
		return d, false, nilIfGone(err)
	}
	if t.Overlap == trigger.OverlapSkip {
		d, err = in.end(ctx, d, trigger.Skipped, trigger.CodeOverlap, "The task before, "+task.ID+", still ran, and overlap is skip.")
		return d, true, err
	}
	waiting, err := in.Store.Deliveries(ctx, trigger.Filter{Trigger: t.Name, States: []trigger.DeliveryState{trigger.Stored}, Limit: 200})
	if err != nil {
		return d, false, err
	}
	for _, w := range waiting.Items {
		if w.ID < d.ID {
			d, err = in.end(ctx, d, trigger.Skipped, trigger.CodeOverlap, "One time is waiting for the task before already, and that is enough.")
			return d, true, err
		}
	}
	// Waiting is no failed attempt.
	d.Attempts, d.Code, d.Message, d.DueAt = 0, trigger.CodeOverlap, "It waits for the task before, "+task.ID+".", in.Now().Add(queueEvery)
	return d, true, in.Store.DelayDelivery(ctx, d)
}

// queueEvery is how often a time that waits for the task before it looks again.
const queueEvery = 2 * time.Second

// clock fires schedules. It belongs to one goroutine.
type clock struct {
	in   *Intake
	last time.Time
	next map[string]time.Time // when a schedule is looked at again; unknown is now
}

// grace is how late a time may be and still be on time: a restart is no reason to miss one.
const grace = time.Minute

// look fires every schedule whose time has come.
func (c *clock) look(ctx context.Context) error {
	now := c.in.Now().UTC()
	if now.Before(c.last) { // it was set back: what was to come may be far away now
		c.next = nil
	}
	if c.next == nil {
		c.next = map[string]time.Time{}
	}
	c.last = now
	var all error
	for _, t := range *c.in.triggers.Load() {
		if next, known := c.next[t.Name]; t.Kind != trigger.Schedule || known && now.Before(next) {
			continue
		}
		if err := c.fire(ctx, t, now); err != nil {
			all = errors.Join(all, err)
			continue
		}
		delete(c.next, t.Name)
		if coming := t.Next(now, 1); len(coming) == 1 {
			c.next[t.Name] = coming[0]
		}
	}
	return all
}

// fire stores the latest time of a schedule that has passed, once for all nodes.
func (c *clock) fire(ctx context.Context, t *trigger.Trigger, now time.Time) error {
	since, err := c.in.Store.ScheduledUntil(ctx, t.Name, now)
	if err != nil {
		return err
	}
	if since.Sub(now) > time.Hour { // the clock went wrong once, far ahead
		return c.in.Store.SetScheduled(ctx, t.Name, now, true)
	}
	latest, passed := t.Due(since, now)
	if passed == 0 {
		return nil
	}
	latest = latest.UTC()
	d := trigger.Delivery{ID: orchestrator.NewID(trigger.DeliveryPrefix, now), Trigger: t.Name, Kind: trigger.Schedule, ExternalID: latest.Format(time.RFC3339),
		Headers: map[string]string{}, State: trigger.Stored, ReceivedAt: now, DueAt: now}
	if late := now.Sub(latest); late > grace && t.Missed == trigger.MissedSkip {
		d.State, d.Code, d.Message, d.DoneAt = trigger.Skipped, trigger.CodeMissed, missed(passed, t.Missed), &now
	} else if late > grace || passed > 1 {
		d.Message = missed(passed, trigger.MissedRun)
	}
	if _, _, err := c.in.Store.AddDelivery(ctx, d, 0); err != nil {
		return err
	}
	c.in.Trace("time stored")
	return c.in.Store.SetScheduled(ctx, t.Name, latest, false)
}
