package spelling_test

import (
	"slices"
	"testing"

	"gatehouse/orchestrator/spelling"

	"pgregory.net/rapid"
)

func TestFoldingAFoldChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		if once := spelling.Fold(s); spelling.Fold(once) != once {
			t.Fatalf("%+q folds to %+q, then to %+q", s, once, spelling.Fold(once))
		}
	})
}

func TestBytesThatAreNoTextStayApart(t *testing.T) {
	if spelling.Skeleton("A\xff") == spelling.Skeleton("A\xfe") || spelling.Skeleton("A\xff") != spelling.Skeleton("a\xff") {
		t.Error("bytes that are no UTF-8 are lost")
	}
}

// Letters that pose as Latin ones are found where they stand, whether they are mixed into
// a word or make up all of it; prose in other alphabets is left alone.
func TestDeceptiveFindsThePosingLetters(t *testing.T) {
	for text, want := range map[string][]int{
		"plain ASCII":                   nil,
		"var p\u0430ypal = 1":           {5},
		"\u0430dmin":                    {0},
		"if \u0441\u043e\u0440\u0443 {": {3, 5, 7, 9},
		"return \u0430 // привет":       {7},
		"а также он сам":                nil,
		"Он пошёл, а я нет":             nil,
		"Привет мир":                    nil,
		"naïve café 日本":                 nil,
		"10 µs, Δx, 2πr":                nil,
		"x\u03bd = 1":                   {1},
		"\u03bd + 1":                    {0},
		"ｅval(x)":                       {0},
		"A\u0430_id and b\xff":          {1},
	} {
		if got := spelling.Deceptive(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
