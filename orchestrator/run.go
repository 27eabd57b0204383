package orchestrator

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
)

// run is one attempt of one delegation on this node.
type run struct {
	e    *Engine
	id   string
	ctx  context.Context // ends when the attempt is lost, cancelled or the node stops
	stop context.Context // the node's: tells a shutdown from a loss

	cancel context.CancelCauseFunc
	task   Task
	d      Delegation // as claimed; the worker's own
	token  string
	over   bool   // the claim ended the delegation
	shift  *shift // set when a continuation claimed it
	ahead  *ahead // what the claim has read; nil where it may be old

	// Guarded by Engine.mu.
	claimed    bool
	again      bool // the delegation was due again while this run was registered
	missed     bool // it may have ended before claimed was set
	attempt    int
	leaseUntil time.Time

	keeps    bool          // the agent's conversation and checkout outlive the attempt
	mirror   *patch.Mirror // nil without a repository
	dir      string        // the checkout, "" when there is none
	folder   string        // everything of this attempt on disk
	attached string        // the folder with the task's files, "" without

	mu       sync.Mutex
	slot     bool
	gone     bool           // the worker is done with the run and takes no slot any more
	finished bool           // host calls are refused from now on
	nth      map[string]int // hops made in this attempt by (to, text)
	back     map[string]agent.Child
	seen     map[entryID]bool // what of the shared context this run's reads are recorded of
	clock    stopwatch
	lines    progress
	deltas   deltas
	resuming sync.Mutex
	asking   sync.Mutex            // one at a time asks people
	unread   []agent.PersonMessage // as of the last turn; replaced under mu
	waited   map[string]bool       // the requests that somebody waits for; replaced under mu
	filing   sync.Mutex            // one at a time changes or keeps the checkout as a whole
	joined   Lineage               // who worked on what came into the checkout; guarded by mu
	contents []content             // of the result's artifacts
	merged   []string              // children whose changes came into the checkout since it was kept
	poked    chan struct{}
	news     news

	// Of handing the work over (handoff.go). final is held while such a hop is made; the
	// others are guarded by mu.
	final      sync.Mutex
	handedTo   string // the child, "" while there is none
	ended      bool   // the agent has ended, and hands nothing over any more
	turnedDown int    // such hops that were refused
	endAgent   context.CancelCauseFunc
}

func newRun(ctx context.Context, e *Engine, ref Ref) *run {
	r := &run{e: e, id: ref.DelegationID, stop: ctx, task: Task{ID: ref.TaskID}, nth: map[string]int{}, back: map[string]agent.Child{}, seen: map[entryID]bool{}, poked: make(chan struct{}, 1),
		news: news{expected: map[string]bool{}, carried: map[string]int{}, ends: map[string]Delegation{}}}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.clock.now = e.Now
	return r
}

// work claims r's delegation and works on it.
func (e *Engine) work(r *run) {
	if err := e.claim(r.ctx, r); err != nil || r.over {
		if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrNotFound) && r.ctx.Err() == nil {
			e.Log.Error("a delegation could not be claimed; it is tried again", "delegation", r.id, "err", err)
			e.lookFor(r)
		}
		return
	}
	e.workOn(r)
}

// workOn takes what r has claimed as far as it goes without people.
func (e *Engine) workOn(r *run) {
	defer r.removeFolder()
	defer r.closeDeltas()
	if r.d.State == Landing {
		defer e.look() // the next one of its repository has its turn now
	}
	var err error
	switch r.d.State {
	case Running:
		err = e.runAgent(r)
	case Checking:
		err = e.check(r)
	case Landing:
		err = e.land(r)
	}
	if err != nil {
		e.broke(r, err)
	}
}

// broke deals with an attempt that ended by an error of the machinery.
func (e *Engine) broke(r *run, err error) {
	var refusal *patch.Refusal
	var failure *agent.Failure
	switch {
	case r.stop.Err() != nil:
		e.giveBack(r, 0, false)
	case errors.As(context.Cause(r.ctx), &failure):
		e.failed(r, failure)
	case errors.Is(err, agent.ErrPaused):
		e.giveBack(r, 0, false)
	case errors.Is(err, ErrLost), errors.Is(err, agent.ErrStopped), r.ctx.Err() != nil:
		e.Log.Info("an attempt was stopped or lost", "delegation", r.id, "attempt", r.attempt)
	case errors.As(err, &refusal):
		e.refused(r, refusal)
	case errors.As(err, &failure):
		e.failed(r, failure)
	default:
		e.Log.Error("an attempt could not go on; it is tried again", "delegation", r.id, "attempt", r.attempt, "err", err)
		e.giveBack(r, e.Backoff<<min(r.d.Losses, 6), true)
	}
}

// failed ends r's delegation with a failure, or with what people said further down, or did
// not say in time.
func (e *Engine) failed(r *run, f *agent.Failure) {
	err := e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		r.worked(d)
		if _, open := undecided[f.Code]; open {
			return Decline(ctx, tx, d, f)
		}
		return Fail(ctx, tx, d, f)
	})
	if err != nil && !errors.Is(err, ErrLost) {
		e.Log.Error("a failure could not be stored; the lease will run out", "delegation", r.id, "err", err)
	}
}

// giveBack queues r's delegation again: the node stops, or something that may heal
// was in the way; that counts as a loss.
func (e *Engine) giveBack(r *run, after time.Duration, loss bool) {
	err := e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if loss {
			d.Losses++
			if d.Losses >= e.Config().Settings.MaxAttempts && d.State != Landing {
				return Fail(ctx, tx, d, agent.Fail(agent.CodeLost, "%s could not be run %d times in a row. The reason is in the server's log. Mend it, then retry.", d.To, d.Losses))
			}
		}
		r.worked(d)
		if err := lostCall(ctx, tx, d); err != nil {
			return err
		}
		return unclaim(ctx, tx, d, tx.Now().Add(after))
	})
	if err != nil && !errors.Is(err, ErrLost) {
		e.Log.Warn("a delegation could not be given back; its lease will run out", "delegation", r.id, "err", err)
	}
}

const (
	// storeTime is how long one write of an attempt may take, also when the node stops.
	storeTime = 5 * time.Second
	// firstPause and lastPause are between two tries of a write while the store is away.
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// own runs fn in a transaction on r's delegation, which still is r's. It also works
// while the node stops. When d ends in it, its caller goes on in it where it can.
func (e *Engine) own(r *run, fn func(ctx context.Context, tx Tx, d *Delegation) error) error {
	return r.outlast(r.ctx, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), storeTime)
		defer cancel()
		return e.Store.InTask(ctx, r.task.ID, func(tx Tx) error {
			d, err := r.own(ctx, tx)
			if err != nil {
				return err
			}
			if err := fn(ctx, tx, d); err != nil || d.ParentID == "" || !d.State.Ended() {
				return err
			}
			if err := e.continuation(tx, r).onward(ctx, tx, d); err != nil {
				return err
			}
			return e.carry(ctx, tx, d)
		})
	})
}

// outlast tries again, at most each second, what failed because the store is away: an
// agent's work must not be lost to a restart of the database. The run's context ends
// with its lease, and so does the patience. Where the outcome of a commit is not known
// the fence and the states refuse to do the same twice.
func (r *run) outlast(ctx context.Context, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := do()
		if CodeOf(err) != CodeUnavailable && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
		if pause == firstPause {
			r.e.Log.Warn("what an attempt has to store waits until the database is back", "delegation", r.id, "attempt", r.attempt, "err", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-r.ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// runAgent runs the agent until it answers, parks or fails.
func (e *Engine) runAgent(r *run) error {
	c := e.Config()
	spec, ok := c.Agents.Get(r.d.To)
	kind := e.Kinds[spec.Kind]
	if !ok || kind == nil {
		return agent.Fail(agent.CodeUnavailable, "%s is not configured any more. Send the task to another agent.", r.d.To)
	}
	r.keeps = kind.Traits().Conversation || r.d.Work.HandedTo != "" || r.d.Work.Fallback != nil
	if !r.keeps {
		r.d.Work.Checkpoint = nil // only a conversation, and a fallback, go on with the files that they left
	}
	if r.d.Work.HandedTo != "" {
		return e.handedBack(r, spec)
	}
	if err := e.prepare(r, spec); err != nil {
		return err
	}
	defer r.limit(e.Config().timeLimit(spec, kind.Traits().Timed, r.d.Spawned))()
	left, limited := r.d.Work.Budget.TimeLeft()
	if limited {
		defer r.limit(left+r.d.Work.RanFor, agent.Fail(agent.CodeBudget, "%s", account(&r.d).Sentence(r.d.To, budget.Time)))()
	}
	// An attempt before this one, or a park of this one, may have left children.
	for again := r.d.Attempt > 1; ; again = true {
		job, err := e.job(r, spec, again)
		if err == nil {
			err = r.overdrawn(job)
		}
		if err != nil {
			return err
		}
		r.ahead = nil // from now on it is old
		r.clock.start()
		e.Trace("agent started")
		ctx, end := r.staff()
		out, err := e.supervise(ctx, r, func() (agent.Outcome, error) { return kind.Run(ctx, job, r) })
		end(nil)
		r.clock.pause()
		r.flushProgress()
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if r.leaves() {
			return e.leave(r)
		}
		if err != nil {
			return err
		}
		if out.Park == nil {
			e.Trace("agent ended")
			r.closeDeltas() // before its end is told, behind which readers take no part
			return e.finish(r, spec, withoutSecrets(out.Result))
		}
		parked, err := e.park(r, out.Park)
		if err != nil || parked {
			return err
		}
	}
}

// traits are those of the kind of an agent, none where the node has no such kind.
func (e *Engine) traits(spec agent.Spec) agent.Traits {
	if kind := e.Kinds[spec.Kind]; kind != nil {
		return kind.Traits()
	}
	return agent.Traits{}
}

// Traits are those of an agent by its name, none where nobody has it.
func (e *Engine) Traits(name string) agent.Traits {
	spec, _ := e.Config().Agents.Get(name)
	return e.traits(spec)
}

// job is what the agent is given. A delegation that ran before is read again, with the
// children that it has; one that never ran is as it was claimed.
func (e *Engine) job(r *run, spec agent.Spec, again bool) (agent.Job, error) {
	d, traits := r.d, e.traits(spec)
	var children []agent.Child
	if again {
		var err error
		if r.ahead == nil { // else it was claimed just now
			if d, err = e.Store.Delegation(r.ctx, r.id); err != nil {
				return agent.Job{}, err
			}
		}
		made, err := e.made(r.ctx, traits, &d)
		if err != nil {
			return agent.Job{}, err
		}
		for i := range made {
			c := childOf(&made[i])
			if r.keeps { // a command takes their changes in when it asks for them
				if c, err = r.takeIn(r.ctx, &made[i]); err != nil {
					return agent.Job{}, err
				}
			}
			if traits.Texts {
				if err := e.tellTexts(r.ctx, r.task.ID, &c); err != nil {
					return agent.Job{}, err
				}
			}
			children = append(children, c)
		}
	}
	job := agent.Job{TaskID: r.task.ID, DelegationID: r.id, Attempt: r.attempt, Agent: spec, From: d.From, Text: d.Text,
		Feedback: d.Work.Feedback, Dir: r.dir, Token: r.token, URL: e.URL(), Memo: d.Work.Memo, Children: append(children, d.Work.Refused...),
		Handover: d.Work.Handover, Fallback: d.Work.Fallback, Channel: r.task.Via.String(), Chat: r.task.Chat, Board: sharedctx.Board(r.task.ID), Generation: d.Work.Runs,
		Revision: max(d.Work.Revision, 1), RemoteHops: r.task.RemoteHops, Source: r.task.Source, Session: d.Work.Resume, Told: asTold(d.Work.Read),
		Attachments: r.attachments(), AttachmentsDir: r.attached}
	r.nowUnread(asTold(d.Work.Unread))
	if traits.Turns {
		turns, err := e.Store.Turns(r.ctx, r.id, d.Work.Runs)
		if err != nil {
			return agent.Job{}, err
		}
		job.Turns, job.Carried = turns, min(d.Work.Carried, len(turns))
	}
	if r.task.Thread != "" && d.ParentID == "" {
		if err := r.follow(&job, &d); err != nil {
			return agent.Job{}, err
		}
	}
	if r.folder != "" {
		job.ScratchDir = filepath.Join(r.folder, "scratch")
	}
	given, err := r.given(spec)
	job.Context = given
	return job, err
}

// running finds the run that a run token belongs to.
func (e *Engine) running(p people.Run) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[p.DelegationID]; r != nil && r.claimed && r.attempt == p.Attempt {
		return r
	}
	return nil
}

// Confined records the limits of the run, and at its end the most that it used. The row has
// it when the attempt ends, however it ends.
func (r *run) Confined(_ context.Context, c agent.Confinement) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.d.Work.Confined; was != nil && c.Most == (agent.Limits{}) {
		c.Most = was.Most // of another program of the same run, such as a tool server
	}
	r.d.Work.Confined = &c
	return nil
}

// confine copies what confined the attempt into the row.
func (r *run) confine(d *Delegation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.Work.Sandbox, d.Work.Confined, d.Work.NeverAsked = r.d.Work.Sandbox, r.d.Work.Confined, r.d.Work.NeverAsked
}
