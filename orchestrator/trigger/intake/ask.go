package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
)

// coming is how many times of a schedule are shown ahead.
const coming = 5

// missed says how many times had passed while nobody looked.
func missed(n int, policy string) string {
	times := "Its time had passed while no server ran"
	if n > 1 {
		times = fmt.Sprintf("%d of its times had passed while no server ran", n)
	}
	if policy == trigger.MissedSkip {
		return times + ", and missed is skip."
	}
	return times + "; it runs once for them."
}

// Statuses says how each trigger stands, in the order of the configuration.
func (in *Intake) Statuses(ctx context.Context) ([]trigger.Status, error) {
	var all []trigger.Status
	for _, t := range *in.triggers.Load() {
		s, err := in.status(ctx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Status says how one trigger stands.
func (in *Intake) Status(ctx context.Context, name string) (trigger.Status, error) {
	t, err := in.known(name)
	if err != nil {
		return trigger.Status{}, err
	}
	return in.status(ctx, t)
}

// names lists the triggers for whoever wrote a wrong one.
func (in *Intake) names() string {
	names := each.Of(*in.triggers.Load(), func(t *trigger.Trigger) string { return t.Name })
	slices.Sort(names)
	return cmp.Or(strings.Join(names, ", "), "none")
}

func (in *Intake) known(name string) (*trigger.Trigger, error) {
	if t, ok := in.find(name); ok {
		return t, nil
	}
	return nil, orchestrator.Errorf(orchestrator.CodeNotFound, "There is no trigger %.80q in the configuration. Known triggers: %s.", name, in.names())
}

func (in *Intake) status(ctx context.Context, t *trigger.Trigger) (trigger.Status, error) {
	now := in.Now()
	s := trigger.Status{Name: t.Name, Kind: t.Kind, Source: t.Source, Agent: t.Agent, Capability: t.Capability, Owner: t.Owner, Repository: t.Repository, Task: t.Task,
		When: t.When, Cron: t.Cron, Overlap: t.Overlap, Missed: t.Missed, Window: t.Window, Next: t.Next(now, coming)}
	if t.Zone != nil {
		s.Zone = t.Zone.String()
	}
	if t.Kind == trigger.Webhook && in.PublicURL != nil {
		s.URL = in.PublicURL() + "/hooks/" + t.Name
	}
	page, err := in.Store.Deliveries(ctx, trigger.Filter{Trigger: t.Name, Limit: 1})
	if err != nil {
		return s, err
	}
	if len(page.Items) > 0 {
		s.Last = &page.Items[0]
	}
	if s.Failures, err = in.Store.Trouble(ctx, t.Name, now.Add(-24*time.Hour)); err != nil {
		return s, err
	}
	if s.Refused, err = in.refused(ctx, t.Name); err != nil {
		return s, err
	}
	s.Problem, err = in.problem(ctx, t)
	return s, err
}

// problem says why a trigger cannot work as configured, "" when it can.
func (in *Intake) problem(ctx context.Context, t *trigger.Trigger) (string, error) {
	who, err := in.requester(ctx, t, trigger.Delivery{})
	if err == nil {
		s := submission(t, trigger.Delivery{}, trigger.Outcome{Text: "x"})
		s.RequesterID, s.Requester, s.DryRun = who.ID, who.Name, true
		_, _, _, err = in.Engine.Submit(ctx, s)
	}
	if code := orchestrator.CodeOf(err); code != "" && code != orchestrator.CodeUnavailable {
		return err.Error(), nil
	}
	return "", err
}

// Deliveries lists what came, newest first and without bodies.
func (in *Intake) Deliveries(ctx context.Context, f trigger.Filter) (trigger.Page, error) {
	return in.Store.Deliveries(ctx, f)
}

func (in *Intake) Delivery(ctx context.Context, id string) (trigger.Delivery, error) {
	d, err := in.Store.Delivery(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return d, orchestrator.Errorf(orchestrator.CodeNotFound, "There is no delivery %.80q. It may be older than what is kept.", id)
	}
	return d, err
}

// Redeliver makes of a delivery what its trigger makes of it today: a delivery of its own
// with a task of its own. Whoever asks for it is who asked for the task.
func (in *Intake) Redeliver(ctx context.Context, id string, by people.User) (trigger.Delivery, error) {
	was, err := in.Delivery(ctx, id)
	if err != nil {
		return was, err
	}
	t, ok := in.find(was.Trigger)
	switch {
	case !ok || t.Kind != was.Kind:
		return was, orchestrator.Errorf(orchestrator.CodeConflict, "The trigger %s is not configured any more, so nothing was started. Add it again, then try again.", was.Trigger)
	case was.State == trigger.Stored:
		return was, orchestrator.Errorf(orchestrator.CodeConflict, "This delivery has not been worked on yet. Wait until it has.")
	case was.Kind == trigger.Webhook && was.Body == nil:
		return was, orchestrator.Errorf(orchestrator.CodeConflict, "What this delivery carried is not kept any more. Have its sender send it again.")
	}
	now := in.Now().UTC()
	d := trigger.Delivery{ID: orchestrator.NewID(trigger.DeliveryPrefix, now), Trigger: t.Name, Kind: t.Kind, Source: was.Source, ExternalID: was.ExternalID, BodyHash: was.BodyHash,
		Event: was.Event, Headers: was.Headers, Body: was.Body, State: trigger.Stored, Of: was.ID, By: by.Name, ByID: by.ID, ReceivedAt: now, DueAt: now.Add(callLease)}
	if d, _, err = in.Store.AddDelivery(ctx, d, 0); err != nil {
		return d, err
	}
	if err := in.record(ctx, by.Name, event.TriggerRedeliveredData{Trigger: t.Name, Delivery: was.ID, As: d.ID}); err != nil {
		return d, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return in.tryNow(ctx, t, d, t.Decide(d)), nil
}

// Try says what a trigger would make of a sample. Nothing is stored, and no signature is
// looked at.
func (in *Intake) Try(ctx context.Context, name string, s trigger.Sample) (trigger.Trial, error) {
	t, err := in.known(name)
	if err != nil {
		return trigger.Trial{}, err
	}
	d := trigger.Delivery{Trigger: t.Name, Kind: t.Kind, Source: t.Source, Event: s.Event, Body: s.Body, ExternalID: "a-sample"}
	if t.Kind == trigger.Schedule {
		d.ExternalID = in.Now().UTC().Format(time.RFC3339)
	}
	o := t.Decide(d)
	trial := trigger.Trial{Fires: o.Fires, Text: o.Text, Key: o.Key, Code: o.Code, Message: o.Message}
	if !o.Fires {
		return trial, nil
	}
	who, err := in.requester(ctx, t, d)
	if err == nil {
		dry := submission(t, d, o)
		dry.RequesterID, dry.Requester, dry.DryRun = who.ID, who.Name, true
		var task orchestrator.Task
		var root orchestrator.Delegation
		task, root, _, err = in.Engine.Submit(ctx, dry)
		trial.Agent, trial.Asks = task.Agent, asksFirst(root)
	}
	if code := orchestrator.CodeOf(err); code != "" && code != orchestrator.CodeUnavailable {
		trial.Fires, trial.Code, trial.Message = false, code, err.Error()
		return trial, nil
	}
	return trial, err
}
