package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHintsNameTheirPlace: a rule that needs everybody of its groups is named where its
// need stands, or where the rule begins when the need is not written.
func TestHintsNameTheirPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gatehouse.yaml")
	text := `groups: {core: [ann, bob], solo: [ann]}
approval:
  rules:
    - {name: both, when: "true", need: 2, from: [core]}
    - {name: one, when: "true", from: [core]}
    - name: alone
      when: "true"
      from: [solo]
  handovers: [{name: all, when: "true", need: 2, from: [core]}]
`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"four eyes": {text, []string{`:4:40: Rule "both" needs all 2 people`, `:6:7: Rule "alone" needs all 1 people`, `:9:47: Rule "all" needs all 2 people`}},
		"two eyes":  {strings.Replace(text, "approval:\n", "approval:\n  four_eyes: false\n", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := Load(path, os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			got := cfg.Hints()
			if len(got) != len(c.want) || !slices.EqualFunc(got, c.want, func(g, w string) bool { return strings.HasPrefix(g, path+w) }) {
				t.Errorf("hints %q, want them to begin with %q", got, c.want)
			}
		})
	}
}
