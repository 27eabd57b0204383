package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Await blocks until the child has ended; see agent.Host. When other children are
// open still, the run goes on without a slot until they have ended, too.
func (r *run) Await(ctx context.Context, id string) (agent.Child, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	due := false // whatever was heard, or not
	for {
		if err := r.live(); err != nil {
			return agent.Child{}, err
		}
		poked := r.pokes() // before the read, so that no poke is missed
		d, told := r.outcome(id)
		var err error
		if !told && (!r.expects(id) || due) {
			if d, err = r.e.Store.Delegation(ctx, id); err != nil || d.ParentID != r.id {
				r.expect(id, false)
			}
		}
		switch {
		case d.ID == "" && err == nil: // it lives, as it did when it was looked at
		case err == nil && d.ParentID != r.id:
			return agent.Child{}, Errorf(CodeForbidden, "%s is no child of this run.", id)
		case err == nil && d.State.Ended():
			return r.receive(ctx, &d)
		case err != nil && !transient(err):
			return agent.Child{}, err
		case err == nil && d.Spawned:
			if err := r.rest(ctx, id); err != nil && !transient(err) {
				return agent.Child{}, err
			}
		}
		select {
		case <-ctx.Done():
			return agent.Child{}, ctx.Err()
		case <-r.ctx.Done():
			return agent.Child{}, agent.ErrStopped
		case <-poked:
			due = false
		case <-tick.C:
			due = true
		}
	}
}

// transient reports whether a read that failed is worth trying again: the database
// may be away for a while, the row may not.
func transient(err error) bool {
	return !errors.Is(err, ErrNotFound) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// receive resumes the run and brings the child's changes into the checkout.
func (r *run) receive(ctx context.Context, d *Delegation) (agent.Child, error) {
	r.resuming.Lock()
	defer r.resuming.Unlock()
	if err := r.resume(ctx); err != nil {
		return agent.Child{}, err
	}
	return r.takeIn(ctx, d)
}

// takeBack brings the child's tree into the checkout. Files that changed here since
// the child started are left alone; the caller reads which.
func (r *run) takeBack(ctx context.Context, d *Delegation, c *agent.Child) error {
	if err := r.bring(ctx, d.Work.TreeBundle, d.Work.TreeCommit); err != nil {
		return err
	}
	err := r.mirror.MergeBack(ctx, r.dir, d.Work.BaseTree, d.Work.Tree)
	var refusal *patch.Refusal
	refused := errors.As(err, &refusal)
	if !refused || refusal.Code != patch.CodeContextMismatch {
		r.join(d) // what failed half way has left some files
	}
	if !refused {
		if err == nil {
			r.merged = append(r.merged, d.ID)
		}
		return err
	}
	note := fmt.Sprintf("The changes of %s were not taken over: %s", d.To, refusal.Message)
	res := agent.Result{}
	if c.Result != nil {
		res = *c.Result
	}
	res.Text = strings.TrimSpace(res.Text + "\n\n" + note)
	c.Result = &res
	return r.write(ctx, func(tx Tx, own *Delegation) error {
		return tx.Append(ctx, event.Of(d.ID, own.To, event.PatchRejectedData{Code: refusal.Code, Path: refusal.Path, Message: note, Files: refusal.Files}))
	})
}

// bring makes sure that the mirror has a commit whose bundle is in the store.
func (r *run) bring(ctx context.Context, blob, commit string) error {
	if commit == "" || r.mirror.Has(ctx, commit) {
		return nil
	}
	bundle, err := r.e.Store.Blob(ctx, blob)
	if err != nil {
		return err
	}
	return r.mirror.Import(ctx, bundle, commit)
}

// resume takes a slot and moves the row back to Running once no child is open. Where the
// end of the last child has passed its slot on, all of that is done.
func (r *run) resume(ctx context.Context) error {
	if r.working() {
		return nil
	}
	d, err := r.e.Store.Delegation(ctx, r.id)
	if err != nil || d.State != Queued && d.State != Running {
		return err
	}
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	if err := r.e.slots.resume(both); err != nil {
		return agent.ErrStopped
	}
	err = r.write(ctx, func(tx Tx, d *Delegation) error {
		if d.State != Queued {
			return nil
		}
		return goOn(ctx, tx, d)
	})
	r.mu.Lock()
	took := err == nil && !r.slot && !r.finished && !r.gone
	r.slot = r.slot || took
	r.mu.Unlock()
	if !took {
		r.e.slots.give()
		return err
	}
	r.clock.start()
	return nil
}

// working reports whether the run has its slot, and lets its clock run then.
func (r *run) working() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slot && !r.finished {
		r.clock.start()
		return true
	}
	return false
}

// giveSlot returns the run's slot if it has one.
func (r *run) giveSlot() {
	if r.loseSlot() {
		r.e.slots.give()
	}
}

// leaveSlot is giveSlot of a run that is over.
func (r *run) leaveSlot() {
	r.mu.Lock()
	r.gone = true
	r.mu.Unlock()
	r.giveSlot()
}

// gainSlot notes that the run has a slot now; false where it has one or needs none, so
// that the slot stays with who asked.
func (r *run) gainSlot() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	gains := !r.slot && !r.gone
	r.slot = r.slot || gains
	return gains
}

func (r *run) hasSlot() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slot
}

// loseSlot notes that the slot belongs to somebody else now, and reports whether there was one.
func (r *run) loseSlot() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.slot
	r.slot = false
	return had
}

// Await is the long poll of a command that blocks in `gatehouse delegate`. It
// reports false when the child was still live after max.
func (e *Engine) Await(ctx context.Context, p people.Run, childID string, max time.Duration) (Delegation, bool, error) {
	r := e.running(p)
	if r == nil {
		return Delegation{}, false, errRunOver
	}
	wait, cancel := context.WithTimeout(ctx, max)
	defer cancel()
	c, err := r.Await(wait, childID)
	if err != nil && wait.Err() == nil {
		if errors.Is(err, agent.ErrStopped) {
			err = errRunOver
		}
		return Delegation{}, false, err
	}
	d, readErr := e.Store.Delegation(ctx, childID)
	if c.Result != nil {
		d.Result = c.Result
	}
	return d, err == nil, readErr
}

// look reads the run's row and stops the run when it is no longer its attempt.
func (r *run) look(ctx context.Context) {
	if d, err := r.e.Store.Delegation(ctx, r.id); err == nil && (d.State.Ended() || d.Attempt != r.attempt) {
		r.cancel(agent.ErrStopped)
	}
}

// news is what a run knows of its children without reading: of those that it expects it
// has seen that they live, and nothing was heard of them since. Guarded by run.mu.
type news struct {
	expected map[string]bool
	carried  map[string]int        // how many transactions are about to tell an end
	ends     map[string]Delegation // as committed
}

// expects reports whether the run has seen that a child lives, and heard nothing since. Where
// it has not, it does from now on: the caller looks.
func (r *run) expects(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.news.expected[id]
	r.news.expected[id] = true
	return was
}

// expect notes that a child lives as of a transaction which is about to be committed, or
// that nothing is known of it.
func (r *run) expect(id string, lives bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lives {
		r.news.expected[id] = true
		return
	}
	delete(r.news.expected, id)
}

// outcome is the end of a child that a transaction of this node has told, once.
func (r *run) outcome(id string) (Delegation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, told := r.news.ends[id]
	delete(r.news.ends, id)
	return d, told
}

// carry has the end of d, which tx is about to commit, told to the run of its caller, so that
// it need not read it.
func (e *Engine) carry(ctx context.Context, tx Tx, d *Delegation) error {
	r := e.holding(d.ParentID)
	if r == nil {
		return nil
	}
	kept, err := tx.Kept(ctx, d.ID)
	if err != nil {
		return err
	}
	r.carrying(d.ID)
	tx.OnCommit(func() { r.tell(kept.ID, &kept) })
	tx.OnRollback(func(bool) { r.tell(kept.ID, nil) })
	return nil
}

// carrying notes that a transaction is about to tell the end of a child.
func (r *run) carrying(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news.carried[id]++
}

// tell is the end of a transaction that was about to tell how a child ended; nil where it was
// undone, or nobody knows.
func (r *run) tell(id string, d *Delegation) {
	r.mu.Lock()
	if r.news.carried[id]--; r.news.carried[id] <= 0 {
		delete(r.news.carried, id)
	}
	delete(r.news.expected, id)
	if d != nil {
		r.news.ends[id] = *d
	}
	r.poke()
	r.mu.Unlock()
}

// hear wakes the run where the end of one of its children concerns it. Those that a
// transaction of this node is just telling come by that.
func (r *run) hear(ended map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ended {
		if r.news.expected[id] && r.news.carried[id] == 0 {
			delete(r.news.expected, id)
			r.poke()
		}
	}
}

// resumed wakes the run because its row goes on, which a child has ended for.
func (r *run) resumed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.news.carried) == 0 {
		clear(r.news.expected)
		r.poke()
	}
}

// wake makes whoever waits in the run look again.
func (r *run) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.news.expected)
	r.poke()
}

// poke ends the waits. The caller holds mu.
func (r *run) poke() {
	close(r.poked)
	r.poked = make(chan struct{})
}

// pokes is closed at the next wake.
func (r *run) pokes() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.poked
}

// AnswerAsk gives an ask its answer, and lets d go on where it waits for nothing else.
func AnswerAsk(ctx context.Context, tx Tx, d *Delegation, a agent.Answer) error {
	at := d.Work.of(a.ID)
	if at < 0 || d.State.Ended() {
		return Errorf(CodeConflict, "%s does not wait for this any more.", d.To)
	}
	d.Work.Asks[at] = d.Work.Asks[at].as(a)
	d.Work.Acted = d.Work.Acted || a.State == agent.AskAllowed
	return letGoOn(ctx, tx, d, event.ResumedData{Agent: d.To, Request: a.ID})
}

// RecallAsk takes the yes to a call back that nobody has begun to make.
func RecallAsk(ctx context.Context, tx Tx, d *Delegation, requestID string) error {
	at := d.Work.of(requestID)
	if at < 0 || d.Work.Asks[at].Begun || d.State.Ended() {
		return Errorf(CodeConflict, "%s has begun to make this call, so your approval cannot be withdrawn any more.", d.To)
	}
	d.Work.Asks[at] = d.Work.Asks[at].as(agent.Answer{State: agent.AskOpen})
	return save(ctx, tx, d)
}
