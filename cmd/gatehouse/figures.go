package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/store"

	"golang.org/x/sys/unix"
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

// forgetNode is how long a node that fell silent is told of.
const forgetNode = 24 * time.Hour

// alive says that this node lives, and forgets those that fell silent long ago.
func (h *house) alive(ctx context.Context) error {
	if err := h.store.SaveNode(ctx, store.Node{Name: h.node, URL: h.address.Load().(string)}); err != nil {
		return err
	}
	return h.store.DropNode(ctx, "", time.Now().Add(-forgetNode))
}

// leave says that this node ends; one that cannot say so is told of as silent.
func (h *house) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := h.store.DropNode(ctx, h.node, time.Time{}); err != nil {
		h.log.Warn("the other nodes were not told that this one ends", "err", err)
	}
}

// condition reads how the house itself does, for the overview.
func (h *house) condition(ctx context.Context) (handlers.Condition, error) {
	var c handlers.Condition
	nodes, err := h.store.Nodes(ctx, time.Now().Add(-forgetNode))
	if err != nil {
		return c, err
	}
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, handlers.NodeSeen{Name: n.Name, Seen: n.Seen})
	}
	if c.Behind, _, err = h.behind(ctx); err != nil {
		return c, err
	}
	if c.Sealed, c.Unsealed, err = h.store.Sealed(ctx); err != nil {
		return c, err
	}
	var disk unix.Statfs_t
	if unix.Statfs(h.cfg.Data, &disk) == nil { // a disk that cannot be asked says nothing
		c.Free = disk.Bavail * uint64(disk.Bsize)
	}
	return c, nil
}
