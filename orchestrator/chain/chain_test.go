package chain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// example is K14's: KIK→VajbCoder→ReviewAgent.
func example() Chain {
	return New(0).With(Step{"KIK", "VajbCoder", "build"}).With(Step{"VajbCoder", "ReviewAgent", "review"})
}

func TestContains(t *testing.T) {
	tests := []struct {
		ids, name string
		want      bool
	}{
		{"K4 target", "ReviewAgent", true},
		{"K4 source and target", "VajbCoder", true},
		{"K5 the root is only ever a source", "KIK", true},
		{"K6 spelled otherwise", "vajbcoder", true},
		{"K6 in look-alikes", "КІК", true},
		{"K4 nobody", "DocsAgent", false},
		{"K4 no name", "", false},
	}
	for _, tt := range tests {
		if got := example().Contains(tt.name); got != tt.want {
			t.Errorf("%s: Contains(%q) = %t", tt.ids, tt.name, got)
		}
	}
	if New(3).Contains("KIK") {
		t.Error("an empty chain contains somebody")
	}
}

func TestDepth(t *testing.T) {
	c := example()
	if c.MaxDepth() != 3 || c.Depth() != 2 || c.Full() { // K2
		t.Errorf("after two steps: %d of %d, full %t", c.Depth(), c.MaxDepth(), c.Full())
	}
	if c = c.With(Step{"ReviewAgent", "DocsAgent", "t"}); !c.Full() { // K7, X3: a fourth is refused
		t.Error("a chain of three steps takes a fourth")
	}
	for given, want := range map[int]int{-1: DefaultMaxDepth, 0: DefaultMaxDepth, 1: 1, 7: 7} {
		if got := New(given).MaxDepth(); got != want {
			t.Errorf("New(%d).MaxDepth() = %d", given, got)
		}
	}
	if !New(1).With(Step{"a", "b", "t"}).Full() {
		t.Error("With lost the depth")
	}
}

func TestSiblingsShareNothing(t *testing.T) {
	// K3: two children of one caller each hold their own snapshot.
	parent := example()
	a, b := parent.With(Step{"ReviewAgent", "a", "t"}), parent.With(Step{"ReviewAgent", "b", "t"})
	if a.Contains("b") || b.Contains("a") || parent.Depth() != 2 {
		t.Errorf("a %s, b %s, parent %s", a, b, parent)
	}
	a.Steps()[0].From = "evil"
	if a.Contains("evil") {
		t.Error("a caller changed a chain from outside")
	}
}

func TestImmutable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		chains := []Chain{New(0)}
		written := [][]Step{{}}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			i := rapid.IntRange(0, len(chains)-1).Draw(t, "which")
			s := Step{name.Draw(t, "from"), name.Draw(t, "to"), "t"}
			chains = append(chains, chains[i].With(s))
			written = append(written, append(slices.Clone(written[i]), s))
		}
		for i, c := range chains {
			if !slices.Equal(c.Steps(), written[i]) {
				t.Fatalf("chain %d is %v, was %v", i, c.Steps(), written[i])
			}
		}
	})
}

func TestJSON(t *testing.T) {
	if b, err := json.Marshal(Chain{}); err != nil || string(b) != "[]" { // the root's chain
		t.Errorf("empty: %s, %v", b, err)
	}
	b, err := json.Marshal(example())
	want := `[{"from":"KIK","to":"VajbCoder","task":"build"},{"from":"VajbCoder","to":"ReviewAgent","task":"review"}]` // K1
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	var back Chain
	if err := json.Unmarshal(b, &back); err != nil || !slices.Equal(back.Steps(), example().Steps()) {
		t.Errorf("read back %v, %v", back, err)
	}
	// Reading into a chain that shares its steps with another must not write there.
	shared := example()
	reader := shared
	if err := json.Unmarshal([]byte(`[{"from":"evil","to":"evil","task":"t"}]`), &reader); err != nil || shared.Contains("evil") {
		t.Errorf("another chain became %v, %v", shared, err)
	}
	if err := json.Unmarshal([]byte(`{"from":1}`), &back); err == nil {
		t.Error("what is no chain was read")
	}
}

func TestString(t *testing.T) {
	if got := example().String(); got != "KIK → VajbCoder → ReviewAgent" {
		t.Errorf("String() = %q", got)
	}
	if got := New(3).String(); got != "" {
		t.Errorf("empty: %q", got)
	}
	if strings.Contains(example().String(), "build") {
		t.Error("the tasks belong to the steps, not into the line for people")
	}
}
