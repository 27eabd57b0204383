package cli

import (
	"strings"
	"testing"
)

// What the shell's quotes kept together is one value, and words stay words.
func TestFiltersAreTakenAsTheShellGivesThem(t *testing.T) {
	for give, want := range map[string]string{
		"approver:bob|time:30d":          "approver:bob time:30d",
		"via:webhook ci-failed":          `via:"webhook ci-failed"`,
		`-via:webhook ci-failed|retry`:   `-via:"webhook ci-failed" retry`,
		`via:"webhook ci-failed"`:        `via:"webhook ci-failed"`,
		"the loop|of app":                "the loop of app",
		"see also: the loop":             "see also: the loop",
		"repository:a b,c":               `repository:"a b,c"`,
		`repository:back\slash and more`: `repository:"back\\slash and more"`,
	} {
		if got := typed(strings.Split(give, "|")); got != want {
			t.Errorf("%q becomes %q, want %q", give, got, want)
		}
	}
}
