// Package price says what a call of a model costs.
//
// The room may import model and agent.
package price

import (
	"context"
	"errors"
	"math"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// Price is what a model costs, in USD per million tokens: the providers' own unit, and
// so micro-USD per token.
type Price struct {
	Input  float64
	Output float64
	// CacheRead and CacheWritten are the prices of input that the provider took from, or
	// put into, its cache; nil is the price of input.
	CacheRead    *float64
	CacheWritten *float64
}

// MicroUSD is what the answer cost, rounded up: a budget is never passed by rounding.
func (p Price) MicroUSD(r model.Response) int64 {
	read, written := p.Input, p.Input
	if p.CacheRead != nil {
		read = *p.CacheRead
	}
	if p.CacheWritten != nil {
		written = *p.CacheWritten
	}
	plain := max(r.Usage.InputTokens-r.CacheRead-r.CacheWritten, 0)
	micro := float64(plain)*p.Input + float64(r.CacheRead)*read + float64(r.CacheWritten)*written + float64(r.Usage.OutputTokens)*p.Output
	// A float's last digit must not make a whole micro-USD of an exact figure.
	return int64(math.Min(math.Ceil(micro-1e-6), math.MaxInt64/2))
}

// Client prices the answers of next. A nil price leaves USD nil: nobody knows it.
func Client(next model.Client, p *Price) model.Client {
	if p == nil {
		return next
	}
	return client{next, *p}
}

type client struct {
	next  model.Client
	price Price
}

// Complete makes the call and prices it, the part of a failed one that was reported too.
func (c client) Complete(ctx context.Context, r model.Request, delta func(agent.Delta)) (model.Response, error) {
	res, err := c.next.Complete(ctx, r, delta)
	res.Priced = err == nil
	var failed *model.Error
	switch {
	case err == nil && res.Reported:
		res.Usage.USD = usd(c.price.MicroUSD(res))
	case errors.As(err, &failed) && failed.Usage.InputTokens+failed.Usage.OutputTokens > 0:
		failed.Usage.USD = usd(c.price.MicroUSD(model.Response{Usage: failed.Usage}))
	}
	return res, err
}

func usd(micro int64) *float64 {
	return new(float64(micro) / 1e6)
}
