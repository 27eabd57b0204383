package insight

import (
	"cmp"
	"math"
	"strings"
	"time"

	"gatehouse/orchestrator/record/event"
)

// Subject is what the log does not say of a delegation.
type Subject struct {
	Agent      string
	Repository string
	CreatedAt  time.Time
	Hop        bool // not the root
}

// Open is what a live delegation spends its time on.
type Open struct {
	Kind  Measure // ForSlot, ForChildren or ForPeople; "" while it works
	Since time.Time
	Taken bool // a worker has acknowledged it at least once
}

// Fold adds events up, in the order of their task. Open carries what is under way from one
// batch to the next; who is done with a batch keeps it.
type Fold struct {
	Sums     Sums
	Open     map[string]Open // by delegation
	Subjects map[string]Subject
}

// NewFold begins with nothing counted.
func NewFold() *Fold {
	return &Fold{Sums: Sums{}, Open: map[string]Open{}, Subjects: map[string]Subject{}}
}

// Types are the events that Add counts; all others leave a Fold as it is.
func Types() []event.Type {
	return []event.Type{event.TaskCreated, event.Queued, event.Acknowledged, event.Delegated, event.DelegationRefused, event.Waiting, event.Resumed,
		event.Completed, event.Failed, event.Cancelled, event.MessageCompleted, event.UsageRecorded, event.Requested, event.Decided,
		event.ChangesRequested, event.Expired, event.Stale, event.WithdrawnRight, event.Denied, event.BreakerOpened, event.BreakerClosed}
}

func (f *Fold) Add(e event.Event) {
	who := f.Subjects[e.DelegationID]
	who.Agent = cmp.Or(who.Agent, e.Actor)
	k := Key{Day: Day(e.At), Agent: who.Agent, Repository: who.Repository}
	switch e.Type {
	case event.TaskCreated:
		f.count(k, Tasks, "")
	case event.Delegated:
		// The hop belongs to whom it went; a name of the log, not of the model.
		k.Agent = Label(event.Read[event.DelegatedData](e).To)
		f.count(k, Handoffs, "")
	case event.DelegationRefused:
		f.count(k, Refusals, Label(event.Read[event.DelegationRefusedData](e).Code))
	case event.Denied:
		f.count(k, DeniedCalls, Label(event.Read[event.DeniedData](e).Rule))
	case event.MessageCompleted:
		call := event.Read[event.MessageCompletedData](e)
		k.Model, k.Measure = Label(call.Model), ModelCalls
		f.Sums.Add(k, 1, whole(float64(call.TookMS))*1000)
	case event.UsageRecorded:
		f.usage(k, event.Read[event.UsageRecordedData](e))
	case event.BreakerOpened:
		f.count(k, Opened, "")
	case event.BreakerClosed:
		f.count(k, Closed, "")
	default:
		f.life(k, e, who)
	}
}

func (f *Fold) count(k Key, m Measure, code string) {
	k.Measure, k.Code = m, code
	f.Sums.Add(k, 1, 0)
}

func (f *Fold) usage(k Key, data event.UsageRecordedData) {
	k.Model = Label(data.Model.V)
	add := func(m Measure, n, total int64) {
		k.Measure = m
		f.Sums.Add(k, n, total)
	}
	add(InputTokens, 0, whole(float64(data.InputTokens)))
	add(OutputTokens, 0, whole(float64(data.OutputTokens)))
	if data.USD == nil || *data.USD < 0 {
		add(Unpriced, 1, 0)
		return
	}
	add(Money, 1, whole(*data.USD*1e6))
}

// life follows a delegation from state to state.
func (f *Fold) life(k Key, e event.Event, who Subject) {
	id := e.DelegationID
	switch e.Type {
	case event.Queued, event.Resumed:
		f.enter(k, e, ForSlot)
	case event.Acknowledged:
		open := f.Open[id]
		f.count(k, Runs, "")
		if !open.Taken && who.Hop {
			f.took(k, Accepted, e.At.Sub(who.CreatedAt))
		}
		open.Taken = true
		f.Open[id] = open
		f.enter(k, e, "")
	case event.Waiting:
		f.enter(k, e, ForChildren)
	case event.Requested:
		f.count(k, Asked, "")
		f.enter(k, e, ForPeople)
	case event.WithdrawnRight:
		f.enter(k, e, ForPeople)
	case event.Decided, event.ChangesRequested, event.Stale, event.Expired:
		f.decided(k, e)
	case event.Completed, event.Failed, event.Cancelled:
		f.enter(k, e, "")
		delete(f.Open, id)
		data := event.EndOf(e)
		state := Label(data.State)
		if data.State == "" {
			state = strings.TrimPrefix(string(e.Type), "delegation.")
		}
		f.count(k, Ended, state)
		if data.Code.V != "" && e.Type == event.Failed && state != "rejected" { // a no is no failure
			f.count(k, Failures, Label(data.Code.V))
		}
		if !who.CreatedAt.IsZero() {
			f.took(k, map[bool]Measure{true: Done, false: Lasted}[who.Hop], e.At.Sub(who.CreatedAt))
		}
	}
}

// decided counts a verdict, and ends the waiting for people once the request is decided.
func (f *Fold) decided(k Key, e event.Event) {
	data, _ := event.VerdictOf(e)
	if channel := Label(string(data.Channel)); data.Verdict != "" && channel != "" {
		f.count(k, Verdicts, VerdictCode(channel, Label(data.Verdict)))
	} else if e.Type == event.Expired {
		f.count(k, Verdicts, VerdictCode("", "expired"))
	}
	// A yes of which more are needed leaves the request pending.
	if open := f.Open[e.DelegationID]; open.Kind == ForPeople && data.State != "pending" {
		k.Code = Label(string(data.Channel))
		f.took(k, Decided, e.At.Sub(open.Since))
		k.Code = ""
		f.enter(k, e, "")
	}
}

// enter ends what the delegation waited for and begins the next.
func (f *Fold) enter(k Key, e event.Event, kind Measure) {
	open := f.Open[e.DelegationID]
	if open.Kind != "" {
		k.Measure = open.Kind
		f.Sums.Add(k, 1, max(0, e.At.Sub(open.Since).Microseconds()))
	}
	open.Kind, open.Since = kind, e.At
	f.Open[e.DelegationID] = open
}

func (f *Fold) took(k Key, m Measure, d time.Duration) {
	d = max(0, d)
	k.Measure, k.Bucket = m, BucketOf(d)
	f.Sums.Add(k, 1, d.Microseconds())
}

// whole is a number of the log as an integer; what is none, or negative, is 0.
func whole(v float64) int64 {
	if math.IsNaN(v) || v < 0 || v > 1<<53 {
		return 0
	}
	return int64(math.Round(v))
}

// maxLabel is how long a code or a model's name may be that is counted under its own name.
const maxLabel = 80

// Label is a name fit to count under; what an agent or a provider made up to be long or
// unprintable is counted as "other".
func Label(s string) string {
	if len(s) > maxLabel || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "other"
	}
	return s
}
