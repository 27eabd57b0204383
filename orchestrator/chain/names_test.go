package chain

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestNamesAreWhatWasWritten(t *testing.T) {
	t.Parallel()
	whole := New(0).With(Step{From: "kik", To: "coder"}).With(Step{From: "coder", To: "reviewer"})
	for text, c := range map[string]Chain{"": New(0), "kik → coder → reviewer": whole} {
		if got := c.Names(); got.String() != text || c.String() != text || !slices.Equal(ParseNames(text), got) {
			t.Errorf("names of %q: %q, read again %q", text, got, ParseNames(text))
		}
		var again struct{ Chain Names }
		written, err := json.Marshal(struct{ Chain Names }{c.Names()})
		if err != nil || string(written) != `{"Chain":"`+text+`"}` {
			t.Errorf("as JSON: %s, %v", written, err)
		}
		if err := json.Unmarshal(written, &again); err != nil || !slices.Equal(again.Chain, c.Names()) {
			t.Errorf("read from JSON: %q, %v", again.Chain, err)
		}
	}
}
