package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model/price"
	"gatehouse/orchestrator/agent/llm/model/providers"
)

// Provider is a service with models.
type Provider struct {
	Kind         string           `yaml:"kind" words:"anthropic openai"` // anthropic or openai; a provider of that name needs none
	APIKeys      []string         `yaml:"api_keys"`
	APIKey       string           `yaml:"api_key"`
	BaseURL      string           `yaml:"base_url"`
	Organization string           `yaml:"organization"`
	Timeout      string           `yaml:"timeout"` // the longest silence of one call
	Prices       map[string]Price `yaml:"prices"`  // by the provider's own names of models
}

// Price is what a model costs, in USD per million tokens.
type Price struct {
	Input      *float64 `yaml:"input"`
	Output     *float64 `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`
	CacheWrite *float64 `yaml:"cache_write"`
}

// providers reads the services with models. One that cannot be asked is left out and
// named in a warning: a file may list services whose agents come later.
func (b *builder) providers() []providers.Provider {
	var all []providers.Provider
	for _, name := range slices.Sorted(maps.Keys(b.file.Providers)) {
		p := b.file.Providers[name]
		where := at("providers", name)
		if err := agent.CheckName(name); err != nil {
			b.bad(where, "provider name %q: use letters, digits, - _ and ., starting with a letter or digit.", name)
		}
		out := providers.Provider{Name: name, Kind: b.providerKind(name, p), Keys: keysOf(p), BaseURL: p.BaseURL, Organization: p.Organization,
			Idle: b.duration(append(where, "timeout"), p.Timeout, 0), Prices: b.prices(name, p.Prices)}
		if p.BaseURL != "" {
			if _, ok := webAddress(p.BaseURL); !ok {
				b.bad(append(where, "base_url"), "%q is no address of a service. Write https://host/path.", masked(p.BaseURL))
			}
		}
		switch {
		case len(out.Keys) > 0:
		case p.BaseURL != "":
			out.Keys = []string{""} // a server of one's own may want none
		default:
			b.warnings = append(b.warnings, fmt.Sprintf("provider %s has no key; agents with its models cannot run. Write api_keys: under providers.%s.", name, name))
			continue
		}
		all = append(all, out)
	}
	return all
}

// providerKind is the protocol that the provider speaks.
func (b *builder) providerKind(name string, p Provider) string {
	switch {
	case p.Kind != "":
		return p.Kind
	case name == providers.Anthropic:
		return providers.Anthropic
	case name != providers.OpenAI && p.BaseURL == "":
		b.bad(at("providers", name), "provider %s: it is not known where it is. Write base_url: with its address, and kind: anthropic or openai with its protocol.", name)
	}
	return providers.OpenAI
}

// keysOf is the provider's keys without blanks and repetitions; api_keys wins over
// api_key (P43).
func keysOf(p Provider) []string {
	keys := p.APIKeys
	if len(keys) == 0 {
		keys = []string{p.APIKey}
	}
	var out []string
	for _, k := range keys {
		if k = strings.TrimSpace(k); k != "" && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// prices reads what models cost.
func (b *builder) prices(provider string, all map[string]Price) map[string]price.Price {
	out := make(map[string]price.Price, len(all))
	for name, p := range all {
		where := at("providers", provider, "prices", name)
		if p.Input == nil || p.Output == nil {
			b.bad(where, "the price of %s is not complete. Write {input: USD, output: USD} per million tokens.", name)
			continue
		}
		for _, v := range []*float64{p.Input, p.Output, p.CacheRead, p.CacheWrite} {
			if v != nil && (!(*v >= 0) || math.IsInf(*v, 0)) {
				b.bad(where, "the price of %s is no amount of money. Write USD per million tokens, 0 or more.", name)
			}
		}
		out[name] = price.Price{Input: *p.Input, Output: *p.Output, CacheRead: p.CacheRead, CacheWritten: p.CacheWrite}
	}
	return out
}
