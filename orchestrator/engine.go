package orchestrator

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
)

// Gate puts a checked tree before people; approval.Gateway is one. Ask stores the
// request and parks the delegation in one transaction; asked again with the same
// digest it changes nothing.
type Gate interface {
	Ask(ctx context.Context, d Delegation, p Proposal) error
	// Handovers says before which hand-overs people are asked; first is set where some
	// agent wants that. nil: before none.
	Handovers(ctx context.Context, first bool) (Handovers, error)
	// Asks says what holds for calls of tools, and for questions, as that stands now. Without
	// people nobody can be asked with it.
	Asks(ctx context.Context, people bool) (Asks, error)
	// Landings says whose yes counts at this moment.
	Landings(ctx context.Context) (Landings, error)
}

// Asks says what holds for calls of tools and for questions, as that stands at one moment.
// The gate makes one before the transaction in which it is used.
type Asks interface {
	// Rule says what holds for a call that d wants to make; first is set where a person is
	// asked in any case. It only computes.
	Rule(now time.Time, t *Task, d *Delegation, a agent.Action, first bool) ActionRule
	// Use takes a grant that covers the call, and says whose it is; "" where none does. again is
	// set where the call has taken one before: that it is made is one use.
	Use(ctx context.Context, tx Tx, d *Delegation, a agent.Action, again bool) (by string, err error)
	// Stand asks people again where their yes to the call of this request does not count any
	// more, by RecallAsk.
	Stand(ctx context.Context, tx Tx, d *Delegation, requestID string) error
	// Put stores the request with this id in the transaction that makes d wait for it.
	Put(ctx context.Context, tx Tx, d *Delegation, id string, a agent.Ask, first bool) error
}

// ActionRule is what holds for one call of a tool.
type ActionRule struct {
	Name string // of the rule that matched, "" for none
	Asks bool   // people are asked
	Deny bool
}

// Checker runs one of a repository's checks in dir, confined and without secrets, with
// build caches that no agent but the authors of what it checks had a hand in.
// It reports what it was confined by; an error means that the check could not run.
type Checker interface {
	Check(ctx context.Context, dir, command string, authors []string) (Check, error)
}

// Options is what an Engine is made of.
type Options struct {
	Node    string // name of this node, its own as long as its data folder is
	Store   Store
	Hub     *event.Hub
	Gate    Gate
	Kinds   map[agent.Kind]agent.Runner
	Checker Checker
	Mirrors *patch.Mirrors
	// Context is the shared context with an agent as the one who reads and writes.
	Context func(actor string) sharedctx.Store
	Data    string        // folder for checkouts
	URL     func() string // this node's address, without /api/v1
	Now     func() time.Time
	Log     *slog.Logger
	// Backoff is how long an attempt that could not go on waits for the next, doubled with
	// each loss in a row up to 64 times. 0 is a second.
	Backoff time.Duration
	// Trace, when set, is told of steps right after they are durable ("claimed",
	// "intent committed", …). Tests kill the process there.
	Trace func(point string)
}

// Engine moves delegations. Its methods may be called from many goroutines and on
// many nodes at once; Run works on what is due until its context ends.
type Engine struct {
	Options
	config       atomic.Pointer[Config]
	slots        *slots
	mu           sync.Mutex
	runs         map[string]*run // by delegation: what this node works on
	shift        *shift          // nil while Run takes no work
	wake         chan struct{}
	began        time.Time // Run
	landingTurns landingTurns
	// runners are the goroutines that agents run in; see supervise.
	runners sync.WaitGroup
	stuck   atomic.Int64
}

func New(o Options, c Config) *Engine {
	if o.Trace == nil {
		o.Trace = func(string) {}
	}
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	e := &Engine{Options: o, slots: newSlots(c.Settings.Workers), runs: map[string]*run{}, wake: make(chan struct{}, 1)}
	e.config.Store(&c)
	return e
}

// Config is the configuration in force.
func (e *Engine) Config() *Config { return e.config.Load() }

// SetConfig replaces the configuration; runs under way keep what they started with.
func (e *Engine) SetConfig(c Config) {
	e.config.Store(&c)
	e.slots.resize(c.Settings.Workers)
	e.look()
}

// look makes the dispatcher look for work soon.
func (e *Engine) look() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// pollEvery is the safety net under the notices.
const pollEvery = time.Second

// Run claims and works until ctx ends, and returns when everything that it started
// is gone. What was under way then is given back.
func (e *Engine) Run(ctx context.Context) error {
	e.began = e.Now()
	if err := e.Store.Release(ctx, e.Node, e.Now()); err != nil {
		return err
	}
	if err := e.clearRuns(ctx); err != nil {
		return err
	}
	sub := e.Options.Hub.Watch("", 1024)
	defer sub.Close()
	var wg sync.WaitGroup
	wg.Go(func() { e.renewLeases(ctx) })
	wg.Go(func() { e.giveUpOverdue(ctx) })
	wg.Go(func() { e.watch(ctx, sub, &wg) })
	e.openShift(ctx, &wg)
	e.dispatch(ctx, &wg)
	e.closeShift()
	wg.Wait()
	e.lastWait()
	return nil
}

// dispatch starts a worker for everything claimable while there are slots.
func (e *Engine) dispatch(ctx context.Context, wg *sync.WaitGroup) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		more := e.dispatchOnce(ctx, wg)
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-e.slots.freed:
		case <-tick.C:
		}
	}
}

// dispatchOnce hands what is claimable to workers and reports whether there may be
// more that a free slot could take.
func (e *Engine) dispatchOnce(ctx context.Context, wg *sync.WaitGroup) bool {
	free := e.slots.available()
	if free == 0 {
		return false
	}
	// Rows that a worker of this node is just about to claim are listed too; they are
	// skipped below, so ask for more than there are slots.
	limit := 2*free + e.underway()
	refs, err := e.Store.Claimable(ctx, e.Node, e.Now(), limit)
	if err != nil {
		if ctx.Err() == nil {
			e.Log.Error("looking for work failed; trying again", "err", err)
		}
		return false
	}
	started := 0
	for _, ref := range refs {
		r := e.begin(ctx, ref)
		if r == nil {
			continue
		}
		if !e.slots.try() {
			e.forget(r)
			return false
		}
		started++
		e.start(r, wg)
	}
	if len(refs) < limit {
		e.slots.caughtUp()
	}
	return started > 0 && len(refs) >= 2*free
}

// start works on r in a goroutine of its own. A slot has been taken for it.
func (e *Engine) start(r *run, wg *sync.WaitGroup) {
	r.slot = true
	wg.Go(func() {
		defer e.forget(r)
		defer r.leaveSlot()
		defer r.cancel(nil)
		e.work(r)
	})
}

// startNow works on a delegation that this node has just queued, without asking the
// store for what is due. Where there is no slot, or somebody is faster, the dispatcher
// finds what is left.
func (e *Engine) startNow(ctx context.Context, ref Ref, wg *sync.WaitGroup) {
	if ctx.Err() != nil || e.slots.available() == 0 {
		return
	}
	r := e.begin(ctx, ref)
	if r == nil {
		return // its run here is about to end, and looks for it then
	}
	if !e.slots.try() {
		e.forget(r)
		return
	}
	e.start(r, wg)
}

// watch wakes the dispatcher and the runs of this node when something happened.
func (e *Engine) watch(ctx context.Context, sub *event.Subscription, wg *sync.WaitGroup) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-sub.C:
			e.noticed(ctx, n, wg)
		case <-sub.Lagged():
			e.look()
			e.pokeAll(ctx)
		}
	}
}

// noticed reacts to one notice. It hardly reads anything for events of this node, because one
// goroutine reacts for all tasks; a notice of another node carries no events.
func (e *Engine) noticed(ctx context.Context, n event.Notice, wg *sync.WaitGroup) {
	if len(n.Events) == 0 {
		e.look()
		e.poke(ctx, n.TaskID)
		return
	}
	ended := map[string]bool{}
	begun := begun(n.Events)
	for _, ev := range n.Events {
		switch ev.Type {
		case event.Queued:
			if begun[ev.DelegationID] {
				continue
			}
			e.startNow(ctx, Ref{TaskID: n.TaskID, DelegationID: ev.DelegationID}, wg)
		case event.Decided, event.Stale, event.Unpaused:
			e.look()
		case event.Resumed:
			if r := e.holding(ev.DelegationID); r != nil {
				r.resumed() // its process lives and goes on by itself
			} else if !begun[ev.DelegationID] {
				e.startNow(ctx, Ref{TaskID: n.TaskID, DelegationID: ev.DelegationID}, wg)
			}
		case event.MessageSent:
			if r := e.holding(ev.DelegationID); r != nil {
				r.wake()
			}
		case event.Failed, event.Cancelled:
			e.recheck(ctx, ev.DelegationID)
			ended[ev.DelegationID] = true
		case event.Completed:
			ended[ev.DelegationID] = true
		}
	}
	if len(ended) > 0 {
		for _, r := range e.runsOf(n.TaskID) {
			r.hear(ended)
		}
	}
}

// begun are the delegations that were claimed in the transaction of these events.
func begun(events []event.Event) map[string]bool {
	var ids map[string]bool
	for _, ev := range events {
		if ev.Type == event.Acknowledged {
			if ids == nil {
				ids = map[string]bool{}
			}
			ids[ev.DelegationID] = true
		}
	}
	return ids
}

// Hub is where watchers of this node subscribe.
func (e *Engine) Hub() *event.Hub { return e.Options.Hub }

// Slots is how many delegations this node works on at this moment, and how many it may.
func (e *Engine) Slots() (used, size int) { return e.slots.count() }
