package console

import "testing"

func TestForeignTextIsHarmless(t *testing.T) {
	for give, want := range map[string]string{
		"plain ü 漢字 🎉 \t tab":      "plain ü 漢字 🎉 \t tab",
		"\x1b[31mred":              "⟦U+001B⟧[31mred",
		"\u202ereversed":           "⟦U+202E⟧reversed",
		"zero\u200bwidth":          "zero⟦U+200B⟧width",
		"over\rwritten":            "over⟦U+000D⟧written",
		"\u009b31m":                "⟦U+009B⟧31m",
		"bad \xff byte":            "bad ⟦0xFF⟧ byte",
		"tag\U000E0041":            "tag⟦U+E0041⟧",
		"soft\u00adhyphen":         "soft⟦U+00AD⟧hyphen",
		"\ufeffmark\u2028line":     "⟦U+FEFF⟧mark⟦U+2028⟧line",
		"hangul\u3164filler\u2003": "hangul⟦U+3164⟧filler⟦U+2003⟧",
	} {
		if got := Block(give); got != want {
			t.Errorf("%q is shown as %q, want %q", give, got, want)
		}
	}
	if got := Line("two\nlines  and\ttabs"); got != "two lines and tabs" {
		t.Errorf("line gives %q", got)
	}
	if got := Brief("\n \nfirst that says something\nsecond", 10); got != "first tha…" {
		t.Errorf("brief gives %q", got)
	}
}

func FuzzForeignText(f *testing.F) {
	f.Add("a\x1b]0;title\x07b\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Block(s) {
			if risky(r) {
				t.Fatalf("%q shows %U", s, r)
			}
		}
	})
}
