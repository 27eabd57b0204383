package orchestrator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
)

// defaultKillAfter is how long a run that was told to end may take where the
// configuration says nothing. Programs are killed sooner by their supervisor.
const defaultKillAfter = 10 * time.Second

func (s Settings) killAfter() time.Duration {
	if s.KillAfter <= 0 {
		return defaultKillAfter
	}
	return s.KillAfter
}

// answered is what a runner returned.
type answered struct {
	out agent.Outcome
	err error
}

// obey runs an agent and returns when it has ended. One that ignores the end of its
// context is given up after Settings.KillAfter (P53): its slot, its row and its worker
// are free then, its calls are refused, and nobody waits for it but the shutdown.
func (e *Engine) obey(ctx context.Context, r *run, agentRun func() (agent.Outcome, error)) (agent.Outcome, error) {
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
