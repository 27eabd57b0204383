package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/trigger"
)

// Receipt is what a call is told.
type Receipt struct {
	Delivery trigger.Delivery
	Fresh    bool                     // it came for the first time
	Root     *orchestrator.Delegation // the root of its task; nil where there is none, or none yet
}

// Hook is one configured webhook.
type Hook struct {
	in   *Intake
	t    *trigger.Trigger
	from string
}

// Hook returns the webhook of that name, if the headers look like a delivery of its
// source. What does not is counted, with the address that it came from, and costs nothing
// more.
func (in *Intake) Hook(name, from string, h http.Header) (Hook, error) {
	t, ok := in.find(name)
	if !ok || t.Kind != trigger.Webhook {
		return Hook{}, trigger.ErrSignature
	}
	if !t.Knocks(h) {
		in.count(name, trigger.Refusals{Calls: 1, Last: in.Now().UTC(), Reason: trigger.Unsigned, Address: from})
		return Hook{}, trigger.ErrSignature
	}
	return Hook{in, t, from}, nil
}

// Receive takes a delivery: it finds out who sent it, stores it, and makes its task. The
// error is trigger.ErrSignature for a stranger, and a *TooMany for a call over the limit; a delivery that was refused is no error.
func (k Hook) Receive(ctx context.Context, h http.Header, body []byte) (Receipt, error) {
	in, t, now := k.in, k.t, k.in.Now().UTC()
	call, err := t.Verify(h, body, now)
	if err != nil {
		in.count(t.Name, trigger.Refusals{Calls: 1, Last: now, Reason: trigger.WrongSignature, Address: k.from})
		return Receipt{}, err
	}
	if over := in.pace.take(t, now); over != nil {
		in.count(t.Name, trigger.Refusals{Calls: 1, Last: now, Reason: trigger.OverRate, Address: k.from})
		return Receipt{}, over
	}
	body = unwrap(t, h, body)
	d := trigger.Delivery{ID: orchestrator.NewID(trigger.DeliveryPrefix, now), Trigger: t.Name, Kind: t.Kind, Source: t.Source, ExternalID: call.ExternalID,
		BodyHash: trigger.Hash(body), Event: call.Event, Headers: call.Headers, Body: body, State: trigger.Stored, ReceivedAt: now, DueAt: now.Add(callLease)}
	// An agent elsewhere may call our webhook with what it was called with: the way through
	// other systems counts here as at every other door.
	hops, err := agent.Hops(h.Values(agent.HopsHeader))
	if err != nil {
		return Receipt{}, orchestrator.Errorf(orchestrator.CodeBadRequest, "%w", err)
	}
	if hops > 0 {
		d.Headers = maps.Clone(d.Headers)
		if d.Headers == nil {
			d.Headers = map[string]string{}
		}
		d.Headers[agent.HopsHeader] = strconv.Itoa(hops)
	}
	bodyFor := t.Window
	if call.Signed {
		bodyFor = 0
	}
	// What does not fire is stored as that, in one go.
	o := t.Decide(d)
	if !o.Fires {
		d.State, d.Code, d.Message, d.DoneAt = stateOf(o.Code), o.Code, o.Message, &now
	}
	d, fresh, err := in.Store.AddDelivery(ctx, d, bodyFor)
	if err != nil {
		return Receipt{}, err
	}
	in.Trace("delivery stored")
	// Whoever hangs up leaves a delivery that is stored: it goes on without them.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	switch {
	case d.State != trigger.Stored:
	case fresh:
		d = in.tryNow(ctx, t, d, o)
	default:
		d = in.await(ctx, d)
	}
	return in.receipt(ctx, d, fresh)
}

// tryNow makes the task at once; where that does not work, Run does it later.
func (in *Intake) tryNow(ctx context.Context, t *trigger.Trigger, d trigger.Delivery, o trigger.Outcome) trigger.Delivery {
	done, err := in.work(ctx, t, d, o)
	if err != nil {
		in.Log.Warn("a delivery is stored and has no task yet", "delivery", d.ID, "trigger", t.Name, "err", err)
		return d
	}
	return done
}

// await waits for what another call makes of the same delivery.
func (in *Intake) await(ctx context.Context, d trigger.Delivery) trigger.Delivery {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for d.State == trigger.Stored {
		select {
		case <-ctx.Done():
			return d
		case <-tick.C:
		}
		if now, err := in.Store.Delivery(ctx, d.ID); err == nil {
			d = now
		}
	}
	return d
}

// receipt adds the root of the task as it is now.
func (in *Intake) receipt(ctx context.Context, d trigger.Delivery, fresh bool) (Receipt, error) {
	r := Receipt{Delivery: d, Fresh: fresh}
	if d.TaskID == "" {
		return r, nil
	}
	task, err := in.Tasks.Task(ctx, d.TaskID)
	if err != nil {
		return r, nilIfGone(err)
	}
	root, err := in.Tasks.Delegation(ctx, task.RootID)
	if err != nil {
		return r, nilIfGone(err)
	}
	r.Root = &root
	return r, nil
}

// nilIfGone: a task that retention has removed is no error.
func nilIfGone(err error) error {
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	return err
}

// unwrap is the JSON of a delivery: GitHub sends it as a form unless a hook says
// otherwise. What is signed is the form.
func unwrap(t *trigger.Trigger, h http.Header, body []byte) []byte {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if t.Source != trigger.GitHub || err != nil || kind != "application/x-www-form-urlencoded" {
		return body
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return body // which is no JSON, and is refused as that
	}
	return []byte(form.Get("payload"))
}

// count notes calls that were refused. There are only as many names as triggers.
func (in *Intake) count(name string, r trigger.Refusals) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wrong[name] = in.wrong[name].And(r)
}

// refused is what was refused of a trigger's calls: on all nodes up to a minute ago, on
// this one up to now.
func (in *Intake) refused(ctx context.Context, name string) (trigger.Refusals, error) {
	in.mu.Lock()
	fresh := in.wrong[name]
	in.mu.Unlock()
	stored, err := in.Store.RefusedCalls(ctx, name)
	return stored.And(fresh), err
}

// TooMany is the error of a signed call over the limit of its trigger: nothing of it was
// kept, and whoever sent it may send it again after Wait.
type TooMany struct {
	Limit int // calls a minute
	Wait  time.Duration
}

func (t *TooMany) Error() string {
	return fmt.Sprintf("This webhook takes %d calls a minute, and these were more. Send it again in %d s.", t.Limit, t.Seconds())
}

// Seconds is Wait in whole seconds, for Retry-After: at least 1.
func (t *TooMany) Seconds() int { return int(max(t.Wait+time.Second-1, time.Second) / time.Second) }

// pace holds each webhook to its calls a minute, on this node. A call counts once it has
// shown that it is signed, so that strangers use up nothing. It is safe for concurrent use.
type pace struct {
	mu  sync.Mutex
	per map[string]*rate.Limiter // by trigger
}

// take counts a call, or says that it is one too many.
func (p *pace) take(t *trigger.Trigger, now time.Time) *TooMany {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.per[t.Name]
	if l == nil || l.Burst() != t.Rate { // configured anew
		if p.per == nil {
			p.per = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(float64(t.Rate)/60), t.Rate)
		p.per[t.Name] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	return &TooMany{Limit: t.Rate, Wait: wait}
}
