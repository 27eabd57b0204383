// Package openai speaks Chat Completions, OpenAI's and every compatible server's.
//
// The room may import model, wire and agent.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"
)

// service is OpenAI's own address.
const service = "https://api.openai.com/v1"

type Options struct {
	Provider     string // its name in the configuration
	Key          string // "" sends none
	BaseURL      string // with /v1; "" is OpenAI's own
	Organization string
	Transport    http.RoundTripper // nil is the default
	Idle         time.Duration     // the longest silence; 0 is wire.Idle
	Now          func() time.Time
}

// Client is one key at one service. It is safe for concurrent use. The environment says
// nothing: the configuration alone says which key goes where.
type Client struct{ o Options }

func New(o Options) *Client { return &Client{o: o} }

// Complete makes one call.
func (c *Client) Complete(ctx context.Context, r model.Request, delta func(agent.Delta)) (model.Response, error) {
	return wire.Complete(ctx, c.o.Key, delta, func(show func(agent.Delta)) (model.Response, error) {
		x := wire.NewExchange(c.o.Transport, c.o.Idle)
		a := answer{show: show, provider: c.o.Provider}
		if err := c.stream(ctx, x, c.request(r), &a); err != nil || a.finish == "" {
			return model.Response{}, c.failed(x, err, a)
		}
		return a.response(r.Model), nil
	})
}

// stream sends q and gathers what comes in a.
func (c *Client) stream(ctx context.Context, x *wire.Exchange, q request, a *answer) error {
	header := http.Header{}
	if c.o.Key != "" {
		header.Set("Authorization", "Bearer "+c.o.Key)
	}
	if c.o.Organization != "" {
		header.Set("OpenAI-Organization", c.o.Organization)
	}
	base := cmp.Or(c.o.BaseURL, service)
	events, err := x.Post(ctx, base, "chat/completions", header, q)
	if err != nil {
		return err
	}
	defer events.Close() //nolint:errcheck // nothing is written
	for events.Next() {
		if bytes.HasPrefix(events.Data(), []byte("[DONE]")) {
			return nil
		}
		if len(events.Data()) == 0 {
			continue
		}
		var next chunk
		if err := wire.Decode(events.Data(), &next); err != nil {
			return err
		}
		if next.Error != nil {
			return events.Refused()
		}
		if err := a.chunk(next); err != nil {
			return err
		}
	}
	return events.Err()
}

// failed makes the error of a call that did not come to its end.
func (c *Client) failed(x *wire.Exchange, err error, a answer) error {
	out := x.Failed(c.o.Provider, c.o.Key, "Chat Completions", err, a.started, c.refused)
	out.Usage = a.tokens.Usage()
	return out
}

// refused reads what the service said: an object under error, or only a sentence there. The
// page of a proxy in between says nothing; the status does.
func (c *Client) refused(r *wire.Refused) *model.Error {
	type words struct {
		Type    wire.Text `json:"type"`
		Code    wire.Text `json:"code"`
		Message wire.Text `json:"message"`
	}
	var said struct {
		words
		Error json.RawMessage `json:"error"`
	}
	wire.Decode(r.Body, &said) //nolint:errcheck // what is no JSON has no words
	f := wire.Failure{Provider: c.o.Provider, Key: c.o.Key, Status: r.Status, Header: r.Header, Text: string(said.Error), Now: c.o.Now()}
	if r.Status == 0 {
		f.Text = string(r.Body)
	}
	var inside words
	var sentence string
	if json.Unmarshal(said.Error, &sentence) == nil && sentence != "" {
		inside.Message = wire.Text(sentence)
	} else if said.Error != nil {
		wire.Decode(said.Error, &inside) //nolint:errcheck // it is a part of what was read
	}
	if inside.Message == "" {
		inside = said.words
	}
	if inside.Message != "" {
		f.Type, f.Code, f.Text = string(inside.Type), string(inside.Code), string(inside.Message)
	}
	return f.Error()
}
