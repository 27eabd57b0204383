// Package anthropic speaks the Messages API of Anthropic, through its official SDK.
//
// The room may import model, wire, agent and the SDK.
package anthropic

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

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// defaultMaxTokens is the length of an answer when nobody says one: the API wants a
// figure, and the smallest of the models in use takes this one.
const defaultMaxTokens = 8192

// Options of a Client.
type Options struct {
	Provider  string // its name in the configuration
	Key       string
	BaseURL   string            // without /v1; "" is Anthropic's own
	Transport http.RoundTripper // nil is the default
	Idle      time.Duration     // the longest silence; 0 is wire.Idle
	Now       func() time.Time
}

// Client is one key at one service. It is safe for concurrent use.
type Client struct {
	o Options
	// service has no defaults of the environment: the configuration alone says which key
	// goes where.
	service sdk.MessageService
}

// New makes a Client.
func New(o Options) *Client {
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMaxRetries(0), option.WithAPIKey(o.Key)}
	if o.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/")+"/"))
	}
	return &Client{o: o, service: sdk.NewMessageService(opts...)}
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
		for !a.ended && stream.Next() {
			if err := a.event(stream.Current()); err != nil {
				return model.Response{}, c.failed(x, err, a)
			}
		}
		if !a.ended {
			return model.Response{}, c.failed(x, stream.Err(), a)
		}
		return a.response(r.Model), nil
	})
}

// failed makes the error of a call that did not come to its end.
func (c *Client) failed(x *wire.Exchange, err error, a answer) error {
	var out *model.Error
	var api *sdk.Error
	switch {
	case errors.As(err, &api) && x.Err() == nil:
		out = c.refused(api)
	case err == nil && x.Err() == nil && a.started:
		out = &model.Error{Kind: model.Network, Provider: c.o.Provider, Message: "the answer was cut before its end"}
	case err == nil && x.Err() == nil:
		out = &model.Error{Kind: model.Malformed, Provider: c.o.Provider, Message: "the answer is not of the Messages API. Check base_url of the provider"}
	default:
		out = x.Broken(c.o.Provider, c.o.Key, err)
	}
	out.Usage = a.tokens.Usage()
	return out
}

// refused reads what the service said.
func (c *Client) refused(api *sdk.Error) *model.Error {
	f := wire.Failure{Provider: c.o.Provider, Key: c.o.Key, Status: api.StatusCode, Text: api.RawJSON(), Now: c.o.Now()}
	if f.Status < 300 {
		f.Status = 0 // the failure came inside a stream that had begun well
	}
	if api.Response != nil {
		f.Header = api.Response.Header
	}
	var said struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(api.RawJSON()), &said) == nil && said.Error.Message != "" {
		f.Type, f.Text = said.Error.Type, said.Error.Message
	}
	return f.Error()
}
