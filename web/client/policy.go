package client

import (
	"context"
	"net/http"
	"net/url"

	"gatehouse/web/wire"
)

// PolicyTest tries rules on the requests of that length of time, such as 30d; nil are
// the rules that the server has in force.
func (c *Client) PolicyTest(ctx context.Context, since string, rules []wire.PolicyRule) (Answer[wire.PolicyTrial], error) {
	method, q, body := http.MethodGet, url.Values{}, any(nil)
	if rules != nil {
		method, body = http.MethodPost, wire.PolicyTest{Since: since, Rules: &rules}
	} else {
		set(q, "since", since)
	}
	return ask[wire.PolicyTrial](ctx, c, method, path("policy", "test"), q, body)
}
