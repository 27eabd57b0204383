package patch

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// disguises change how a name is written and not which file it is somewhere.
var disguises = map[string]func(string) string{
	"upper case": strings.ToUpper,
	"title":      strings.ToTitle,
	"decomposed": norm.NFD.String,
	"composed":   norm.NFC.String,
	"Cyrillic":   strings.NewReplacer("a", "\u0430", "e", "\u0435", "o", "\u043e", "c", "\u0441", "p", "\u0440", "x", "\u0445").Replace,
	"Greek":      strings.NewReplacer("o", "\u03bf", "v", "\u03bd", "B", "\u0392").Replace,
	"joiners":    func(s string) string { return strings.ReplaceAll(s, "e", "e\u200d") },
	"fullwidth": func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 0xff41
			}
			return r
		}, s)
	},
	"Kelvin":  strings.NewReplacer("k", "\u212a", "s", "\u017f").Replace,
	"dot":     func(s string) string { return s + "." },
	"blank":   func(s string) string { return s + " " },
	"stream":  func(s string) string { return s + "::$DATA" },
	"slashes": func(s string) string { return strings.ReplaceAll(s, "/", `\`) },
}

// However a path is disguised, in any of its parts and as often as one likes, it is
// refused beside the path that it poses as; and it is refused when that one is protected.
func TestNoDisguiseOfAPathPasses(t *testing.T) {
	names := make([]string, 0, len(disguises))
	for name := range disguises {
		names = append(names, name)
	}
	slices.Sort(names)
	part := rapid.StringMatching(`[a-zéåß][a-z0-9_é-]{0,6}(\.[a-z]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(part, 1, 4).Draw(t, "path")
		path := strings.Join(parts, "/")
		if oddPath(path, nil) != "" {
			t.Skip("a device")
		}
		posing := path
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			posing = disguises[rapid.SampledFrom(names).Draw(t, "disguise")](posing)
		}
		if posing == path {
			return
		}
		known := map[string]bool{}
		prefixes(path, func(p string) bool { known[p] = true; return true })
		twins, _ := aliases([]string{posing}, []string{path, posing}, known)
		if len(twins) == 0 && oddPath(posing, known) == "" {
			t.Fatalf("%q passes beside %q", posing, path)
		}
		protect, err := parseGlobs([]string{"/" + path})
		if err != nil {
			t.Fatal(err)
		}
		if !protect.folded().match(sameName(posing)) && oddPath(posing, known) == "" {
			t.Fatalf("%q is not protected as %q is", posing, path)
		}
	})
}

// Plain names that differ in a letter are two files.
func TestPlainNamesAreLeftAlone(t *testing.T) {
	part := rapid.StringMatching(`[a-z][a-z0-9_-]{3,8}\.[a-z]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfNDistinct(part, 1, 8, rapid.ID[string]).Draw(t, "paths")
		if twins, other := aliases(paths, paths, nil); len(twins) > 0 {
			t.Fatalf("%q read as %q", twins, other)
		}
		for _, p := range paths {
			if why := oddPath(p, nil); why != "" {
				t.Fatalf("%q: %s", p, why)
			}
		}
	})
}
