package main

import (
	"context"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/store"

	"golang.org/x/sys/unix"
)

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
