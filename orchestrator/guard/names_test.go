package guard

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
)

func TestHostileNamesStayInTheirPlace(t *testing.T) {
	hostile := map[string]string{
		"a newline and an escape": "co\nder\x1b[31m",
		"a bidi override":         "co\u202eder",
		"broken UTF-8":            "co\xff\xfeder",
		"10 kB":                   strings.Repeat("ä", 5000),
	}
	for name, evil := range hostile {
		t.Run(name, func(t *testing.T) {
			unknown := hop("kik", "coder")
			unknown.To, unknown.ToName, unknown.Known = agent.Spec{}, evil, false
			cycle := hop("reviewer", evil)
			cycle.Chain = along(3, evil, "coder", "reviewer")
			for _, h := range []Hop{unknown, cycle} {
				_, refused := Check(h)
				if refused == nil {
					t.Fatal("allowed")
				}
				if len(refused.Message) > 600 {
					t.Errorf("message of %d bytes", len(refused.Message))
				}
				if !utf8.ValidString(refused.Message) || strings.ContainsAny(refused.Message, "\n\x1b\u202e\ufffd") {
					t.Errorf("message carries the control characters on: %q", refused.Message)
				}
			}
		})
	}
}

func TestNearest(t *testing.T) {
	known := []string{"coder", "coder-go", "reviewer", "kik", "bob"}
	tests := []struct {
		asked string
		want  []string
	}{
		{"codr", []string{"coder"}},
		{"CODER", []string{"coder", "coder-go"}},
		{"review", []string{"reviewer"}},
		{"kit", []string{"kik"}},
		{"", nil},
		{"zzz", nil},
		{strings.Repeat("k", 10_000), nil},
	}
	for _, tt := range tests {
		if got := Nearest(tt.asked, known); !slices.Equal(got, tt.want) {
			t.Errorf("Nearest(%.20q) = %v, want %v", tt.asked, got, tt.want)
		}
	}
}
