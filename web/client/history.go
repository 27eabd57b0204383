package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"gatehouse/orchestrator/record/retention"
	"gatehouse/web/wire"
)

// Line is a list with a line of filters. Its days are UTC.
type Line struct {
	List   string // requests, delegations or events; "" is requests
	Filter string
}

func (l Line) query() url.Values {
	q := url.Values{"filter": {l.Filter}}
	set(q, "list", l.List)
	return q
}

// Audit lists what the line takes, newest first; each item is of the list's shape. limit 0
// is all.
func (c *Client) Audit(ctx context.Context, l Line, limit int) (List[json.RawMessage], error) {
	return pages[json.RawMessage](ctx, c, path("audit"), l.query(), limit)
}

// ExportLine writes everything that the line takes to w, as jsonl or csv.
func (c *Client) ExportLine(ctx context.Context, l Line, format string, w io.Writer) error {
	q := l.query()
	set(q, "format", format)
	_, err := c.stream(ctx, path("audit", "export"), q, w, "application/jsonl, text/csv, application/problem+json")
	return err
}

// ExportRequest writes everything about the task of a request to w, as a sealed bundle.
func (c *Client) ExportRequest(ctx context.Context, id string, w io.Writer) error {
	_, err := c.stream(ctx, path("approvals", id, "evidence"), url.Values{"format": {"bundle"}}, w, "application/jsonl, application/problem+json")
	return err
}

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
