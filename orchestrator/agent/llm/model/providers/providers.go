// Package providers makes model.Clients of the configured providers: adapter, price,
// keys, retry and fallback in that order.
//
// The room may import all below model, model and agent.
package providers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/anthropic"
	"gatehouse/orchestrator/agent/llm/model/fallback"
	"gatehouse/orchestrator/agent/llm/model/keys"
	"gatehouse/orchestrator/agent/llm/model/openai"
	"gatehouse/orchestrator/agent/llm/model/price"
	"gatehouse/orchestrator/agent/llm/model/retry"
)

// Kinds of providers: which protocol they speak.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai" // Chat Completions, also of every compatible server
)

// Provider is one configured service.
type Provider struct {
	Name         string
	Kind         string                 // Anthropic or OpenAI
	Keys         []string               // at least one; "" for a server that wants none
	BaseURL      string                 // OpenAI: with /v1, Anthropic: without; "" is the service's own
	Organization string                 // OpenAI only
	Idle         time.Duration          // the longest silence of one call; 0 is wire.Idle
	Prices       map[string]price.Price // by the provider's own names of models
}

// Options of a Set. Zero fields have working defaults.
type Options struct {
	Transport http.RoundTripper
	Now       func() time.Time
	Sleep     func(ctx context.Context, d time.Duration) error
	Log       *slog.Logger
}

// Set is all configured providers. Its keys rest for all clients that it makes alike. It
// is safe for concurrent use.
type Set struct {
	o         Options
	providers map[string]*service
	names     []string

	mu    sync.Mutex
	rests map[string]*fallback.Rest // by provider/name
}

// service is a provider at work.
type service struct {
	Provider
	client model.Client
}

func New(all []Provider, o Options) (*Set, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = retry.Sleep
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Set{o: o, providers: map[string]*service{}, rests: map[string]*fallback.Rest{}}
	for _, p := range all {
		c, err := s.open(p)
		if err != nil {
			return nil, err
		}
		s.providers[p.Name] = &service{Provider: p, client: c}
		s.names = append(s.names, p.Name)
	}
	slices.Sort(s.names)
	return s, nil
}

// open makes the client of all of p's models. One key works as it is (P43): resting it
// would only keep the retries from their turn.
func (s *Set) open(p Provider) (model.Client, error) {
	if len(p.Keys) == 0 {
		return nil, fmt.Errorf("provider %s has no key. Write api_keys under providers.%s", p.Name, p.Name)
	}
	var clients []model.Client
	for _, key := range p.Keys {
		switch p.Kind {
		case Anthropic:
			clients = append(clients, anthropic.New(anthropic.Options{Provider: p.Name, Key: key, BaseURL: p.BaseURL, Transport: s.o.Transport, Idle: p.Idle, Now: s.o.Now}))
		case OpenAI:
			clients = append(clients, openai.New(openai.Options{Provider: p.Name, Key: key, BaseURL: p.BaseURL, Organization: p.Organization, Transport: s.o.Transport, Idle: p.Idle, Now: s.o.Now}))
		default:
			return nil, fmt.Errorf("provider %s: kind %q is unknown. Write anthropic or openai", p.Name, p.Kind)
		}
	}
	if len(clients) == 1 {
		return clients[0], nil
	}
	return keys.New(p.Name, s.o.Now, clients...), nil
}

// Client is the client of an agent: the model "provider/name", and the fallbacks that are
// asked in order once it failed for good. It sets Request.Model itself.
func (s *Set) Client(name string, fallbacks ...string) (model.Client, error) {
	var candidates []fallback.Candidate
	for _, n := range append([]string{name}, fallbacks...) {
		p, own, err := s.find(n)
		if err != nil {
			return nil, err
		}
		var known *price.Price
		if v, ok := p.Prices[own]; ok {
			known = &v
		}
		candidates = append(candidates, fallback.Candidate{Model: own, Client: retry.New(price.Client(p.client, known), retry.Options{Sleep: s.o.Sleep, Log: s.o.Log}), Rest: s.rest(n)})
	}
	return fallback.New(s.o.Log, candidates...), nil
}

// rest is what all conversations know of one model.
func (s *Set) rest(name string) *fallback.Rest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rests[name] == nil {
		s.rests[name] = &fallback.Rest{Now: s.o.Now}
	}
	return s.rests[name]
}

// find splits "provider/name"; the name may have slashes of its own.
func (s *Set) find(name string) (*service, string, error) {
	provider, own, ok := strings.Cut(name, "/")
	if !ok || provider == "" || own == "" {
		return nil, "", fmt.Errorf("model %q: write provider/name, such as anthropic/claude-sonnet-4-5", name)
	}
	p := s.providers[provider]
	if p == nil {
		return nil, "", fmt.Errorf("model %q: there is no provider %q. Add it under providers; there are: %s", name, provider, strings.Join(s.names, ", "))
	}
	return p, own, nil
}
