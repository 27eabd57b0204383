// Package anthropic speaks the Messages API of Anthropic.
//
// The room may import model, wire and agent.
package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"
)

const (
	// service is Anthropic's own address.
	service = "https://api.anthropic.com"
	// version is the API's, which each call names.
	version = "2023-06-01"
	// defaultMaxTokens is the length of an answer when nobody says one: the API wants a
	// figure, and the smallest of the models in use takes this one.
	defaultMaxTokens = 8192
)

type Options struct {
	Provider  string            // its name in the configuration
	Key       string            // "" sends none
	BaseURL   string            // without /v1; "" is Anthropic's own
	Transport http.RoundTripper // nil is the default
	Idle      time.Duration     // the longest silence; 0 is wire.Idle
	Now       func() time.Time
}

// Client is one key at one service. It is safe for concurrent use. The environment says
// nothing: the configuration alone says which key goes where.
type Client struct{ o Options }

func New(o Options) *Client { return &Client{o: o} }

// Complete makes one call.
func (c *Client) Complete(ctx context.Context, r model.Request, delta func(agent.Delta)) (model.Response, error) {
	return wire.Complete(ctx, c.o.Key, delta, func(show func(agent.Delta)) (model.Response, error) {
		q, err := c.request(r)
		if err != nil {
			return model.Response{}, err
		}
		x := wire.NewExchange(c.o.Transport, c.o.Idle)
		a := answer{show: show, provider: c.o.Provider}
		if err := c.stream(ctx, x, q, &a); err != nil || !a.ended {
			return model.Response{}, c.failed(x, err, a)
		}
		return a.response(r.Model), nil
	})
}

// stream sends q and gathers what comes in a, until its end.
func (c *Client) stream(ctx context.Context, x *wire.Exchange, q request, a *answer) error {
	header := http.Header{"Anthropic-Version": {version}}
	if c.o.Key != "" {
		header.Set("X-Api-Key", c.o.Key)
	}
	base := cmp.Or(c.o.BaseURL, service)
	events, err := x.Post(ctx, base, "v1/messages", header, q)
	if err != nil {
		return err
	}
	defer events.Close() //nolint:errcheck // nothing is written
	for !a.ended && events.Next() {
		switch {
		case events.Name() == "error":
			return events.Refused()
		case events.Name() == "" || events.Name() == "ping" || len(bytes.TrimSpace(events.Data())) == 0:
			continue
		}
		var next event
		if err := wire.Decode(events.Data(), &next); err != nil {
			return err
		}
		if err := a.event(next); err != nil {
			return err
		}
	}
	return events.Err()
}

// failed makes the error of a call that did not come to its end.
func (c *Client) failed(x *wire.Exchange, err error, a answer) error {
	out := x.Failed(c.o.Provider, c.o.Key, "the Messages API", err, a.started, c.refused)
	out.Usage = a.tokens.Usage()
	return out
}

// refused reads what the service said.
func (c *Client) refused(r *wire.Refused) *model.Error {
	f := wire.Failure{Provider: c.o.Provider, Key: c.o.Key, Status: r.Status, Header: r.Header, Text: string(r.Body), Now: c.o.Now()}
	var said struct {
		Error struct {
			Type    wire.Text `json:"type"`
			Message wire.Text `json:"message"`
		} `json:"error"`
	}
	if wire.Decode(r.Body, &said) == nil && said.Error.Message != "" {
		f.Type, f.Text = string(said.Error.Type), string(said.Error.Message)
	}
	return f.Error()
}
