package client

import (
	"context"
	"net/http"
	"net/url"

	"gatehouse/orchestrator/record/retention"
	"gatehouse/web/wire"
)

// Holds lists legal holds, newest first.
func (c *Client) Holds(ctx context.Context, lifted bool) (List[retention.Hold], error) {
	q := url.Values{}
	if lifted {
		q.Set("lifted", "true")
	}
	return list[retention.Hold](ctx, c, path("holds"), q)
}

// SetHold sets one.
func (c *Client) SetHold(ctx context.Context, h wire.NewHold) (Answer[retention.Hold], error) {
	return ask[retention.Hold](ctx, c, http.MethodPost, path("holds"), nil, h)
}

// LiftHold ends one, with the reason.
func (c *Client) LiftHold(ctx context.Context, id, reason string) (Answer[retention.Hold], error) {
	return ask[retention.Hold](ctx, c, http.MethodDelete, path("holds", id), nil, wire.Reason{Reason: reason})
}
