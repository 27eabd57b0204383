package client

import (
	"context"
	"net/http"
	"time"

	"gatehouse/web/wire"
)

// Ask asks, as the client's run, whether a call may be made, or people a question; it waits at
// most about 30 s. Where the state is open, ask again.
func (c *Client) Ask(ctx context.Context, in wire.Ask) (Answer[wire.Answered], error) {
	held := *c
	held.calls = 30*time.Second + Timeout // the server holds the answer for 30 s
	return ask[wire.Answered](ctx, &held, http.MethodPost, path("asks"), nil, in)
}

// Grants lists what people allowed for the rest of the task of a delegation.
func (c *Client) Grants(ctx context.Context, id string) (Answer[wire.Grants], error) {
	return ask[wire.Grants](ctx, c, http.MethodGet, path("delegations", id, "grants"), nil, nil)
}

// Revoke ends a grant.
func (c *Client) Revoke(ctx context.Context, id string) (Answer[wire.Grant], error) {
	return ask[wire.Grant](ctx, c, http.MethodDelete, path("grants", id), nil, nil)
}
