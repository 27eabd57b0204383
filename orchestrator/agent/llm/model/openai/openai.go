// Package openai speaks Chat Completions, OpenAI's and every compatible server's,
// through the official SDK.
//
// The room may import model, wire, agent and the SDK.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// Options of a Client.
type Options struct {
	Provider     string // its name in the configuration
	Key          string
	BaseURL      string // with /v1; "" is OpenAI's own
	Organization string
	Transport    http.RoundTripper // nil is the default
	Idle         time.Duration     // the longest silence; 0 is wire.Idle
	Now          func() time.Time
}

// Client is one key at one service. It is safe for concurrent use.
type Client struct {
	o Options
	// service has no defaults of the environment: the configuration alone says which key
	// goes where.
	service sdk.ChatCompletionService
}

// New makes a Client.
func New(o Options) *Client {
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMaxRetries(0), option.WithAPIKey(o.Key)}
	if o.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/")+"/"))
	}
	if o.Organization != "" {
		opts = append(opts, option.WithOrganization(o.Organization))
	}
	return &Client{o: o, service: sdk.NewChatCompletionService(opts...)}
}

// Complete makes one call.
func (c *Client) Complete(ctx context.Context, r model.Request, delta func(agent.Delta)) (model.Response, error) {
	return wire.Complete(ctx, c.o.Key, delta, func(show func(agent.Delta)) (model.Response, error) {
		params, err := c.params(r)
		if err != nil {
			return model.Response{}, err
		}
		x := wire.NewExchange(c.o.Transport, c.o.Idle)
		stream := c.service.NewStreaming(ctx, params, option.WithHTTPClient(x.Client()))
		defer stream.Close() //nolint:errcheck // nothing is written
		a := answer{show: show, provider: c.o.Provider}
		for stream.Next() {
			if err := a.chunk(stream.Current()); err != nil {
				return model.Response{}, c.failed(x, err, a)
			}
		}
		if err := stream.Err(); err != nil || a.finish == "" {
			return model.Response{}, c.failed(x, err, a)
		}
		return a.response(r.Model), nil
	})
}

// failed makes the error of a call that did not come to its end.
func (c *Client) failed(x *wire.Exchange, err error, a answer) error {
	var out *model.Error
	var api *sdk.Error
	var inside *ssestream.StreamError
	switch {
	case errors.As(err, &api) && x.Err() == nil:
		out = c.refused(api.StatusCode, api.Response, api.RawJSON())
	case errors.As(err, &inside) && x.Err() == nil:
		out = c.refused(0, nil, string(inside.Event.Data))
	case err == nil && x.Err() == nil && a.started:
		out = &model.Error{Kind: model.Network, Provider: c.o.Provider, Message: "the answer was cut before its end"}
	case err == nil && x.Err() == nil:
		out = &model.Error{Kind: model.Malformed, Provider: c.o.Provider, Message: "the answer is not of Chat Completions. Check base_url of the provider"}
	default:
		out = x.Broken(c.o.Provider, c.o.Key, err)
	}
	out.Usage = a.tokens.Usage()
	return out
}

// refused reads what the service said. The SDK gives the error's own object, or the
// whole of what came inside a stream.
func (c *Client) refused(status int, res *http.Response, raw string) *model.Error {
	f := wire.Failure{Provider: c.o.Provider, Key: c.o.Key, Status: status, Text: raw, Now: c.o.Now()}
	if f.Status < 300 {
		f.Status = 0
	}
	if res != nil {
		f.Header = res.Header
	}
	type words struct {
		Type    string `json:"type"`
		Code    any    `json:"code"` // compatible servers write numbers, too
		Message string `json:"message"`
	}
	var said struct {
		words
		Error words `json:"error"`
	}
	if err := json.Unmarshal([]byte(raw), &said); err == nil {
		w := said.Error
		if w.Message == "" {
			w = said.words
		}
		if w.Message != "" {
			f.Type, f.Text = w.Type, w.Message
			f.Code, _ = w.Code.(string)
		}
	}
	return f.Error()
}
