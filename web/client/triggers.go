package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"gatehouse/web/wire"
)

// Triggers lists the configured triggers.
func (c *Client) Triggers(ctx context.Context) (List[wire.Trigger], error) {
	return list[wire.Trigger](ctx, c, path("triggers"), nil)
}

// Trigger reads one trigger.
func (c *Client) Trigger(ctx context.Context, name string) (Answer[wire.Trigger], error) {
	return ask[wire.Trigger](ctx, c, http.MethodGet, path("triggers", name), nil, nil)
}

// Deliveries lists what came for a trigger, newest first; a limit of 0 is all.
func (c *Client) Deliveries(ctx context.Context, name, state string, limit int) (List[wire.Delivery], error) {
	q := url.Values{}
	set(q, "state", state)
	return pages[wire.Delivery](ctx, c, path("triggers", name, "deliveries"), q, limit)
}

// Delivery reads a delivery with its payload, by its id alone.
func (c *Client) Delivery(ctx context.Context, id string) (Answer[wire.Delivery], error) {
	return ask[wire.Delivery](ctx, c, http.MethodGet, path("deliveries", id), nil, nil)
}

// Redeliver has a delivery delivered again.
func (c *Client) Redeliver(ctx context.Context, id string) (Answer[wire.Delivery], error) {
	return ask[wire.Delivery](ctx, c, http.MethodPost, path("deliveries", id, "redeliver"), nil, struct{}{})
}

// TryTrigger asks what a trigger would make of a payload.
func (c *Client) TryTrigger(ctx context.Context, name, event string, payload json.RawMessage) (Answer[wire.Trial], error) {
	return ask[wire.Trial](ctx, c, http.MethodPost, path("triggers", name, "test"), nil, wire.Sample{Payload: payload, Event: event})
}
