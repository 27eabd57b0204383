package config_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/config"
)

// A name that no rule knows is pointed at where it stands in the file, however the
// condition is written.
func TestATypingErrorInAConditionIsPointedAt(t *testing.T) {
	for name, rule := range map[string]string{
		"plain":         `when: patch.lnes < 5`,
		"quoted":        `when: "patch.lnes < 5"`,
		"flow":          `{name: b, when: 'agent == "ü" && patch.lnes < 5'}`,
		"literal":       "when: |\n        agent == \"coder\" &&\n          patch.lnes < 5",
		"folded":        "when: >-\n        agent == \"coder\" &&\n        patch.lnes < 5",
		"folded plain":  "when: agent == \"coder\" &&\n        patch.lnes < 5",
		"folded quoted": "when: \"agent == 'coder' &&\n        patch.lnes < 5\"",
	} {
		text := "approval:\n  rules:\n    - name: a\n      " + rule + "\n"
		if strings.HasPrefix(rule, "{") {
			text = "approval:\n  rules:\n    - " + rule + "\n"
		}
		_, err := config.Parse("gatehouse.yaml", []byte(text), func(string) (string, bool) { return "", false })
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		var line, column int
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			if c := strings.Index(l, "lnes"); c >= 0 {
				line, column = i+1, len([]rune(l[:c]))+1
			}
		}
		if want := fmt.Sprintf("gatehouse.yaml:%d:%d: ", line, column); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: want %s, got %v\n%s", name, want, err, text)
		}
	}
}
