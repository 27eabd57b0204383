package price

import (
	"context"
	"errors"
	"math"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

func TestWhatACallCosts(t *testing.T) {
	cheap, dear := 0.3, 3.75
	for _, c := range []struct {
		name string
		p    Price
		r    model.Response
		want int64 // micro-USD
	}{
		{"nothing", Price{Input: 3, Output: 15}, model.Response{}, 0},
		{"a million in, a million out", Price{Input: 3, Output: 15}, model.Response{Usage: agent.Usage{InputTokens: 1e6, OutputTokens: 1e6}}, 18e6},
		{"one token is rounded up", Price{Input: 0.1, Output: 0}, model.Response{Usage: agent.Usage{InputTokens: 1}}, 1},
		{"an exact figure is not", Price{Input: 0.1, Output: 0}, model.Response{Usage: agent.Usage{InputTokens: 30}}, 3},
		{"cached input at the price of input", Price{Input: 3}, model.Response{Usage: agent.Usage{InputTokens: 100}, CacheRead: 50}, 300},
		{"cached input at its own", Price{Input: 3, CacheRead: &cheap, CacheWritten: &dear}, model.Response{Usage: agent.Usage{InputTokens: 100}, CacheRead: 50, CacheWritten: 40}, 30 + 15 + 150},
		{"more cached than there is", Price{Input: 3, CacheRead: &cheap}, model.Response{Usage: agent.Usage{InputTokens: 10}, CacheRead: 50}, 15},
		{"more than can be counted", Price{Input: 1e300}, model.Response{Usage: agent.Usage{InputTokens: 1e9}}, math.MaxInt64/2 + 1},
	} {
		if got := c.p.MicroUSD(c.r); got != c.want {
			t.Errorf("%s costs %d, want %d", c.name, got, c.want)
		}
	}
}

type fixed struct {
	res model.Response
	err error
}

func (f fixed) Complete(context.Context, model.Request, func(agent.Delta)) (model.Response, error) {
	return f.res, f.err
}

func TestOnlyWhatIsKnownIsPriced(t *testing.T) {
	used := agent.Usage{InputTokens: 1e6, OutputTokens: 1e6}
	p := &Price{Input: 3, Output: 15}
	res, err := Client(fixed{res: model.Response{Usage: used, Reported: true}}, p).Complete(t.Context(), model.Request{}, nil)
	if err != nil || res.Usage.USD == nil || *res.Usage.USD != 18 {
		t.Errorf("a call costs %v, %v; want 18", res.Usage.USD, err)
	}
	for name, c := range map[string]model.Client{
		"a model without a price": Client(fixed{res: model.Response{Usage: used, Reported: true}}, nil),
		"a call without usage":    Client(fixed{}, p),
	} {
		if res, err := c.Complete(t.Context(), model.Request{}, nil); err != nil || res.Usage.USD != nil {
			t.Errorf("%s costs %v, %v; want not known", name, *res.Usage.USD, err)
		}
	}
	cut := &model.Error{Kind: model.Network, Usage: agent.Usage{InputTokens: 1e6}}
	if _, err := Client(fixed{err: cut}, p).Complete(t.Context(), model.Request{}, nil); !errors.Is(err, cut) || cut.Usage.USD == nil || *cut.Usage.USD != 3 {
		t.Errorf("a cut call costs %v", cut.Usage.USD)
	}
}
