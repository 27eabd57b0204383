package orchestrator

import (
	"context"
	"sync"

	"gatehouse/orchestrator/record/event"
)

// A baton carries work on within one transaction of this node: the transaction that makes
// a delegation due also claims it here, and the end of a child also lets its caller go on.
// What it moves is what a worker would move a moment later, in two more commits: the states
// pass in the same order, with the same events and fences.
//
// The slot goes with the work. It is passed before the commit, while the task's row is
// locked, so that nobody of the task sees it twice, and comes back when the transaction
// fails. Runs that wait for a slot come first: then nothing is passed and the dispatcher
// does it all.
//
// A baton belongs to one goroutine and to one try of one transaction.
type baton struct {
	e      *Engine
	from   *run   // whose slot may go on; nil: only free slots are taken
	taken  []*run // claimed in the transaction
	passed *run   // who has from's slot
	rests  bool   // from has given its slot up, for nobody in particular
	waits  bool   // from's program waits, and its clock stands
}

// baton makes one for a transaction, in whose end from may be about to give its slot up.
func (e *Engine) baton(tx Tx, from *run) *baton {
	b := &baton{e: e, from: from}
	tx.OnCommit(b.start)
	tx.OnRollback(b.leave)
	return b
}

// shift is the time in which Run takes work.
type shift struct {
	ctx context.Context
	wg  *sync.WaitGroup
}

// openShift lets batons claim work from now on, closeShift ends that: after it nothing is
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
func (b *baton) claim(tx Tx, d *Delegation, pass bool) bool {
	spec, known := b.e.Config().Agents.Get(d.To)
	if d.State != Queued || d.Holder != "" || d.ReadyAt.After(tx.Now()) || tx.Task().PausedAt != nil || !known || b.e.Kinds[spec.Kind] == nil {
		return false
	}
	r := b.register(Ref{TaskID: d.TaskID, DelegationID: d.ID})
	if r == nil {
		return false
	}
	if !(pass && b.pass(r)) && !b.e.slots.spare(r) {
		b.strike(r)
		return false
	}
	b.taken = append(b.taken, r)
	b.e.seize(tx, r, d)
	return true
}

// acknowledge writes the event of a claim, once the row is written.
func (b *baton) acknowledge(ctx context.Context, tx Tx, d *Delegation) error {
	r := b.taken[len(b.taken)-1]
	r.task, r.d = *tx.Task(), *d
	return tx.Append(ctx, acknowledged(b.e.Node, d))
}

// onward lets the caller of d go on, which has just ended: in its process, where that
// waits here, or in a run of its own.
func (b *baton) onward(ctx context.Context, tx Tx, d *Delegation) error {
	p, err := tx.Delegation(ctx, d.ParentID)
	if err != nil || p.State != Queued {
		return err
	}
	if r := b.e.holding(p.ID); r != nil && p.Holder == b.e.Node && p.Attempt == r.attempt && p.Work.ProcessWait {
		if !b.pass(r) {
			return nil
		}
		return goOn(ctx, tx, p)
	}
	if !b.claim(tx, p, true) {
		return nil
	}
	if err := writeClaim(ctx, tx, p, Queued); err != nil {
		return err
	}
	return b.acknowledge(ctx, tx, p)
}

// pass gives from's slot to another run.
func (b *baton) pass(to *run) bool {
	if b.from == nil || b.passed != nil || b.e.slots.contended() || !b.from.loseSlot() {
		return false
	}
	if !to.gainSlot() {
		b.from.gainSlot()
		return false
	}
	b.passed = to
	return true
}

// rest says that from's program waits: its slot goes to somebody else and its clock stops.
func (b *baton) rest() {
	b.rests = b.from.loseSlot()
	b.waits = true
	b.from.clock.pause()
}

// drop undoes what the transaction took.
func (b *baton) drop() {
	b.takeBack()
	for _, r := range b.taken {
		b.strike(r)
	}
	b.taken = nil
}

// takeBack returns to from what it has passed on.
func (b *baton) takeBack() {
	had := b.rests
	if b.passed != nil {
		had = b.passed.loseSlot()
	}
	if had && !b.from.gainSlot() {
		b.e.slots.give()
	}
	if b.waits {
		b.from.clock.start()
	}
	b.passed, b.rests, b.waits = nil, false, false
}

// strike ends the registration of a run that did not come to be.
func (b *baton) strike(r *run) {
	r.giveSlot()
	r.cancel(nil)
	b.e.forget(r)
	r.shift.wg.Done()
}

// start lets work what was claimed: the transaction is committed.
func (b *baton) start() {
	for _, r := range b.taken {
		b.e.claimed(r)
		b.e.goOn(r, func() { b.e.workOn(r) })
	}
	if b.rests {
		b.e.slots.give()
	}
	b.taken, b.passed, b.rests, b.waits = nil, nil, false, false
}

// leave ends a transaction that failed. Where it may be committed all the same, what it
// claimed is looked for: nobody else would before the lease ends.
func (b *baton) leave(maybe bool) {
	if !maybe {
		b.drop()
		return
	}
	b.takeBack()
	taken := b.taken
	b.taken = nil
	for _, r := range taken {
		r.giveSlot()
		b.e.goOn(r, func() { b.e.lookFor(r) })
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
func (b *baton) register(ref Ref) *run {
	e := b.e
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

// acknowledged is the event of a claim.
func acknowledged(node string, d *Delegation) event.Event {
	return event.Of(d.ID, d.To, event.AcknowledgedData{Agent: d.To, Node: node, Attempt: d.Attempt})
}
