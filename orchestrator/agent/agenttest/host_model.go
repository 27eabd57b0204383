package agenttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
)

// errNumber is what SaveTurn answers to a turn out of order.
var errNumber = errors.New("a turn was stored out of order")

// SaveTurn keeps the turn, which must be the next one.
func (h *Host) SaveTurn(ctx context.Context, t agent.Turn, _ bool) error {
	if err := h.enter(ctx, "SaveTurn"); err != nil {
		return err
	}
	h.mu.Lock()
	if t.N != len(h.turns)+1 {
		h.mu.Unlock()
		return fmt.Errorf("turn %d after %d: %w", t.N, len(h.turns), errNumber)
	}
	h.turns = append(h.turns, t)
	h.usage = h.usage.Add(t.Usage)
	h.order = slices.DeleteFunc(h.order, func(id string) bool { return slices.Contains(t.Children, id) })
	h.unread = slices.DeleteFunc(slices.Clone(h.unread), func(m agent.PersonMessage) bool { return slices.Contains(t.Messages, m.ID) })
	h.mu.Unlock()
	if h.OnSave != nil {
		return h.OnSave(t)
	}
	return nil
}

// Delta records a part of a message.
func (h *Host) Delta(d agent.Delta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deltas = append(h.deltas, d)
}

// Ended returns the spawned children that have ended and that no turn has carried.
func (h *Host) Ended(ctx context.Context) ([]agent.Child, error) {
	if err := h.enter(ctx, "Ended"); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var ended []agent.Child
	for _, id := range h.order {
		ended = append(ended, h.children[id])
	}
	return ended, nil
}

// Begin lets the conversation begin with turns that were stored before.
func (h *Host) Begin(turns []agent.Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turns = slices.Clone(turns)
}

// Untaken returns the children that no turn has carried, and the hops that were refused.
func (h *Host) Untaken() []agent.Child {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.refused)
	for _, id := range h.made {
		taken := slices.ContainsFunc(h.turns, func(t agent.Turn) bool { return slices.Contains(t.Children, id) })
		if !taken {
			all = append(all, h.children[id])
		}
	}
	return all
}

// AwaitSpawned returns once a spawned child has ended that no turn has carried.
func (h *Host) AwaitSpawned(ctx context.Context) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if ended, err := h.Ended(ctx); err != nil || len(ended) > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Roster returns Members.
func (h *Host) Roster(ctx context.Context) ([]agent.Member, error) {
	return h.Members, h.enter(ctx, "Roster")
}

// Checks returns Results.
func (h *Host) Checks(ctx context.Context) ([]agent.CheckResult, error) {
	return h.Results, h.enter(ctx, "Checks")
}

// Apply asks ApplyDiff.
func (h *Host) Apply(ctx context.Context, diff string) error {
	if err := h.enter(ctx, "Apply"); err != nil || h.ApplyDiff == nil {
		return err
	}
	return h.ApplyDiff(diff)
}

// Reserve records the call and lets the answer be as long as is asked for.
func (h *Host) Reserve(ctx context.Context, c agent.ModelCall) (int64, error) {
	if err := h.enter(ctx, "Reserve"); err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
	return c.Output, nil
}

// Calls returns the calls of models that were reserved.
func (h *Host) Calls() []agent.ModelCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Remaining returns Left.
func (h *Host) Remaining(ctx context.Context) (budget.Limits, error) {
	return h.Left, h.enter(ctx, "Remaining")
}

// Turns returns the conversation that was stored.
func (h *Host) Turns() []agent.Turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.turns)
}

// Deltas returns the parts that were shown.
func (h *Host) Deltas() []agent.Delta {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.deltas)
}

// Shared is a shared context in memory, without life spans.
func (h *Host) Shared() agent.Shared { return hostShared{h} }

type hostShared struct{ h *Host }

func (s hostShared) Get(ctx context.Context, namespace, key string) (agent.ContextEntry, bool, error) {
	if err := s.h.enter(ctx, "Get"); err != nil {
		return agent.ContextEntry{}, false, err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	e, ok := s.h.entries[[2]string{namespace, key}]
	return e, ok, nil
}

func (s hostShared) Prefix(ctx context.Context, namespace, prefix string, limit int) ([]agent.ContextEntry, error) {
	if err := s.h.enter(ctx, "Prefix"); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	var found []agent.ContextEntry
	for at, e := range s.h.entries {
		if at[0] == namespace && strings.HasPrefix(at[1], prefix) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b agent.ContextEntry) int { return strings.Compare(a.Key, b.Key) })
	return found[:min(len(found), max(limit, 0))], nil
}

func (s hostShared) Set(ctx context.Context, w agent.ContextWrite) error {
	if err := s.h.PutContext(ctx, w); err != nil {
		return err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.entries == nil {
		s.h.entries = map[[2]string]agent.ContextEntry{}
	}
	s.h.entries[[2]string{w.Namespace, w.Key}] = agent.ContextEntry{Namespace: w.Namespace, Key: w.Key, Value: w.Value, Agent: "self"}
	return nil
}

func (s hostShared) Touch(ctx context.Context, namespace, key string, _ int64) (bool, error) {
	_, ok, err := s.Get(ctx, namespace, key)
	return ok, err
}

func (s hostShared) Delete(ctx context.Context, namespace, key string) error {
	if err := s.h.enter(ctx, "Delete"); err != nil {
		return err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	delete(s.h.entries, [2]string{namespace, key})
	return nil
}

// Over answers Gone. It does so after the end of the run, too.
func (h *Host) Over(ctx context.Context) (bool, error) { return h.Gone.Load(), ctx.Err() }
