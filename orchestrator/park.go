package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
)

// made lists the children of a delegation's generation: those that no turn has carried
// where the conversation holds the others, else all.
func (e *Engine) made(ctx context.Context, of agent.Traits, d *Delegation) ([]Delegation, error) {
	if of.Conversation {
		return e.Store.Untaken(ctx, d.ID, d.Work.Runs)
	}
	return e.Store.Children(ctx, d.ID, d.Work.Runs)
}

// park makes the hops of a kind without a process and leaves the row waiting: it holds
// no slot, no goroutine and no folder then. It reports false when there is nothing to
// wait for, so that the agent goes on at once.
func (e *Engine) park(r *run, p *agent.Park) (bool, error) {
	r.filing.Lock()
	defer r.filing.Unlock()
	kept, bundle, err := r.keepFiles(r.ctx, true)
	if err != nil {
		return false, err
	}
	plans, refused, err := e.plans(r, p.Hops, kept, bundle)
	if err != nil {
		return false, err
	}
	now, err := e.asksNow(r.ctx, len(p.Asks) > 0)
	if err != nil {
		return false, err
	}
	parked := false
	err = e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		b, told := e.continuation(tx, r), refused
		for i, plan := range plans {
			plan.toCome = len(plans) - i
			plan.continuation, plan.passes = b, !plan.Spawn && !p.ForSpawned
			c, err := e.hop(ctx, tx, d, plan)
			if err != nil {
				return err
			}
			if c.State == agent.Refused {
				told = append(told, c)
			}
		}
		for _, a := range p.Asks {
			if _, err := e.put(ctx, tx, now, d, a, nil); err != nil {
				return err
			}
		}
		if err := r.file(ctx, tx, d, kept, bundle); err != nil {
			return err
		}
		d.Work.Memo, d.Work.Refused, d.Work.ForSpawned = p.Memo, append(d.Work.Refused, told...), p.ForSpawned
		var err error
		if parked, err = waits(ctx, tx, d); err != nil || !parked {
			return join(err, func() error { return save(ctx, tx, d) })
		}
		r.worked(d)
		if err := waitAlone(ctx, tx, d); err != nil {
			return err
		}
		return tx.Append(ctx, waitingEvent(d))
	})
	if err == nil {
		r.filed(kept)
	}
	return parked, err
}

// join does next unless there is an error already.
func join(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

// waits reports whether d, which parks, has anything to wait for. A spawned child that
// ended in the meantime is told first.
func waits(ctx context.Context, tx Tx, d *Delegation) (bool, error) {
	if !d.Work.ForSpawned {
		return d.open() > 0, nil
	}
	if untold, err := tx.Untold(ctx, d.ID, d.Work.Runs); untold || err != nil {
		return false, err
	}
	return d.open()+d.OpenSpawned > 0, nil
}

func waitingEvent(d *Delegation) event.Event {
	return event.Of(d.ID, d.To, event.WaitingData{Agent: d.To, Children: d.OpenChildren + d.OpenSpawned, Asks: d.Work.OpenAsks()})
}

// plans prepares the hops of a park. What cannot be made is refused as data.
func (e *Engine) plans(r *run, hops []agent.Hop, kept *Checkpoint, bundle []byte) ([]planned, []agent.Child, error) {
	var plans []planned
	var refused []agent.Child
	var snapshot *base
	seen, asks := map[string]*patch.Review{}, map[bool]Handovers{}
	for _, h := range hops {
		plan, err := e.plan(h, &r.d, r.task.Repository, r.keyOf(h))
		if code := CodeOf(err); code != "" {
			refused = append(refused, notHandedOn(h, code, err.Error()))
			continue
		}
		if err == nil && snapshot == nil && plan.repo == r.d.Repository {
			snapshot, err = r.snapshotOf(r.ctx, kept, bundle)
		}
		first := plan.target.AskFirst
		if _, known := asks[first]; !known && err == nil {
			asks[first], err = e.handovers(r.ctx, first)
		}
		plan.asks = asks[first]
		if err == nil {
			err = r.hand(r.ctx, &plan, snapshot, seen)
		}
		if err != nil {
			return nil, nil, err
		}
		plans = append(plans, plan)
	}
	return plans, refused, nil
}

// plan finds the repository and the key of a hop. What is wrong with the hop itself is
// an *Error.
func (e *Engine) plan(h agent.Hop, d *Delegation, taskRepo, key string) (planned, error) {
	// Longer ones name nobody, and events and messages repeat them.
	h.To, h.Capability = strings.ToValidUTF8(h.To[:min(len(h.To), maxTarget)], ""), strings.ToValidUTF8(h.Capability[:min(len(h.Capability), maxTarget)], "")
	p := planned{Hop: h, key: key}
	if strings.TrimSpace(h.Text) == "" || len(h.Text) > MaxText {
		return p, Errorf(CodeBadRequest, "The hand-over's text has %d bytes. Use 1 to %d that say what should be done.", len(h.Text), MaxText)
	}
	if err := bounded(h); err != nil {
		return p, err
	}
	for key, value := range h.Context {
		if _, err := sharedctx.New(e.Now(), sharedctx.Handoff(d.TaskID), key, value, d.To, 0); err != nil {
			return p, Errorf(CodeBadRequest, "The context of the hand-over to %s was not taken: %w", h.To, err)
		}
	}
	c := e.Config()
	spec, ok := c.Agents.Get(h.To)
	if h.To == "" {
		spec, ok = firstAble(c, h.Capability)
	}
	p.target, p.known = spec, ok
	if h.Spawn {
		p.key = spawnKey(spec.Name, h)
	}
	if !ok {
		return p, nil // the guard refuses it
	}
	repo, err := c.bind(spec.Repository, taskRepo, d.Repository)
	p.repo = repo
	if err != nil && CodeOf(err) == "" {
		err = fmt.Errorf("find the repository of %s: %w", spec.Name, err)
	}
	return p, err
}

// The bounds of what goes with a hop. It comes from agents, and is stored, shown in
// events and written into prompts.
const (
	maxTarget   = 1 << 10  // bytes of a name or a capability that are kept; agents' names have 64
	maxEntries  = 64       // of the context
	maxContext  = 1 << 20  // bytes of all its values
	maxHandover = 64 << 10 // bytes of the command object as JSON, without the task
)

// bounded refuses a hop that carries more than fits.
func bounded(h agent.Hop) error {
	size := 0
	for key, value := range h.Context {
		size += len(key) + len(value)
	}
	switch {
	case len(h.Context) > maxEntries || size > maxContext:
		return Errorf(CodeBadRequest, "The context of the hand-over has %d entries of %d bytes; %d entries and %d bytes are the limit. Put long material into the repository or the shared context.",
			len(h.Context), size, maxEntries, maxContext)
	}
	if h.Handover == nil {
		return nil
	}
	carried := *h.Handover
	carried.Update.Context.TaskDescription = "" // the hop's text, which has its own limit
	if command, err := json.Marshal(carried); err != nil || len(command) > maxHandover {
		return Errorf(CodeBadRequest, "The command object of the hand-over has %d bytes; %d is the limit. Put long material into the repository or the shared context, and name it.", len(command), maxHandover)
	}
	return nil
}

// Checkpoint is a checkout between two runs of one conversation: what belongs to its last
// stored turn. Files that the repository ignores are not in it.
//
// Each kept commit has the one before as a parent, so the newest bundle holds the files
// of every turn; older bundles are dropped. The newest stays with a delegation that
// ended, because a fork goes on from there.
type Checkpoint struct {
	Tree   string   `json:"tree"`
	Commit string   `json:"commit"`           // carries Tree in the bundle
	Bundle string   `json:"bundle"`           // blob
	Merged []string `json:"merged,omitempty"` // children whose changes are in Tree and whom no turn has carried
}

// keepFiles saves the checkout as it is now. It returns nil where nothing may have
// changed since it was kept. The caller holds r.filing.
func (r *run) keepFiles(ctx context.Context, changed bool) (*Checkpoint, []byte, error) {
	if !r.keeps || !changed && len(r.merged) == 0 || r.dir == "" || r.mirror == nil {
		return nil, nil, nil
	}
	return r.saveFiles(ctx)
}

// saveFiles is keepFiles for a run that has a checkout, whatever its kind.
func (r *run) saveFiles(ctx context.Context) (*Checkpoint, []byte, error) {
	w := &r.d.Work
	s, err := r.mirror.Snapshot(ctx, r.dir, w.BaseTree)
	if err != nil {
		return nil, nil, refusedFiles(err)
	}
	k := &Checkpoint{Tree: s.Tree, Merged: slices.Clone(r.merged)}
	var earlier []string
	if w.Checkpoint != nil {
		k.Merged = append(slices.Clone(w.Checkpoint.Merged), k.Merged...)
		if w.Checkpoint.Tree == s.Tree {
			k.Commit, k.Bundle = w.Checkpoint.Commit, w.Checkpoint.Bundle
			return k, nil, nil
		}
		earlier = []string{w.Checkpoint.Commit}
	} else if s.Tree == w.BaseTree && len(k.Merged) == 0 {
		return nil, nil, nil
	}
	var bundle []byte
	k.Commit, bundle, err = r.mirror.SaveTree(ctx, fmt.Sprintf("%s-kept-%d", r.id, w.Runs), w.BaseCommit, s.Tree, r.d.CreatedAt, earlier...)
	k.Bundle = bundleID("kept", r.id, "-", k.Commit)
	return k, bundle, err
}

// file writes into d what its run keeps: the base of the checkout, and the checkout
// itself where k is not nil.
func (r *run) file(ctx context.Context, tx Tx, d *Delegation, k *Checkpoint, bundle []byte) error {
	if !r.keeps {
		return nil
	}
	return r.storeFiles(ctx, tx, d, k, bundle)
}

// storeFiles is file, whatever the run's kind.
func (r *run) storeFiles(ctx context.Context, tx Tx, d *Delegation, k *Checkpoint, bundle []byte) error {
	w := r.d.Work
	d.Work.Stand = w.Stand
	if k == nil {
		return nil
	}
	r.sign(d)
	old := d.Work.Checkpoint
	d.Work.Checkpoint = k
	if old != nil && old.Bundle == k.Bundle {
		return nil
	}
	if err := tx.PutBlob(ctx, k.Bundle, "bundle", bundle); err != nil {
		return err
	}
	before := Session{Checkpoint: old, From: d.Work.From}
	return before.dropKept(ctx, tx)
}

// filed notes in the run what the row has now. The caller holds r.filing.
func (r *run) filed(k *Checkpoint) {
	if k != nil {
		r.d.Work.Checkpoint, r.merged = k, nil
	}
}

// without is k without the children that a turn has carried: they are never brought in
// again.
func (k *Checkpoint) without(children []string) *Checkpoint {
	if k == nil || len(children) == 0 {
		return k
	}
	left := *k
	left.Merged = slices.DeleteFunc(slices.Clone(k.Merged), func(id string) bool { return slices.Contains(children, id) })
	return &left
}

// takeIn is a child as its caller is given it, with its changes brought into the
// caller's checkout, once.
func (r *run) takeIn(ctx context.Context, d *Delegation) (agent.Child, error) {
	r.filing.Lock()
	defer r.filing.Unlock()
	if c, done := r.back[d.ID]; done {
		return c, nil
	}
	c := childOf(d)
	if !c.Ended {
		return c, nil
	}
	if r.brings(d) {
		if err := r.takeBack(ctx, d, &c); err != nil {
			return agent.Child{}, err
		}
	}
	r.back[d.ID] = c
	return c, nil
}

// brings reports whether a child has changes that belong into the checkout and are not
// there. A command brings them in when it asks for the child.
func (r *run) brings(d *Delegation) bool {
	if r.dir == "" || d.State != Completed || !d.Work.Shares || d.Work.Tree == "" || d.Work.Tree == d.Work.BaseTree {
		return false
	}
	return r.d.Work.Checkpoint == nil || !slices.Contains(r.d.Work.Checkpoint.Merged, d.ID)
}

// snapshotOf is what a child starts from whose caller's checkout is kept as k.
func (r *run) snapshotOf(ctx context.Context, k *Checkpoint, bundle []byte) (*base, error) {
	if r.dir == "" || r.mirror == nil || !r.keeps {
		return nil, nil
	}
	return r.baseOf(ctx, k, bundle)
}

// baseOf is snapshotOf for a run that has a checkout, whatever its kind.
func (r *run) baseOf(ctx context.Context, k *Checkpoint, bundle []byte) (*base, error) {
	w := r.d.Work
	k = cmp.Or(k, w.Checkpoint)
	b := &base{commit: w.BaseCommit, branch: w.Branch, tag: w.Tag, tree: w.BaseTree, lineage: r.lineage()}
	var err error
	switch {
	case k == nil:
		b.saved, b.bundle, err = r.mirror.SaveTree(ctx, r.id+"-base", b.commit, b.tree, r.d.CreatedAt)
	case bundle == nil:
		b.tree, b.saved = k.Tree, k.Commit
		b.bundle, err = r.e.Store.Blob(ctx, k.Bundle)
	default:
		b.tree, b.saved, b.bundle = k.Tree, k.Commit, bundle
	}
	return b, err
}

// refusedFiles makes what an agent may not leave in its checkout its own failure.
func refusedFiles(err error) error {
	if refusal := patch.RefusalOf(err); refusal != nil {
		return agent.Fail(refusal.Code, "%s", refusal.Message)
	}
	return err
}

// letGoOn saves d, and queues it where it waits and nothing is open any more.
func letGoOn(ctx context.Context, tx Tx, d *Delegation, said event.ResumedData) error {
	if d.State != Waiting || d.open() > 0 {
		return save(ctx, tx, d)
	}
	if err := wake(ctx, tx, d); err != nil {
		return err
	}
	return tx.Append(ctx, event.Of(d.ID, d.To, said))
}

// closeAsks ends the requests that d waits for: its run is over.
func closeAsks(ctx context.Context, tx Tx, d *Delegation) error {
	for _, o := range d.Work.Asks {
		if o.State != agent.AskOpen || o.Request == "" {
			continue
		}
		if err := tx.CloseAsk(ctx, o.Request); err != nil {
			return err
		}
	}
	d.Work.Asks = nil
	return nil
}
