package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
)

// stuckAfter is how long past its lease a run counts as stuck: a living node takes it up
// within a second or two.
const stuckAfter = 30 * time.Second

// inboxes is how full the queue of each agent is.
func (h *house) inboxes(ctx context.Context) (map[string]orchestrator.Inbox, error) {
	all, err := h.engine.Agents(ctx)
	found := make(map[string]orchestrator.Inbox, len(all))
	for _, a := range all {
		found[a.Spec.Name] = a.Inbox
	}
	return found, err
}

// figures reads what /metrics tells.
func (h *house) figures(ctx context.Context) (handlers.Figures, error) {
	var f handlers.Figures
	var err error
	read := func(part func() error) {
		if err == nil {
			err = part()
		}
	}
	read(func() (e error) { f.Live, e = h.store.Live(ctx); return })
	read(func() (e error) { f.Pending, e = h.store.PendingCount(ctx); return })
	read(func() (e error) { f.Events, e = h.store.LastPosition(ctx); return })
	read(func() (e error) { f.Stuck, e = h.store.Stuck(ctx, time.Now().Add(-stuckAfter)); return })
	read(func() (e error) { f.Sums, e = h.store.AllTime(ctx); return })
	read(func() (e error) { f.Breakers, e = h.store.Breakers(ctx); return })
	read(func() (e error) { f.Inboxes, e = h.inboxes(ctx); return })
	f.Used, f.Slots = h.engine.Slots()
	f.Watchers, f.Dropped = h.engine.Hub().Stats()
	for _, s := range h.engine.Config().Agents.All() {
		f.Agents = append(f.Agents, s.Name)
		for _, model := range append([]string{s.Model}, s.Fallbacks...) {
			// Providers answer with or without their own name in front.
			_, bare, _ := strings.Cut(model, "/")
			f.Models = append(f.Models, model, bare)
		}
	}
	f.Models = slices.DeleteFunc(f.Models, func(m string) bool { return m == "" })
	return f, err
}
