package config

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/sharedctx"
)

func TestLifeSpansOfNamespaces(t *testing.T) { // K29, K35, K36, K37, K39
	c, err := Parse("gatehouse.yaml", []byte("context:\n  ttl: {performance: 24h, pm_learnings: learnings, security: 7d, \"memory:*\": memory, notes: never}\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := sharedctx.Lifespans{"performance": 24 * time.Hour, "pm_learnings": 30 * 24 * time.Hour, "security": 7 * 24 * time.Hour, "memory:*": 90 * 24 * time.Hour, "notes": 0}
	if !maps.Equal(c.Engine.Lifespans, want) {
		t.Errorf("life spans %v", c.Engine.Lifespans)
	}
	for text, says := range map[string]string{
		"a: 60": "with a unit", "a: -1h": "with a unit", "a: forever": "performance (24h)", "a*b: 1h": "not at its end", `"": 1h`: "0 characters",
		"a: 99999999999d": "with a unit", "a: 500ms": "with a unit", strings.Repeat("n", 65) + ": 1h": "65 characters",
	} {
		_, err := Parse("gatehouse.yaml", []byte("context:\n  ttl:\n    "+text+"\n"), os.LookupEnv)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "gatehouse.yaml:3:") {
			t.Errorf("%s: %v lacks %q", text, err, says)
		}
	}
}
