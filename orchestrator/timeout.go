package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
)

// defaultKillAfter is how long a run that was told to end may take where the
// configuration says nothing. Programs are killed sooner by their supervisor.
const defaultKillAfter = 10 * time.Second

func (s Settings) killAfter() time.Duration {
	return cmp.Or(max(s.KillAfter, 0), defaultKillAfter)
}

// answered is what a runner returned.
type answered struct {
	out agent.Outcome
	err error
}

// supervise runs an agent and returns when it has ended. One that ignores the end of its
// context is given up after Settings.KillAfter (P53): its slot, its row and its worker
// are free then, its calls are refused, and nobody waits for it but the shutdown.
func (e *Engine) supervise(ctx context.Context, r *run, agentRun func() (agent.Outcome, error)) (agent.Outcome, error) {
	done := make(chan answered, 1)
	e.runners.Go(func() {
		out, err := agentRun()
		done <- answered{out, err}
	})
	select {
	case a := <-done:
		return a.out, a.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(e.Config().Settings.killAfter())
	defer patience.Stop()
	select {
	case a := <-done:
		return a.out, a.err
	case <-patience.C:
	}
	e.stuck.Add(1)
	e.Log.Error("a run did not end when it was told to, and was given up", "code", agent.CodeStuck, "delegation", r.id, "agent", r.d.To,
		"attempt", r.attempt, "waited", e.Config().Settings.killAfter())
	return agent.Outcome{}, ctx.Err()
}

// Stuck is how many runs of this process did not end when they were told to.
func (e *Engine) Stuck() int64 { return e.stuck.Load() }

// lastWait waits for runs that were given up, but not for ever: the process ends.
func (e *Engine) lastWait() {
	if wait := e.Config().Settings.killAfter(); !within(&e.runners, wait) {
		e.Log.Error("runs that do not end are left behind", "waited", wait)
	}
}

// within waits for wg at most so long, and reports whether it came to an end.
func within(wg *sync.WaitGroup, wait time.Duration) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(wait):
		return false
	}
}

// timeLimit is how long one delegation to an agent may run, waiting not counted, and
// what it says when that is over. timed says that its own timeout counts.
func (c *Config) timeLimit(spec agent.Spec, timed, spawned bool) (time.Duration, *agent.Failure) {
	limit, whose := spec.Timeout, "its timeout"
	if !timed {
		limit = 0
	}
	if t := c.Settings.Spawn.timeout(); spawned && (limit == 0 || t < limit) {
		limit, whose = t, "the limit of spawned agents"
	}
	return limit, agent.Fail(agent.CodeTimeout, "%s ran longer than %s, %s.", spec.Name, plainTime(limit), whose)
}

// plainTime writes a duration without parts that are zero.
func plainTime(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	default:
		return d.String()
	}
}

// limit ends the run with why once its delegation has worked for max; 0 is no limit. The
// returned function ends the watch.
func (r *run) limit(max time.Duration, why *agent.Failure) (done func()) {
	if max <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.ctx)
	var watch sync.WaitGroup
	before := r.d.Work.RanFor
	watch.Go(func() {
		for {
			left := max - before - r.clock.elapsed()
			if left <= 0 {
				r.cancel(why)
				return
			}
			if !r.clock.runs() {
				left += pollEvery // it waits for a child; looking again soon enough is enough
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(left):
			}
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

// stopwatch counts running time.
type stopwatch struct {
	mu    sync.Mutex
	now   func() time.Time
	since time.Time
	total time.Duration
}

func (s *stopwatch) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = s.now()
	}
}

func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		s.total += s.now().Sub(s.since)
		s.since = time.Time{}
	}
}

// runs reports whether time is counted now.
func (s *stopwatch) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.since.IsZero()
}

func (s *stopwatch) elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return s.total
	}
	return s.total + s.now().Sub(s.since)
}

// Work that nobody takes up may fail instead of waiting without end (A34): with
// engine.queue_timeout, whoever asked hears no_ack, as of an agent elsewhere that does not
// answer. It counts from when the work was queued; while people hold the task no time
// passes, nor before this node began. Work that was taken up once and waits for a worker again is not given up.

// overdueBatch is how many one look gives up at most.
const overdueBatch = 200

// overdue reports whether nobody took d up in time.
func (e *Engine) overdue(tx Tx, d *Delegation) bool {
	limit := e.Config().Settings.QueueTimeout
	if limit <= 0 || d.State != Queued || d.Holder != "" || tx.Task().PausedAt != nil || d.StartedAt != nil && !d.Work.Anew {
		return false
	}
	since := d.Since
	if d.ReadyAt.After(since) {
		since = d.ReadyAt
	}
	if e.began.After(since) { // nobody could take it up before
		since = e.began
	}
	return tx.Now().Sub(since) >= limit
}

// giveUp fails d, which nobody took up. It says nothing about the agent, so that its breaker
// does not count it.
func (e *Engine) giveUp(ctx context.Context, tx Tx, d *Delegation) error {
	d.Error = agent.Fail(agent.CodeNoAck, "Nobody took this up within %s, so it was given up and waits no more. %s was busy, or no worker was free: look at its queue, then retry, or raise `engine.queue_timeout`.",
		e.Config().Settings.QueueTimeout, d.To)
	d.Work.Breaker = nil
	return end(ctx, tx, d, Failed, "gatehouse", "")
}

// giveUpOverdue looks for work that nobody took up until ctx ends. Every node looks; the
// first one ends it.
func (e *Engine) giveUpOverdue(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limit := e.Config().Settings.QueueTimeout
		if limit <= 0 {
			continue
		}
		refs, err := e.Store.Unclaimed(ctx, e.Now().Add(-limit), overdueBatch)
		for _, ref := range refs {
			err = errors.Join(err, e.giveUpOne(ctx, ref))
		}
		if err != nil && ctx.Err() == nil {
			e.Log.Warn("work that nobody took up could not be given up; trying again", "err", err)
		}
	}
}

// giveUpOne ends what ref names where it is still overdue in its transaction.
func (e *Engine) giveUpOne(ctx context.Context, ref Ref) error {
	err := e.inRow(ctx, ref.TaskID, ref.DelegationID, func(tx Tx, d *Delegation) error {
		if !e.overdue(tx, d) {
			return nil
		}
		return e.giveUp(ctx, tx, d)
	})
	if errors.Is(err, ErrLost) || errors.Is(err, ErrNotFound) {
		return nil // somebody was faster
	}
	return err
}

// restartQueues lets the time of what waits in a task's queues begin anew: people held it.
func restartQueues(ctx context.Context, tx Tx) error {
	tree, err := tx.Tree(ctx)
	if err != nil {
		return err
	}
	for _, d := range tree {
		if d.State != Queued || d.Holder != "" || d.ReadyAt.After(tx.Now()) {
			continue
		}
		d.ReadyAt = tx.Now()
		if err := save(ctx, tx, d); err != nil {
			return err
		}
	}
	return nil
}
