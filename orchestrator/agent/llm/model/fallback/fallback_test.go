package fallback

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

type fixed struct {
	err   error
	asked *[]string
}

func (f fixed) Complete(_ context.Context, r model.Request, _ func(agent.Delta)) (model.Response, error) {
	*f.asked = append(*f.asked, r.Model)
	return model.Response{Model: r.Model, Usage: agent.Usage{InputTokens: 1}}, f.err
}

func TestWhoIsAskedNext(t *testing.T) {
	bug := errors.New("a bug")
	for _, c := range []struct {
		name  string
		errs  []error
		asked string
		fine  bool
	}{
		{"the first answers", []error{nil, nil}, "a", true},
		{"the first failed for good (P26)", []error{&model.Error{Kind: model.RateLimited}, nil}, "a b", true},
		{"no credit", []error{&model.Error{Kind: model.Billing}, nil}, "a b", true},
		{"all keys rest", []error{&model.Error{Kind: model.Resting}, &model.Error{Kind: model.Auth}, nil}, "a b c", true},
		{"all failed", []error{&model.Error{Kind: model.Server}, &model.Error{Kind: model.Auth}}, "a b", false},
		{"too long", []error{&model.Error{Kind: model.Overflow}, nil}, "a", false},
		{"refused", []error{&model.Error{Kind: model.Invalid}, nil}, "a", false},
		{"no failure of the provider", []error{bug, nil}, "a", false},
		{"none beside it", []error{&model.Error{Kind: model.Server}}, "a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			var candidates []Candidate
			for i, err := range c.errs {
				candidates = append(candidates, Candidate{Model: string(rune('a' + i)), Client: fixed{err, &asked}})
			}
			_, err := New(slog.New(slog.DiscardHandler), candidates...).Complete(t.Context(), model.Request{}, nil)
			if got := strings.Join(asked, " "); got != c.asked || (err == nil) != c.fine {
				t.Errorf("asked were %s, ended with %v; want %s", got, err, c.asked)
			}
			if err != nil && !errors.Is(err, c.errs[0]) {
				t.Errorf("the error %v hides the first failure", err)
			}
		})
	}
}

func TestNobodyIsAskedAfterTheEnd(t *testing.T) {
	var asked []string
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := Candidate{Model: "a", Client: fixed{&model.Error{Kind: model.Network}, &asked}}
	if _, err := New(slog.New(slog.DiscardHandler), a, a).Complete(ctx, model.Request{}, nil); err == nil || len(asked) != 1 {
		t.Errorf("asked were %v, %v", asked, err)
	}
}

func TestUsageOfTheFailedIsCounted(t *testing.T) {
	var asked []string
	a := Candidate{Model: "a", Client: fixed{&model.Error{Kind: model.Network, Usage: agent.Usage{InputTokens: 7}}, &asked}}
	b := Candidate{Model: "b", Client: fixed{nil, &asked}}
	res, err := New(slog.New(slog.DiscardHandler), a, b).Complete(t.Context(), model.Request{}, nil)
	if err != nil || res.Usage.InputTokens != 8 || res.Model != "b" {
		t.Errorf("the answer is %+v, %v", res, err)
	}
}

// A model that failed is asked last for a minute, so that not every turn waits through
// its retries; where all rest, all are asked all the same.
func TestAModelThatFailedRests(t *testing.T) {
	var asked []string
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	down := &model.Error{Kind: model.Server}
	first, second := fixed{down, &asked}, fixed{nil, &asked}
	candidates := []Candidate{{"a", &first, &Rest{Now: clock}}, {"b", &second, &Rest{Now: clock}}}
	ask := func(want string) {
		t.Helper()
		asked = nil
		if _, err := New(slog.New(slog.DiscardHandler), candidates...).Complete(t.Context(), model.Request{}, nil); err != nil && first.err == nil {
			t.Error(err)
		}
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("asked were %s, want %s", got, want)
		}
	}
	ask("a b")
	ask("b")
	second.err = down
	ask("b a") // the first is better than none
	now = now.Add(restFor)
	first.err, second.err = nil, nil
	ask("a")
	ask("a")
}
