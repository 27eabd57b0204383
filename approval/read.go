package approval

import (
	"context"
	"errors"

	"gatehouse/orchestrator"
)

// Request reads a request by its whole id.
func (g *Gateway) Request(ctx context.Context, id string) (Request, error) {
	r, err := g.store.Request(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return Request{}, orchestrator.Errorf(orchestrator.CodeNotFound, "There is no approval request %q. It may be in another database. (%w)", id, err)
	}
	return r, err
}

// Requests reads a page of requests, newest first.
func (g *Gateway) Requests(ctx context.Context, f Filter) (Page, error) {
	return g.store.Requests(ctx, f)
}
