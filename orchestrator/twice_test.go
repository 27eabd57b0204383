package orchestrator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// errStale ends the first try of a step.
var errStale = errors.New("somebody else has written the task")

// twice is a store that runs each step twice, as one does where somebody else has written
// the task meanwhile: only what the last call leaves behind counts. After enough steps, which
// no longer differ from those before, it runs them once.
type twice struct {
	orchestrator.Store
	steps *atomic.Int64
}

// enough steps have been run twice.
const enough = 100

func (s twice) over() bool { return s.steps.Add(1) > enough }

func (s twice) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	if s.over() {
		return s.Store.InTask(ctx, id, fn)
	}
	err := s.Store.InTask(ctx, id, func(tx orchestrator.Tx) error { return stale(fn(tx)) })
	if !errors.Is(err, errStale) {
		return err
	}
	return s.Store.InTask(ctx, id, fn)
}

// twiceGate is twice for what people decide.
type twiceGate struct{ approval.Store }

func (s twiceGate) InGate(ctx context.Context, id string, fn func(approval.Tx) error) error {
	err := s.Store.InGate(ctx, id, func(tx approval.Tx) error { return stale(fn(tx)) })
	if !errors.Is(err, errStale) {
		return err
	}
	return s.Store.InGate(ctx, id, fn)
}

// stale is the end of a first try; one that failed is not run again.
func stale(err error) error {
	if err == nil {
		return errStale
	}
	return err
}

// beaten is a store in which somebody else, when asked for, writes just what the next step
// was about to write, before it.
type beaten struct {
	orchestrator.Store
	next *atomic.Bool
}

func (s beaten) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	if !s.next.CompareAndSwap(true, false) {
		return s.Store.InTask(ctx, id, fn)
	}
	var u untold
	err := s.Store.InTask(ctx, id, func(tx orchestrator.Tx) error {
		u = untold{Tx: tx, ended: new([]func(bool))}
		return fn(u)
	})
	if err != nil {
		return err
	}
	for _, ended := range *u.ended {
		ended(false)
	}
	return s.Store.InTask(ctx, id, fn)
}

// A step that was undone and runs again finds that somebody else has stored its turn: it is
// theirs, and the run is told so.
func TestATurnOfSomebodyElseIsNotTakenForOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", model("kik"))
	var next atomic.Bool
	w.engine.Store = beaten{w.store, &next}
	w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		next.Store(true)
		if err := host.SaveTurn(ctx, calls(1, "a"), false); !errors.Is(err, orchestrator.ErrExists) {
			return agent.Outcome{}, agent.Fail("test", "the turn was stored: %v", err)
		}
		return agenttest.Done("done"), nil
	})
	w.start()
	w.state(w.send("kik", "do it").ID, orchestrator.Completed)
}
