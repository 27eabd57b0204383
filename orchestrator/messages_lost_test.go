package orchestrator_test

import (
	"context"
	"sync/atomic"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
)

// unheard is a store that commits the first telling of messages, and nobody learns it.
type unheard struct {
	orchestrator.Store
	done *atomic.Bool
}

func (s unheard) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	var u telling
	err := s.Store.InTask(ctx, id, func(tx orchestrator.Tx) error {
		u = telling{untold{Tx: tx, ended: new([]func(bool))}, new(bool)}
		return fn(u)
	})
	if err != nil || !*u.tells || !s.done.CompareAndSwap(false, true) {
		return err
	}
	for _, ended := range *u.ended {
		ended(true)
	}
	return orchestrator.Errorf(orchestrator.CodeUnavailable, "The database is away.")
}

type telling struct {
	untold
	tells *bool
}

func (t telling) OnCommit(fn func()) { t.Tx.OnCommit(fn) }

func (t telling) Append(ctx context.Context, e event.Event) error {
	*t.tells = *t.tells || e.Type == event.MessageDelivered
	return t.Tx.Append(ctx, e)
}

// Messages that were taken, and of which the database did not say so, are told all the same.
func TestMessagesAreToldWhoseTellingWasCommittedUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", agent.Spec{Name: "coder", Protocol: "jsonl"})
	var done atomic.Bool
	w.engine.Store = unheard{w.store, &done}
	w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		said, err := host.Hear(ctx, true)
		return agenttest.Done(heard(said)), err
	})
	w.start()
	root := w.send("coder", "do it")
	_, err := w.say(w.ann, root.ID, "in French", "")
	w.must(err)
	if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != "ann: in French" || !done.Load() {
		t.Errorf("it heard %q", d.Result.Text)
	}
}
