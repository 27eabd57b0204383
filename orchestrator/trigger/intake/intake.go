package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
)

// Store keeps deliveries; store.Store does.
type Store interface {
	AddDelivery(ctx context.Context, d trigger.Delivery, bodyFor time.Duration) (trigger.Delivery, bool, error)
	Delivery(ctx context.Context, id string) (trigger.Delivery, error)
	Deliveries(ctx context.Context, f trigger.Filter) (trigger.Page, error)
	DueDeliveries(ctx context.Context, now, until time.Time, limit int) ([]trigger.Delivery, error)
	EndDelivery(ctx context.Context, d trigger.Delivery, said ...event.Event) (bool, error)
	DelayDelivery(ctx context.Context, d trigger.Delivery) error
	LastStarted(ctx context.Context, name string) (trigger.Delivery, error)
	Trouble(ctx context.Context, name string, since time.Time) (int, error)
	ScheduledUntil(ctx context.Context, name string, now time.Time) (time.Time, error)
	SetScheduled(ctx context.Context, name string, at time.Time, force bool) error
	AddRefusals(ctx context.Context, name string, r trigger.Refusals) error
	RefusedCalls(ctx context.Context, name string) (trigger.Refusals, error)
	ForgetDeliveries(ctx context.Context, before time.Time) (bodies, gone int64, err error)
}

// Engine makes tasks; orchestrator.Engine does.
type Engine interface {
	Submit(ctx context.Context, s orchestrator.Submission) (orchestrator.Task, orchestrator.Delegation, bool, error)
}

// Tasks is what is asked about tasks; the engine's store has it.
type Tasks interface {
	Task(ctx context.Context, id string) (orchestrator.Task, error)
	TaskByKey(ctx context.Context, requesterID, key string) (orchestrator.Task, error)
	Delegation(ctx context.Context, id string) (orchestrator.Delegation, error)
	InTask(ctx context.Context, taskID string, fn func(orchestrator.Tx) error) error
}

// People finds the owners of triggers, and whoever had something delivered again.
type People interface {
	User(ctx context.Context, id string) (people.User, error)
	UserByName(ctx context.Context, name string) (people.User, error)
}

// Options is what an Intake is made of.
type Options struct {
	Store     Store
	Engine    Engine
	Tasks     Tasks
	People    People
	PublicURL func() string // how others reach this server
	Every     time.Duration // between two looks of Run at the clock and the store; 0 is a second
	Now       func() time.Time
	Log       *slog.Logger
	KeepFor   func() time.Duration // what deliveries carried; 0 is for ever, nil is Keep
	// Trace, when set, is told of steps right after they are durable. Tests kill the
	// process there.
	Trace func(point string)
}

// Intake takes deliveries in. Its methods may be called from many goroutines and on many
// nodes at once.
type Intake struct {
	Options
	triggers atomic.Pointer[[]*trigger.Trigger]
	changed  chan struct{} // the configuration was loaded again
	pace     pace
	mu       sync.Mutex
	wrong    map[string]trigger.Refusals // by trigger, not yet in the log
}

func New(o Options, triggers []*trigger.Trigger) *Intake {
	if o.Trace == nil {
		o.Trace = func(string) {}
	}
	o.Every = cmp.Or(o.Every, time.Second)
	in := &Intake{Options: o, wrong: map[string]trigger.Refusals{}, changed: make(chan struct{}, 1)}
	in.triggers.Store(&triggers)
	return in
}

// SetTriggers replaces the configuration.
func (in *Intake) SetTriggers(triggers []*trigger.Trigger) {
	in.triggers.Store(&triggers)
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

func (in *Intake) find(name string) (*trigger.Trigger, bool) {
	for _, t := range *in.triggers.Load() {
		if t.Name == name {
			return t, true
		}
	}
	return nil, false
}

// How long a call waits for the engine, and for how long it has a delivery to itself.
// Usually both take milliseconds; whoever waits for longer is told that the delivery is
// stored, and Run goes on with it.
const (
	patience  = time.Second
	callLease = 10 * time.Second
	pollEvery = 20 * time.Millisecond
)

// How often a delivery is tried again that the engine could not take, and how long
// between, doubling up to the longest: about two hours together.
const (
	maxAttempts  = 20
	firstPause   = time.Second
	longestPause = 10 * time.Minute
)

// work makes the task of a stored delivery, or says why there is none, and records it. An
// error means that it stays stored. o is what the trigger decided.
func (in *Intake) work(ctx context.Context, t *trigger.Trigger, d trigger.Delivery, o trigger.Outcome) (trigger.Delivery, error) {
	if !o.Fires {
		return in.end(ctx, d, stateOf(o.Code), o.Code, o.Message)
	}
	d.Text = o.Text
	who, err := in.requester(ctx, t, d)
	if err != nil {
		return in.failed(ctx, d, err)
	}
	if t.Kind == trigger.Schedule && d.Of == "" {
		if after, waits, err := in.overlaps(ctx, t, d); err != nil || waits {
			return after, err
		}
	}
	s := submission(t, d, o)
	s.RequesterID, s.Requester = who.ID, who.Name
	if o.Key != "" && d.Of == "" {
		if first, err := in.Tasks.TaskByKey(ctx, who.ID, s.Key); err == nil {
			d.TaskID = first.ID
			return in.end(ctx, d, trigger.Started, "", "Its key was used before; this is the first task with it.")
		} else if !errors.Is(err, orchestrator.ErrNotFound) {
			return d, err
		}
	}
	task, root, _, err := in.Engine.Submit(ctx, s)
	if orchestrator.CodeOf(err) == orchestrator.CodeKeyReused { // the text changed since, or another node was quicker
		task, err = in.Tasks.TaskByKey(ctx, who.ID, s.Key)
	}
	if err != nil {
		return in.failed(ctx, d, err)
	}
	in.Trace("delivery submitted")
	d.TaskID = task.ID
	return in.end(ctx, d, trigger.Started, "", asksFirst(root))
}

// asksFirst says that a task of a trigger waits for a person before anybody works on it,
// "" where it does not.
func asksFirst(root orchestrator.Delegation) string {
	if root.State != orchestrator.AwaitingApproval || !root.Work.Asked {
		return ""
	}
	return "It waits for a person: somebody has to say yes before " + root.To + " works on it."
}

// submission is the task that a delivery asks for. Its key is the delivery's own, unless
// the trigger has a template for keys.
func submission(t *trigger.Trigger, d trigger.Delivery, o trigger.Outcome) orchestrator.Submission {
	key := orchestrator.TriggerKey + t.Name + ":" + d.ID
	if o.Key != "" && d.Of == "" {
		key = orchestrator.TriggerKey + t.Name + ":key:" + o.Key
	}
	hops, _ := strconv.Atoi(d.Headers[agent.HopsHeader]) // it was read when the delivery came; without it 0
	return orchestrator.Submission{RemoteHops: hops, Agent: t.Agent, Capability: t.Capability, Text: o.Text, Repository: t.Repository, Ref: t.Ref, Key: key,
		Complexity: t.Complexity, Budget: t.Budget, Handoffs: t.Handoffs, Via: origin.Trigger(origin.Channel(t.Kind), t.Name)}
}

// requester is who counts as having asked: the owner, or who had it delivered again.
func (in *Intake) requester(ctx context.Context, t *trigger.Trigger, d trigger.Delivery) (people.User, error) {
	if d.ByID != "" { // it may be tried again for hours, and they may no more than themselves then
		u, err := in.People.User(ctx, d.ByID)
		if errors.Is(err, orchestrator.ErrNotFound) || err == nil && (u.Disabled || !people.As(u, nil).Has(people.TasksWrite)) {
			return u, orchestrator.Errorf(trigger.CodeOwner, "%s, who had this delivered again, may not start tasks any more. Nothing was started. Have somebody else deliver it again.", d.By)
		}
		return u, err
	}
	u, err := in.People.UserByName(ctx, t.Owner)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return u, orchestrator.Errorf(trigger.CodeOwner, "The trigger %s belongs to %s, and there is no such person, so nothing was started. Add them with gatehouse user add %s, or name another owner.", t.Name, t.Owner, t.Owner)
	case err == nil && u.Disabled:
		return u, orchestrator.Errorf(trigger.CodeOwner, "The trigger %s belongs to %s, who may not sign in any more, so nothing was started. Name another owner.", t.Name, u.Name)
	case err == nil && !people.As(u, nil).Has(people.TasksWrite):
		return u, orchestrator.Errorf(trigger.CodeOwner, "The trigger %s belongs to %s, who may not start tasks: that takes the role operator or admin. Nothing was started. "+
			"Give it back with gatehouse user roles %s --role operator and the roles to be kept, or name another owner.", t.Name, u.Name, u.Name)
	}
	return u, err
}

// notStarted is what the log says of a trigger that starts nothing in its owner's name. That
// is told once of all such deliveries in a row.
func (in *Intake) notStarted(ctx context.Context, d trigger.Delivery, why error) ([]event.Event, error) {
	before, err := in.Store.Deliveries(ctx, trigger.Filter{Trigger: d.Trigger, After: d.ID, Limit: 1})
	if err != nil || len(before.Items) > 0 && before.Items[0].Code == trigger.CodeOwner {
		return nil, err
	}
	said := event.TriggerNotStartedData{Trigger: d.Trigger, Delivery: d.ID, Code: trigger.CodeOwner, Message: why.Error()}
	return []event.Event{event.Of("", "gatehouse", said)}, nil
}

// stateOf is the state of a delivery that does not fire.
func stateOf(code string) trigger.DeliveryState {
	if code == trigger.CodeFiltered || code == trigger.CodePing {
		return trigger.Filtered
	}
	return trigger.Refused
}

// end records what became of a delivery, and what the log says of that.
func (in *Intake) end(ctx context.Context, d trigger.Delivery, state trigger.DeliveryState, code, message string, said ...event.Event) (trigger.Delivery, error) {
	d.State, d.Code, d.Message, d.DoneAt = state, code, message, new(in.Now().UTC())
	mine, err := in.Store.EndDelivery(ctx, d, said...)
	if err != nil {
		return d, err
	}
	if !mine {
		return in.Store.Delivery(ctx, d.ID) // somebody else ended it
	}
	return d, nil
}

// failed records what the engine said. A refusal has a code; everything else may pass.
func (in *Intake) failed(ctx context.Context, d trigger.Delivery, err error) (trigger.Delivery, error) {
	code := orchestrator.CodeOf(err)
	if code == trigger.CodeOwner {
		said, failed := in.notStarted(ctx, d, err)
		if failed != nil {
			return d, failed
		}
		return in.end(ctx, d, trigger.Refused, code, err.Error(), said...)
	}
	if code != "" && code != orchestrator.CodeUnavailable {
		return in.end(ctx, d, trigger.Refused, code, err.Error())
	}
	if d.Attempts >= maxAttempts {
		return in.end(ctx, d, trigger.Failed, orchestrator.CodeUnavailable, fmt.Sprintf("It was given up after %d tries: %v", d.Attempts, err))
	}
	pause := min(firstPause<<min(d.Attempts, 20), longestPause)
	d.Code, d.Message, d.DueAt = orchestrator.CodeUnavailable, strings.TrimRight(err.Error(), ".")+". It is tried again.", in.Now().Add(pause)
	if delay := in.Store.DelayDelivery(context.WithoutCancel(ctx), d); delay != nil {
		return d, errors.Join(err, delay)
	}
	return d, err
}
