package orchestrator

import (
	"context"
	"sync"

	"gatehouse/orchestrator/record/event"
)

// A continuation carries work on within one transaction of this node: the transaction that makes
// a delegation due also claims it here, and the end of a child also lets its caller go on.
// What it moves is what a worker would move a moment later, in two more commits: the states
// pass in the same order, with the same events and fences.
//
// The slot goes with the work. It is passed before the commit, while the task's row is
// locked, so that nobody of the task sees it twice, and comes back when the transaction
// fails. Runs that wait for a slot come first: then nothing is passed and the dispatcher
// does it all.
//
// A continuation belongs to one goroutine and to one try of one transaction.
type continuation struct {
	e      *Engine
	from   *run   // whose slot may go on; nil: only free slots are taken
	taken  []*run // claimed in the transaction
	passed *run   // who has from's slot
	rests  bool   // from has given its slot up, for nobody in particular
	waits  bool   // from's program waits, and its clock stands
}

// continuation makes one for a transaction, in whose end from may be about to give its slot up.
func (e *Engine) continuation(tx Tx, from *run) *continuation {
	c := &continuation{e: e, from: from}
	tx.OnCommit(c.start)
	tx.OnRollback(c.leave)
	return c
}

// shift is the time in which Run takes work.
type shift struct {
	ctx context.Context
	wg  *sync.WaitGroup
}

// openShift lets continuations claim work from now on, closeShift ends that: after it nothing is
// added to the wait group.
func (e *Engine) openShift(ctx context.Context, wg *sync.WaitGroup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shift = &shift{ctx, wg}
}

func (e *Engine) closeShift() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shift = nil
}

// claim claims d, which is queued and about to be written, where this node can work on it
// now. pass says that from stops working with this transaction, so that its slot is free.
func (c *continuation) claim(tx Tx, d *Delegation, pass bool) bool {
	spec, known := c.e.Config().Agents.Get(d.To)
	if d.State != Queued || d.Holder != "" || d.ReadyAt.After(tx.Now()) || tx.Task().PausedAt != nil || !known || c.e.Kinds[spec.Kind] == nil {
		return false
	}
	r := c.register(Ref{TaskID: d.TaskID, DelegationID: d.ID})
	if r == nil {
		return false
	}
	if !(pass && c.pass(r)) && !c.e.slots.spare(r) {
		c.strike(r)
		return false
	}
	c.taken = append(c.taken, r)
	c.e.seize(tx, r, d)
	return true
}

// acknowledge writes the event of a claim, once the row is written.
func (c *continuation) acknowledge(ctx context.Context, tx Tx, d *Delegation) error {
	r := c.taken[len(c.taken)-1]
	r.task, r.d = *tx.Task(), *d
	if err := r.lookAhead(ctx, tx, d); err != nil {
		return err
	}
	return tx.Append(ctx, acknowledged(c.e.Node, d))
}

// onward lets the caller of d go on, which has just ended: in its process, where that
// waits here, or in a run of its own.
func (c *continuation) onward(ctx context.Context, tx Tx, d *Delegation) error {
	p, err := tx.Delegation(ctx, d.ParentID)
	if err != nil || p.State != Queued {
		return err
	}
	if r := c.e.holding(p.ID); r != nil && p.Holder == c.e.Node && p.Attempt == r.attempt && p.Work.ProcessWait {
		if !c.pass(r) {
			return nil
		}
		return goOn(ctx, tx, p)
	}
	if !c.claim(tx, p, true) {
		return nil
	}
	if err := writeClaim(ctx, tx, p, Queued); err != nil {
		return err
	}
	return c.acknowledge(ctx, tx, p)
}

// pass gives from's slot to another run.
func (c *continuation) pass(to *run) bool {
	if c.from == nil || c.passed != nil || c.e.slots.contended() || !c.from.loseSlot() {
		return false
	}
	if !to.gainSlot() {
		c.from.gainSlot()
		return false
	}
	c.passed = to
	return true
}

// rest says that from's program waits: its slot goes to somebody else and its clock stops.
func (c *continuation) rest() {
	c.rests = c.from.loseSlot()
	c.waits = true
	c.from.clock.pause()
}

// drop undoes what the transaction took.
func (c *continuation) drop() {
	c.takeBack()
	for _, r := range c.taken {
		c.strike(r)
	}
	c.taken = nil
}

// takeBack returns to from what it has passed on.
func (c *continuation) takeBack() {
	had := c.rests
	if c.passed != nil {
		had = c.passed.loseSlot()
	}
	if had && !c.from.gainSlot() {
		c.e.slots.give()
	}
	if c.waits {
		c.from.clock.start()
	}
	c.passed, c.rests, c.waits = nil, false, false
}

// strike ends the registration of a run that did not come to be.
func (c *continuation) strike(r *run) {
	r.giveSlot()
	r.cancel(nil)
	c.e.forget(r)
	r.shift.wg.Done()
}

// start lets work what was claimed: the transaction is committed.
func (c *continuation) start() {
	for _, r := range c.taken {
		c.e.claimed(r)
		c.e.goOn(r, func() { c.e.workOn(r) })
	}
	if c.rests {
		c.e.slots.give()
	}
	c.taken, c.passed, c.rests, c.waits = nil, nil, false, false
}

// leave ends a transaction that failed. Where it may be committed all the same, what it
// claimed is looked for: nobody else would before the lease ends.
func (c *continuation) leave(maybe bool) {
	if !maybe {
		c.drop()
		return
	}
	c.takeBack()
	taken := c.taken
	c.taken = nil
	for _, r := range taken {
		r.giveSlot()
		c.e.goOn(r, func() { c.e.lookFor(r) })
	}
}

// goOn runs work for r in a goroutine of its own; its place in the shift was taken when it
// was registered.
func (e *Engine) goOn(r *run, work func()) {
	go func() {
		defer r.shift.wg.Done()
		defer e.forget(r)
		defer r.leaveSlot()
		defer r.cancel(nil)
		work()
	}()
}

// lookFor works on r if the transaction that claimed it was committed after all.
func (e *Engine) lookFor(r *run) {
	if r.d.TokenHash == "" {
		return // it did not come as far
	}
	r.ahead = nil
	var d Delegation
	err := r.outlast(r.ctx, func() (err error) {
		d, err = e.Store.Delegation(r.ctx, r.id)
		return err
	})
	if err != nil || d.State != Running || d.Attempt != r.d.Attempt || d.TokenHash != r.d.TokenHash || !d.LeaseUntil.After(e.Now()) {
		return
	}
	if !r.hasSlot() {
		if e.slots.resume(r.ctx) != nil {
			return // the node stops; a start of it releases what it held
		}
		r.gainSlot()
	}
	e.claimed(r)
	e.workOn(r)
}

// register makes a run for a delegation that is about to be claimed, nil where this node
// takes no work or has one already.
func (c *continuation) register(ref Ref) *run {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shift == nil || e.shift.ctx.Err() != nil || e.runs[ref.DelegationID] != nil {
		return nil
	}
	r := newRun(e.shift.ctx, e, ref)
	r.shift = e.shift
	e.runs[ref.DelegationID] = r
	e.shift.wg.Add(1)
	return r
}

func acknowledged(node string, d *Delegation) event.Event {
	return event.Of(d.ID, d.To, event.AcknowledgedData{Agent: d.To, Node: node, Attempt: d.Attempt})
}
