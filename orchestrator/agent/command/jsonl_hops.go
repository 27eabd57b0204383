package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
)

// lookEvery is how often a program's spawned children are looked after.
const lookEvery = 250 * time.Millisecond

// hopLine is a line of type delegate, spawn or handoff. What stands below Context is of a
// hand-over.
type hopLine struct {
	Ref        string            `json:"ref"`
	To         string            `json:"to"`
	Capability string            `json:"capability"`
	Text       string            `json:"text"`
	Context    map[string]string `json:"context"`

	Completed        string              `json:"completed"`
	Artifacts        map[string]*string  `json:"artifacts"`
	ArtifactsCreated []string            `json:"artifacts_created"`
	WorkflowState    agent.HandoverState `json:"workflow_state"`
}

// spawnedLine tells a program at once which child its spawn is.
type spawnedLine struct {
	Type string `json:"type"`
	Ref  string `json:"ref"`
	ID   string `json:"id"`
	To   string `json:"to"`
}

// spawned are the children that a program has spawned and not heard the end of.
type spawned struct {
	mu      sync.Mutex
	refs    map[string]string // by id of the child: the program's name for it
	watched bool
}

// hop reads a line that hands work on. What cannot be a hop is not ok, with the sentence in
// err.
func (d *dialogue) hop(n int, line []byte) (hopLine, agent.Hop, error) {
	var l hopLine
	if what := decode(line, &l); what != "" {
		return l, agent.Hop{}, d.broken(n, what)
	}
	if l.To == "" && l.Capability == "" || l.Text == "" {
		return l, agent.Hop{}, d.broken(n, "hands work on without `to` or without `text`")
	}
	hop := agent.Hop{Ref: clean(l.Ref), To: clean(l.To), Capability: clean(l.Capability), Text: d.safe(l.Text)}
	for key, value := range l.Context {
		if hop.Context == nil {
			hop.Context = map[string]string{}
		}
		hop.Context[clean(key)] = d.safe(value)
	}
	return l, hop, nil
}

// delegate makes one hop. Hops are made in the order of their lines, and waited
// for side by side.
func (d *dialogue) delegate(ctx context.Context, n int, line []byte) error {
	l, hop, err := d.hop(n, line)
	if err != nil {
		return err
	}
	child, err := d.host.Delegate(ctx, hop)
	if err != nil {
		return fmt.Errorf("hand on: %w", err)
	}
	d.open.Go(func() {
		if !child.Ended && child.State != agent.Refused {
			d.watch.pause()
			child, err = d.host.Await(ctx, child.ID)
			d.watch.resume()
		}
		switch {
		case err == nil:
			d.tell(answerTo(l.Ref, child))
		case ctx.Err() == nil:
			d.cancel(fmt.Errorf("wait for %s: %w", hop.To, err))
		}
	})
	return nil
}

// handOver gives the rest of the work away. Once the hop is made this program is ended: the
// child's answer is the answer. A refusal is answered like that of a delegate.
func (d *dialogue) handOver(ctx context.Context, n int, line []byte) error {
	l, hop, err := d.hop(n, line)
	if err != nil {
		return err
	}
	hop.Final = true
	u := agent.HandoverUpdate{Artifacts: map[string]*string{}, WorkflowState: l.WorkflowState}
	u.Context.Completed, u.Context.ArtifactsCreated = d.safe(l.Completed), l.ArtifactsCreated
	for name, path := range l.Artifacts {
		if path != nil {
			path = new(d.safe(*path))
		}
		u.Artifacts[d.safe(name)] = path
	}
	hop.Handover = &agent.Handover{Update: u}
	child, err := d.host.Delegate(ctx, hop)
	switch {
	case err != nil:
		return fmt.Errorf("hand over: %w", err)
	case child.State == agent.Refused:
		d.tell(answerTo(l.Ref, child))
	default:
		d.cancel(agent.ErrHandedOver)
	}
	return nil
}

// spawn makes a child that is not waited for. Its id is told at once, its end when it has
// ended, unless this program ends before.
func (d *dialogue) spawn(ctx context.Context, n int, line []byte) error {
	l, hop, err := d.hop(n, line)
	if err != nil {
		return err
	}
	hop.Spawn, hop.Ref = true, "" // the same spawn is the same child
	child, err := d.host.Delegate(ctx, hop)
	switch {
	case err != nil:
		return fmt.Errorf("spawn: %w", err)
	case child.State == agent.Refused:
		d.tell(answerTo(l.Ref, child))
		return nil
	}
	d.tell(spawnedLine{Type: "spawned", Ref: l.Ref, ID: child.ID, To: child.To})
	d.spawned.mu.Lock()
	defer d.spawned.mu.Unlock()
	if d.spawned.refs == nil {
		d.spawned.refs = map[string]string{}
	}
	d.spawned.refs[child.ID] = l.Ref
	if !d.spawned.watched {
		d.spawned.watched = true
		d.open.Go(func() { d.tellEnds(ctx) })
	}
	return nil
}

// tellEnds tells the ends of spawned children while the program works.
func (d *dialogue) tellEnds(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if len(d.waited()) == 0 {
			continue
		}
		ended, err := d.host.Ended(ctx)
		if err != nil && ctx.Err() == nil {
			d.cancel(fmt.Errorf("look after what was spawned: %w", err))
			return
		}
		for _, child := range ended {
			if ref, mine := d.spawned.take(child.ID); mine {
				d.tell(answerTo(ref, child))
			}
		}
	}
}

// take forgets a child whose end is told now; false where it was told.
func (s *spawned) take(id string) (ref string, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, mine = s.refs[id]
	delete(s.refs, id)
	return ref, mine
}

// waited are the children whose ends were not told.
func (d *dialogue) waited() []string {
	d.spawned.mu.Lock()
	defer d.spawned.mu.Unlock()
	return slices.Collect(maps.Keys(d.spawned.refs))
}

// waitForSpawned says that the program does nothing until what it spawned has ended, so
// that it holds no slot and its time stands still. The ends are told as always.
func (d *dialogue) waitForSpawned(ctx context.Context) {
	ids := d.waited()
	d.open.Go(func() {
		d.watch.pause()
		defer d.watch.resume()
		for _, id := range ids {
			if _, err := d.host.Await(ctx, id); err != nil {
				if ctx.Err() == nil {
					d.cancel(fmt.Errorf("wait for %s: %w", id, err))
				}
				return
			}
		}
	})
}
