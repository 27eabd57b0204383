package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent/llm/model/providers"
)

// P43: api_keys wins over api_key, a single key works as before, several make a rotation.
func TestKeysOfAProvider(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"one key", `{api_key: a}`, []string{"a"}},
		{"several", `{api_keys: [a, b]}`, []string{"a", "b"}},
		{"both: the list wins", `{api_key: z, api_keys: [a, b]}`, []string{"a", "b"}},
		{"the same twice, and a blank", `{api_keys: [a, " ", a]}`, []string{"a"}},
		{"an empty list", `{api_key: z, api_keys: []}`, []string{"z"}},
		{"none, at an address of one's own", `{base_url: "http://localhost:11434/v1"}`, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Parse("", []byte("providers: {openai: "+c.text+"}\n"), env())
			if err != nil {
				t.Fatal(err)
			}
			if len(cfg.Providers) != 1 || !slices.Equal(cfg.Providers[0].Keys, c.want) {
				t.Errorf("the providers are %+v, want keys %q", cfg.Providers, c.want)
			}
		})
	}
}

func TestAProviderIsUnderstood(t *testing.T) {
	cfg, err := Parse("", []byte(`providers:
  anthropic: {api_keys: ["${KEY}"], prices: {claude-sonnet-4-5: {input: 3, output: 15, cache_read: 0.3}}}
  claude-proxy: {kind: anthropic, api_key: x, base_url: "https://proxy.example/llm", timeout: 90s}
  local: {base_url: "http://localhost:8000/v1"}
  openai: {api_key: y, organization: org-1}
  unused: {kind: openai}
`), env("KEY", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]providers.Provider{}
	for _, p := range cfg.Providers {
		byName[p.Name] = p
	}
	if p := byName["anthropic"]; p.Kind != providers.Anthropic || p.Keys[0] != "secret" || p.Prices["claude-sonnet-4-5"].Output != 15 || *p.Prices["claude-sonnet-4-5"].CacheRead != 0.3 {
		t.Errorf("anthropic is %+v", p)
	}
	if p := byName["claude-proxy"]; p.Kind != providers.Anthropic || p.Idle != 90*time.Second || p.BaseURL != "https://proxy.example/llm" {
		t.Errorf("claude-proxy is %+v", p)
	}
	if p := byName["local"]; p.Kind != providers.OpenAI {
		t.Errorf("local is %+v", p)
	}
	if p := byName["openai"]; p.Organization != "org-1" {
		t.Errorf("openai is %+v", p)
	}
	if _, there := byName["unused"]; there || len(cfg.Warnings) == 0 || !strings.Contains(strings.Join(cfg.Warnings, " "), "provider unused has no key") {
		t.Errorf("a provider without a key is %v, warnings %q", there, cfg.Warnings)
	}
	if _, err := providers.New(cfg.Providers, providers.Options{}); err != nil {
		t.Errorf("what the file says cannot be opened: %v", err)
	}
}

func TestMistakesInProviders(t *testing.T) {
	for text, want := range map[string]string{
		`{my cloud: {api_key: a, base_url: "http://h"}}`:                    `gatehouse.yaml:1:23: provider name "my cloud"`,
		`{cloud: {api_key: a}}`:                                             "Write base_url:",
		`{openai: {api_key: a, kind: soap}}`:                                `"soap" is unknown here. Write anthropic or openai`,
		`{openai: {api_key: a, base_url: "localhost:80"}}`:                  "is no address of a service",
		`{openai: {api_key: a, base_url: "file:///etc/passwd"}}`:            "is no address of a service",
		`{openai: {api_key: a, timeout: soon}}`:                             "is no length of time",
		`{openai: {api_key: a, prices: {gpt: {input: 1}}}}`:                 "the price of gpt is not complete",
		`{openai: {api_key: a, prices: {gpt: {input: -1, output: 2}}}}`:     "is no amount of money",
		`{openai: {api_key: a, prices: {gpt: {input: .nan, output: 2}}}}`:   "is no amount of money",
		`{openai: {api_key: a, prices: {gpt: {input: 1, output: .inf}}}}`:   "is no amount of money",
		`{openai: {api_key: a, prices: {gpt: {inputs: 1, output: 2}}}}`:     "unknown key",
		`{openai: {api_key: sk-a-very-secret-key, base_url: "::secret::"}}`: "is no address of a service",
		`{openai: {apikeys: [a]}}`:                                          "api_keys",
	} {
		_, err := Parse("", []byte("providers: "+text+"\n"), env())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "sk-a-very") {
			t.Errorf("the error holds a key: %v", err)
		}
	}
}
