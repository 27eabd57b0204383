// Package wire is what every provider's adapter needs of HTTP: one bounded exchange that is
// answered by events, the kinds of failures, how long to wait, and words without secrets in them.
//
// The room may import model and agent.
package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// The bounds of one exchange.
const (
	// Idle is how long a provider may send nothing. Models that think for long send
	// nothing either, so it is minutes.
	Idle = 5 * time.Minute
	// Limit is how many bytes one answer may have. The longest answers of today's models
	// are about 1 MB on the wire.
	Limit = 32 << 20
)

var (
	errIdle     = errors.New("nothing came for too long")
	errRedirect = errors.New("it points to another address, which is not followed, for the key would go there, too. Check base_url of the provider")
	errLimit    = fmt.Errorf("the answer is longer than %d MB", Limit>>20)
)

// Exchange is the HTTP of one call: it watches the silence and the length, follows no
// redirect (it would carry the key elsewhere) and remembers how reading failed. It is
// made for each call.
type Exchange struct {
	base http.RoundTripper
	idle time.Duration

	mu  sync.Mutex
	err error
}

// NewExchange makes an Exchange over base, which nil makes the default; idle 0 is Idle.
func NewExchange(base http.RoundTripper, idle time.Duration) *Exchange {
	if base == nil {
		base = http.DefaultTransport
	}
	return &Exchange{base: base, idle: cmp.Or(max(idle, 0), Idle)}
}

// RoundTrip makes an Exchange an http.RoundTripper.
func (x *Exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(x.idle, func() { cancel(errIdle) })
	res, err := x.base.RoundTrip(req.WithContext(ctx))
	if err == nil && res.StatusCode >= 300 && res.StatusCode < 400 {
		res.Body.Close() //nolint:errcheck // nobody reads it
		err = errRedirect
	}
	if err != nil {
		timer.Stop()
		err = x.failed(ctx, err)
		cancel(nil)
		return nil, err
	}
	res.Body = &body{ReadCloser: res.Body, x: x, ctx: ctx, cancel: cancel, timer: timer, left: Limit}
	return res, nil
}

// failed remembers why the exchange broke; silence and length are named.
func (x *Exchange) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		err = fmt.Errorf("%w (%s)", errIdle, x.idle)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
	}
	return err
}

// Err is how connecting or reading failed, nil when the provider's bytes all came.
func (x *Exchange) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// body is a response's body with the exchange's bounds.
type body struct {
	io.ReadCloser
	x      *Exchange
	ctx    context.Context //nolint:containedctx // a body outlives the call that made it
	cancel context.CancelCauseFunc
	timer  *time.Timer
	left   int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.x.failed(b.ctx, errLimit)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if n > 0 {
		b.timer.Reset(b.x.idle)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.x.failed(b.ctx, err)
	}
	return n, err
}

func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// Complete runs one call of an adapter: it says with a reset that the parts of a failed
// call are void, and makes an error of ctx of every failure after ctx ended. A service that
// repeats the key gets it into no answer: those are stored, shown and exported.
func Complete(ctx context.Context, key string, delta func(agent.Delta), call func(show func(agent.Delta)) (model.Response, error)) (model.Response, error) {
	shown := false
	show := func(d agent.Delta) {
		if delta != nil && (d.Text != "" || d.Tool != "") {
			shown = true
			d.Text = hide(d.Text, key)
			delta(d)
		}
	}
	res, err := call(show)
	if err == nil {
		for i, b := range res.Message.Blocks {
			b.Text, b.Name = hide(b.Text, key), hide(b.Name, key)
			if bytes.Contains(b.Input, []byte(key)) {
				b.Input = json.RawMessage(hide(string(b.Input), key))
			}
			if bytes.Contains(b.Opaque, []byte(key)) {
				b.Opaque = json.RawMessage(hide(string(b.Opaque), key))
			}
			res.Message.Blocks[i] = b
		}
		return res, nil
	}
	if shown {
		delta(agent.Delta{Kind: agent.DeltaReset})
	}
	if ctx.Err() != nil {
		return model.Response{}, fmt.Errorf("the call of the model was stopped: %w", context.Cause(ctx))
	}
	return model.Response{}, err
}

// minKey is how long a key must be to be taken out of texts: servers at home take any word.
const minKey = 12

func hide(text, key string) string {
	if len(key) < minKey {
		return text
	}
	return strings.ReplaceAll(text, key, "[key]")
}
