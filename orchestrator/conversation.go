package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/patch"
)

// SaveTurn stores the next turn of a conversation; see agent.Host.
func (r *run) SaveTurn(ctx context.Context, t agent.Turn, changed bool) error {
	if t.Usage.InputTokens < 0 || t.Usage.OutputTokens < 0 || t.Usage.USD != nil && *t.Usage.USD < 0 {
		return fmt.Errorf("usage cannot be negative: %d in, %d out", t.Usage.InputTokens, t.Usage.OutputTokens)
	}
	kept, bundle, err := r.keepFiles(ctx, t.N, changed)
	if err != nil {
		return err
	}
	r.turnOver(t.N)
	paused := false
	err = r.write(ctx, func(tx Tx, d *Delegation) error {
		if err := tx.PutTurn(ctx, d, t); err != nil {
			return err
		}
		if kept != nil {
			if err := tx.PutBlob(ctx, kept.Bundle, "bundle", bundle); err != nil {
				return err
			}
			d.Work.Kept = kept
		}
		if err := tx.Take(ctx, d.ID, t.Children); err != nil {
			return err
		}
		if err := r.charge(ctx, tx, d, t); err != nil {
			return err
		}
		paused = tx.Task().PausedAt != nil
		return tx.Move(ctx, d, d.State, d.Attempt)
	})
	switch {
	case err != nil:
		return err
	case paused:
		return agent.ErrPaused
	}
	r.e.Trace("turn stored")
	return nil
}

// charge adds what a turn used and writes its events.
func (r *run) charge(ctx context.Context, tx Tx, d *Delegation, t agent.Turn) error {
	d.Usage = d.Usage.Add(t.Usage)
	for _, e := range turnEvents(d, t) {
		if err := tx.Append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// maxShown is how many bytes of a text an event repeats; the turn has the whole.
const maxShown = 4000

// turnEvents are the events of a stored turn.
func turnEvents(d *Delegation, t agent.Turn) []event.Event {
	say := func(kind event.Type, data map[string]any) event.Event {
		return event.Event{Type: kind, DelegationID: d.ID, Actor: d.To, Data: event.Data(data)}
	}
	var events []event.Event
	switch t.Message.Role {
	case agent.FromModel:
		var calls []map[string]any
		for _, c := range t.Message.Calls() {
			calls = append(calls, map[string]any{"id": c.ID, "name": c.Name, "input": cut(string(c.Input))})
		}
		events = append(events,
			say(event.MessageCompleted, map[string]any{"turn": t.N, "model": t.Model, "stop": t.Stop, "text": cut(t.Message.Text()), "calls": calls, "took_ms": t.Took.Milliseconds()}),
			say(event.UsageRecorded, map[string]any{"input_tokens": t.Usage.InputTokens, "output_tokens": t.Usage.OutputTokens, "usd": t.Usage.USD, "model": t.Model, "turn": t.N}))
	case agent.FromTools:
		for _, b := range t.Message.Blocks {
			if b.Type == agent.AnswerBlock {
				events = append(events, say(event.ToolCompleted, map[string]any{"turn": t.N, "id": b.ID, "name": b.Name, "ok": !b.IsError, "text": cut(b.Text)}))
			}
		}
	}
	if len(t.Children) > 0 && t.Message.Role == agent.FromUser {
		events = append(events, say(event.Announced, map[string]any{"turn": t.N, "children": t.Children}))
	}
	return events
}

// cut shortens a text for an event.
func cut(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return string([]rune(s[:maxShown])) + fmt.Sprintf("… (%d bytes)", len(s))
}

// keepFiles saves the checkout as it is now, for the turn that is about to be stored.
func (r *run) keepFiles(ctx context.Context, n int, changed bool) (*Kept, []byte, error) {
	if !changed || r.dir == "" || r.mirror == nil {
		return nil, nil, nil
	}
	w := &r.d.Work
	s, err := r.mirror.Snapshot(ctx, r.dir, w.BaseTree)
	if err != nil {
		return nil, nil, refusedFiles(err)
	}
	k := &Kept{Tree: s.Tree, Bundle: bundleID(fmt.Sprintf("turn-%d-%d", w.Runs, n), r.id)}
	if w.Kept != nil {
		k.Merged = slices.Clone(w.Kept.Merged)
	}
	var bundle []byte
	k.Commit, bundle, err = r.mirror.SaveTree(ctx, fmt.Sprintf("%s-turn-%d-%d", r.id, w.Runs, n), w.BaseCommit, s.Tree, r.d.CreatedAt)
	return k, bundle, err
}

// refusedFiles makes what an agent may not leave in its checkout its own failure.
func refusedFiles(err error) error {
	var refusal *patch.Refusal
	if errors.As(err, &refusal) {
		return agent.Fail(refusal.Code, "%s", refusal.Message)
	}
	return err
}

// Ended returns the spawned children whose end no turn has carried.
func (r *run) Ended(ctx context.Context) ([]agent.Child, error) {
	if err := r.live(); err != nil {
		return nil, err
	}
	all, err := r.e.Store.Untaken(ctx, r.id, r.d.Work.Runs)
	var ended []agent.Child
	for i := range all {
		if all[i].Spawned && all[i].State.Ended() {
			ended = append(ended, childOf(&all[i]))
		}
	}
	return ended, err
}

// Roster lists all agents; see agent.Host.
func (r *run) Roster(ctx context.Context) ([]agent.Member, error) {
	if err := r.live(); err != nil {
		return nil, err
	}
	var members []agent.Member
	for _, s := range r.e.Config().Agents.All() {
		members = append(members, agent.Member{Name: s.Name, Role: string(s.Role), Capabilities: s.Capabilities, About: Title(s.Prompt)})
	}
	return members, nil
}

// Checks runs the repository's checks on the checkout as it is now.
func (r *run) Checks(ctx context.Context) ([]agent.CheckResult, error) {
	if err := r.live(); err != nil {
		return nil, err
	}
	if r.dir == "" {
		return nil, agent.Fail(agent.CodeNoCheckout, "There is no repository to check: the task has none.")
	}
	_, repo, err := r.e.mirror(r.d.Repository)
	if err != nil {
		return nil, err
	}
	s, err := r.mirror.Snapshot(ctx, r.dir, r.d.Work.BaseTree)
	if err != nil {
		return nil, refusedFiles(err)
	}
	saved, _, err := r.mirror.SaveTree(ctx, r.id+"-checks", r.d.Work.BaseCommit, s.Tree, r.d.CreatedAt)
	if err != nil {
		return nil, err
	}
	checks, err := r.e.runChecks(r, saved, s.Tree, repo)
	var results []agent.CheckResult
	for _, c := range checks {
		results = append(results, agent.CheckResult{Command: c.Command, OK: c.OK, Output: c.Output})
	}
	return results, err
}

// Apply changes the checkout as a unified diff says.
func (r *run) Apply(ctx context.Context, diff string) error {
	if err := r.live(); err != nil {
		return err
	}
	if r.dir == "" {
		return agent.Fail(patch.CodePathOutside, "There is no repository to change: the task has none.")
	}
	s, err := r.mirror.Snapshot(ctx, r.dir, r.d.Work.BaseTree)
	if err != nil {
		return refusedFiles(err)
	}
	tree, err := r.mirror.ApplyText(ctx, s.Tree, []byte(diff))
	if err != nil {
		return refusedFiles(err)
	}
	return refusedFiles(r.mirror.MergeBack(ctx, r.dir, s.Tree, tree))
}

// Remaining is what this run may still use.
func (r *run) Remaining(ctx context.Context) (budget.Limits, error) {
	d, err := r.e.Store.Delegation(ctx, r.id)
	if err != nil || d.Work.Budget == nil {
		return budget.Limits{}, err
	}
	return d.Work.Budget.Remaining(), nil
}
