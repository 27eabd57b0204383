package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

func chainStep(from, to, task string) chain.Step { return chain.Step{From: from, To: to, Task: task} }

// live refuses calls of an agent whose attempt is over.
func (r *run) live() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished || r.ctx.Err() != nil {
		return agent.ErrStopped
	}
	return nil
}

// write runs fn on the run's row; an attempt that was lost or ended is ErrStopped.
func (r *run) write(ctx context.Context, fn func(tx Tx, d *Delegation) error) error {
	return r.outlast(ctx, func() error { return r.writeOnce(ctx, fn) })
}

// writeOnce is write without waiting for a database that is away.
func (r *run) writeOnce(ctx context.Context, fn func(tx Tx, d *Delegation) error) error {
	if err := r.live(); err != nil {
		return err
	}
	err := r.e.Store.InTask(ctx, r.task.ID, func(tx Tx) error {
		d, err := r.own(ctx, tx)
		if err != nil {
			return err
		}
		return fn(tx, d)
	})
	if errors.Is(err, ErrLost) {
		r.cancel(agent.ErrStopped)
		return agent.ErrStopped
	}
	return err
}

// Usage adds to what the run has used.
func (r *run) Usage(ctx context.Context, u agent.Usage) error {
	if u.InputTokens < 0 || u.OutputTokens < 0 || (u.USD != nil && *u.USD < 0) {
		return fmt.Errorf("usage cannot be negative: %d in, %d out", u.InputTokens, u.OutputTokens)
	}
	var over *agent.Failure
	err := r.write(ctx, func(tx Tx, d *Delegation) error {
		d.Usage = d.Usage.Add(u)
		of, err := (ledger{tx}).charge(ctx, d, amountOf(u))
		if err != nil {
			return err
		}
		if over = exceeded(d); over == nil {
			over = of.passed(d)
		}
		if err := save(ctx, tx, d); err != nil || u == (agent.Usage{}) {
			return err // a call that failed and cost nothing
		}
		return tx.Append(ctx, event.Of(d.ID, d.To, event.UsageRecordedData{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, USD: u.USD}))
	})
	if err == nil && over != nil {
		return over
	}
	return err
}

// Sandbox records what the run is confined by.
func (r *run) Sandbox(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.d.Work.Sandbox = name
	return nil
}

// Report stores what a program tells of its work; see agent.Host.
func (r *run) Report(ctx context.Context, what agent.Report) error {
	if what.Asked != nil {
		r.mu.Lock()
		r.d.Work.NeverAsked = !*what.Asked
		r.mu.Unlock()
		return r.live()
	}
	said := reported(what)
	if said == nil {
		return nil
	}
	return r.write(ctx, func(tx Tx, d *Delegation) error { return tx.Append(ctx, event.Of(d.ID, d.To, said)) })
}

// maxDiff is how many bytes of each side of a change an event repeats.
const maxDiff = 1000

// reported is the data of a report's event; nil where there is nothing to store.
func reported(what agent.Report) event.Payload {
	c := what.Call
	switch {
	case c == nil && len(what.Plan) == 0:
		return nil
	case c == nil:
		return event.PlanChangedData{Steps: each.Of(what.Plan, func(s agent.PlanStep) event.PlanStep {
			return event.PlanStep{Text: cutTo(s.Text, maxDiff), State: cutTo(s.State, 40)}
		})}
	case !c.Ended:
		return event.ToolCalledData{ID: cutTo(c.ID, maxRef), Name: cutTo(c.Tool, maxRef), Title: cutTo(c.Title, maxDiff), Input: cut(string(c.Input))}
	}
	return event.ToolCompletedData{ID: cutTo(c.ID, maxRef), Name: cutTo(c.Tool, maxRef), OK: event.Given(c.OK), Text: cut(cmp.Or(c.Text, c.Title)),
		Diffs: each.Of(c.Diffs, func(f agent.FileDiff) event.FileDiff {
			return event.FileDiff{Path: cutTo(f.Path, maxDiff), Old: cutTo(f.Old, maxDiff), New: cutTo(f.New, maxDiff)}
		})}
}

// maxResume is how long the name of a program's session may be, in bytes.
const maxResume = 1 << 10

// KeepSession stores how the program finds its session again; see agent.Host.
func (r *run) KeepSession(ctx context.Context, session string) error {
	if len(session) > maxResume || strings.ToValidUTF8(session, "") != session || strings.Contains(session, "\x00") {
		return agent.Fail(agent.CodeProtocol, "%s named a session that cannot be kept: %d bytes, and %d of text are the limit.", r.d.To, len(session), maxResume)
	}
	return r.write(ctx, func(tx Tx, d *Delegation) error {
		d.Work.Resume = session
		return save(ctx, tx, d)
	})
}

// RunningTime is how long this attempt has worked, without waiting for children.
func (r *run) RunningTime() time.Duration { return r.clock.elapsed() }

// maxRef is the longest name of a hop, in bytes, that is kept as it is.
const maxRef = 128

// Delegate makes one hop and returns as soon as the database has it.
func (r *run) Delegate(ctx context.Context, h agent.Hop) (child agent.Child, err error) {
	err = r.outlast(ctx, func() error {
		child, err = r.handOn(ctx, h)
		return err
	})
	return child, err
}

// handOn makes one hop. After an error the same hop may be asked for again: it has the
// same key, so that there is one child even where the first try was stored after all.
func (r *run) handOn(ctx context.Context, h agent.Hop) (agent.Child, error) {
	if err := r.live(); err != nil {
		return agent.Child{}, err
	}
	if h.Final {
		return r.handOff(ctx, h)
	}
	return r.makeHop(ctx, h)
}

// makeHop is handOn for every hop. One that cannot be made is answered as data.
func (r *run) makeHop(ctx context.Context, h agent.Hop) (_ agent.Child, err error) {
	key := r.keyOf(h)
	defer func() {
		if err != nil && h.Ref == "" && !h.Spawn {
			r.count(h, -1)
		}
	}()
	plan, err := r.e.plan(h, &r.d, r.task.Repository, key)
	if CodeOf(err) != "" {
		return notHandedOn(h, CodeOf(err), err.Error()), nil
	}
	if err != nil {
		return agent.Child{}, err
	}
	kept, bundle, err := r.filesOf(ctx, &plan)
	if refusal, ok := errors.AsType[*patch.Refusal](err); ok {
		return notHandedOn(h, refusal.Code, refusal.Message), nil
	}
	if err != nil {
		return agent.Child{}, err
	}
	child, err := r.storeHop(ctx, plan, kept, bundle)
	if CodeOf(err) == CodeBadRequest {
		return notHandedOn(h, CodeBadRequest, err.Error()), nil
	}
	return child, err
}

// keyOf is the key of a hop below its caller: its name, or the next of its target and text.
func (r *run) keyOf(h agent.Hop) string {
	switch {
	case h.Ref == "" && !h.Spawn:
		return r.count(h, 1)
	case len(h.Ref) > maxRef:
		return hopKey(h.Ref, "", 0) // an index takes no name of any length
	}
	return h.Ref
}

// filesOf decides who is asked about a planned hop and which files its child is given. Of a
// hop that hands the work over it returns the checkout that is kept with it.
func (r *run) filesOf(ctx context.Context, p *planned) (kept *Checkpoint, bundle []byte, err error) {
	if p.asks, err = r.e.handovers(ctx, p.target.AskFirst); err != nil {
		return nil, nil, err
	}
	kept, bundle, snapshot, err := r.keepFinal(ctx, p)
	if err == nil && snapshot == nil {
		snapshot, err = r.snapshot(ctx, *p)
	}
	if err == nil {
		err = r.hand(ctx, p, snapshot, nil)
	}
	return kept, bundle, err
}

// storeHop makes a planned hop in a transaction, and leaves its caller waiting for the child.
func (r *run) storeHop(ctx context.Context, plan planned, kept *Checkpoint, bundle []byte) (child agent.Child, err error) {
	err = r.writeOnce(ctx, func(tx Tx, d *Delegation) (err error) {
		if plan.Final && d.OpenSpawned > 0 {
			child = spawnedAtWork(d, plan.Hop)
			return nil
		}
		open, spawned := d.OpenChildren, d.OpenSpawned
		plan.continuation = r.e.continuation(tx, r)
		plan.passes = d.State == Running && !plan.Spawn
		child, err = r.e.hop(ctx, tx, d, plan)
		if err == nil && d.State == Waiting && d.Work.ProcessWait {
			plan.continuation.rest() // the try before may have been stored after all
		}
		if err != nil {
			return err
		}
		if child.ID != "" && !plan.Spawn {
			r.expect(child.ID, !child.Ended)
		}
		if d.OpenChildren == open && d.OpenSpawned == spawned {
			return nil
		}
		if plan.Final {
			d.Work.HandedTo, d.Work.Sandbox = child.ID, r.d.Work.Sandbox // the run ends with what comes of it
			if err := r.storeFiles(ctx, tx, d, kept, bundle); err != nil {
				return err
			}
		}
		if d.State == Waiting || d.OpenChildren == open {
			return save(ctx, tx, d)
		}
		if err := waitInProcess(ctx, tx, d, false); err != nil {
			return err
		}
		plan.continuation.rest()
		return tx.Append(ctx, waitingEvent(d))
	})
	return child, err
}

// notHandedOn answers a hop that cannot be made, as data for the agent that asked.
func notHandedOn(h agent.Hop, code, message string) agent.Child {
	return agent.Child{Ref: h.Ref, To: cut(h.To), Text: cut(h.Text), State: agent.Refused, Ended: true, Error: agent.Fail(code, "%s", message)}
}

// count adds to the number of hops with this target and text in this attempt, and
// returns the key of the last one.
func (r *run) count(h agent.Hop, add int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := cmp.Or(h.To, "capability:"+h.Capability)
	base := hopKey(to, h.Text, 0)
	r.nth[base] += add
	return hopKey(to, h.Text, r.nth[base])
}

// snapshot is the checkout as it is now when the child works on the same repository: the
// child starts from there.
func (r *run) snapshot(ctx context.Context, p planned) (*base, error) {
	if r.dir == "" || r.mirror == nil || p.repo != r.d.Repository {
		return nil, nil
	}
	s, err := r.mirror.Snapshot(ctx, r.dir, r.d.Work.BaseTree)
	if err != nil {
		return nil, err
	}
	return &base{commit: r.d.Work.BaseCommit, branch: r.d.Work.Branch, tag: r.d.Work.Tag, tree: s.Tree, lineage: r.lineage()}, nil
}

// Progress is written as events at this pace: often enough for a person who
// watches, seldom enough for the database.
const (
	progressEvery = 300 * time.Millisecond
	progressLines = 40   // of one event; more are counted, not kept
	progressBytes = 8000 // of one event
)

// progress gathers lines between two events. Whoever is first starts the wait.
type progress struct {
	mu      sync.Mutex
	lines   []string
	bytes   int
	dropped int
	mask    mask.Stream
	wait    sync.WaitGroup
	stop    chan struct{}
}

// Progress shows a line to whoever watches (K13).
func (r *run) Progress(ctx context.Context, text string) error {
	if err := r.live(); err != nil {
		return err
	}
	text = strings.TrimRight(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\u2400"), "\ufffd"), "\r\n")
	p := &r.lines
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) >= progressLines || p.bytes+len(text) > progressBytes {
		p.dropped++
		return nil
	}
	p.lines, p.bytes = append(p.lines, text), p.bytes+len(text)
	if p.stop == nil {
		stop := make(chan struct{})
		p.stop = stop
		p.wait.Go(func() {
			select {
			case <-time.After(progressEvery):
			case <-stop:
			case <-r.ctx.Done():
			}
			r.writeProgress(false)
		})
	}
	return nil
}

// flushProgress writes what is left and waits for the writer.
func (r *run) flushProgress() {
	r.lines.mu.Lock()
	if r.lines.stop != nil {
		close(r.lines.stop)
		r.lines.stop = nil
	}
	r.lines.mu.Unlock()
	r.lines.wait.Wait()
	if r.lines.holds() {
		r.writeProgress(true)
	}
}

// masked is what can be shown of the lines by now: a key that goes over several events is
// kept back until its end. The caller holds mu.
func (p *progress) masked(text string, last bool) string {
	if text != "" {
		text += "\n"
	}
	text = p.mask.Write(text)
	if last {
		text += p.mask.Flush()
	}
	return strings.TrimSuffix(text, "\n")
}

// holds reports whether something is kept back.
func (p *progress) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mask.Holds()
}

// writeProgress stores the gathered lines as one event.
func (r *run) writeProgress(last bool) {
	p := &r.lines
	p.mu.Lock()
	text, dropped := strings.Join(p.lines, "\n"), p.dropped
	p.lines, p.bytes, p.dropped, p.stop = nil, 0, 0, nil
	text = p.masked(text, last)
	p.mu.Unlock()
	if text == "" && dropped == 0 {
		return
	}
	err := r.write(r.ctx, func(tx Tx, d *Delegation) error {
		return tx.Append(r.ctx, event.Of(d.ID, d.To, event.ProgressData{Text: text, DroppedLines: dropped}))
	})
	if err != nil && r.ctx.Err() == nil {
		r.e.Log.Warn("progress could not be stored", "delegation", r.id, "err", err)
	}
}
