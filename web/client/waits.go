package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"gatehouse/web/wire"
)

// Waits reads who waits for whom in one task, or everywhere when id is "".
func (c *Client) Waits(ctx context.Context, id string, limit int) (Answer[wire.Waits], error) {
	q := url.Values{}
	set(q, "task", id)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return ask[wire.Waits](ctx, c, http.MethodGet, path("waits"), q, nil)
}
