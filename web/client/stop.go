package client

import (
	"context"
	"net/http"

	"gatehouse/web/wire"
)

// StopAll cancels everything that runs or waits, or one agent's work.
func (c *Client) StopAll(ctx context.Context, s wire.Stop) (Answer[wire.Stopped], error) {
	return ask[wire.Stopped](ctx, c, http.MethodPost, path("delegations", "cancel"), nil, s)
}
