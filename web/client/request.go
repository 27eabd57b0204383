package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"gatehouse/web/wire"
)

// Request reads one request.
func (c *Client) Request(ctx context.Context, id string) (Answer[wire.Request], error) {
	return ask[wire.Request](ctx, c, http.MethodGet, path("approvals", id), nil, nil)
}

// RequestFilter chooses requests; zero values choose everything.
type RequestFilter struct {
	State  string
	TaskID string
	Limit  int // 0: all
}

// Requests lists requests, newest first, over as many pages as the limit asks for.
func (c *Client) Requests(ctx context.Context, f RequestFilter) (List[wire.Request], error) {
	q := url.Values{}
	set(q, "state", f.State)
	set(q, "task_id", f.TaskID)
	return pages[wire.Request](ctx, c, path("approvals"), q, f.Limit)
}

// Patch writes the unified diff of the current revision to w and returns the digest
// of the revision that it belongs to, "" where the server does not say. That somebody has it
// before them is told by HasRead.
func (c *Client) Patch(ctx context.Context, id string, w io.Writer) (string, error) {
	h, err := c.stream(ctx, path("approvals", id)+"/patch", url.Values{"read": {"later"}}, w, "text/x-diff, application/problem+json")
	if err != nil {
		return "", err
	}
	return h.Get("Gatehouse-Digest"), nil
}

// HasRead tells that the whole diff of a revision was before the caller.
func (c *Client) HasRead(ctx context.Context, id string, s wire.Shown) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, path("approvals", id, "read"), nil, s)
	return err
}

// Revert asks for a new task whose change undoes what a request has landed.
func (c *Client) Revert(ctx context.Context, id string) (Answer[wire.Submitted], error) {
	return ask[wire.Submitted](ctx, c, http.MethodPost, path("approvals", id, "revert"), nil, nil)
}

// Decide sends a verdict and returns the request as it is then.
func (c *Client) Decide(ctx context.Context, id string, v wire.Verdict) (Answer[wire.Request], error) {
	if v.Digest == "" {
		return Answer[wire.Request]{}, fmt.Errorf("a verdict on %s names no digest", id)
	}
	return ask[wire.Request](ctx, c, http.MethodPost, path("approvals", id, "decision"), nil, v)
}

// PolicyTest tries rules on the requests of a length of time, such as 30d; absent are the rules
// that the server has in force.
func (c *Client) PolicyTest(ctx context.Context, t wire.PolicyTest) (Answer[wire.PolicyTrial], error) {
	method, q, body := http.MethodGet, url.Values{}, any(nil)
	if t.Rules != nil || t.Actions != nil {
		method, body = http.MethodPost, t
	} else {
		set(q, "since", t.Since)
	}
	return ask[wire.PolicyTrial](ctx, c, method, path("policy", "test"), q, body)
}
