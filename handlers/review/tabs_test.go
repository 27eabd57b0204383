package review

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/handlers"
	"gatehouse/orchestrator/patch"
)

func TestTheWidthOfTabsComesFromTheRepository(t *testing.T) {
	rules := tabRules("root = true\n[*]\nindent_size = 2\n; [x]\n[*.{go,mod}]\nindent_style = tab\ntab_width = 8\nindent_size = tab\n[web/*.js]\ntab_width=3\n[*.md]\ntab_width = 900\n[lib/**.py]\n")
	for file, want := range map[string]int{"a.txt": 2, "x/y.go": 8, "go.mod": 8, "web/app.js": 3, "other/app.js": 2, "README.md": 2} {
		if got := tabOf(file, rules); got != want {
			t.Errorf("%s: %d, want %d", file, got, want)
		}
	}
	for file, want := range map[string]int{"Makefile": 8, "a.c": 8, "a.go": 4} {
		if got := tabOf(file, tabRules("[\n[*\n=\n[*]\ntab_width=-1\n")); got != want {
			t.Errorf("%s without rules: %d, want %d", file, got, want)
		}
	}
}

// The nearest .editorconfig wins, each speaks of its own folder, and root = true hides those above.
func TestTheWidthOfTabsComesFromTheNearestFolder(t *testing.T) {
	of := func(text string) folderRules {
		return folderRules{tabRules(text), topMost(text)}
	}
	rules := map[string]folderRules{
		".":         of("root = true\n[*]\ntab_width = 8\n[web/*.js]\ntab_width = 3\n"),
		"web":       of("[*.js]\ntab_width = 2\n[lib/*.css]\ntab_width = 6\n"),
		"own":       of("Root = TRUE\n[*.js]\ntab_width = 2\n"),
		"late":      of("[*.txt]\ntab_width = 2\nroot = true\n"),
		"web/lib/x": of("[*.css]\ntab_width = 1\n"),
	}
	for file, want := range map[string]int{"a.js": 8, "web/a.js": 2, "web/a.css": 8, "web/lib/a.css": 6, "web/lib/x/a.css": 1, "web/lib/x/y/z/a.css": 1, "lib/a.css": 8,
		"own/a.js": 2, "own/a.txt": 4, "own/Makefile": 8, "late/a.js": 8} {
		if got := tabIn(file, rules); got != want {
			t.Errorf("%s: %d, want %d", file, got, want)
		}
	}
	if got := editorConfigs([]string{"a.go", "x/y/b.go", "x/c.go"}); fmt.Sprint(got) != "[.editorconfig x/.editorconfig x/y/.editorconfig]" {
		t.Errorf("asked for: %q", got)
	}
	if got := editorConfigs([]string{strings.Repeat("d/", 400) + "a.go"}); len(got) != maxEditorConfigs {
		t.Errorf("%d folders are read", len(got))
	}
}

func TestWordsAboutABranchThatMoved(t *testing.T) {
	head := strings.Repeat("4be1f02", 6)
	for want, m := range map[string]handlers.Movement{
		"main moved by 1 commit since, to 4be1f02. No file of this change was touched there; this change still applies unchanged.": {Head: head, Commits: 1, Fits: patch.Carried{OK: true}},
		"main moved by 2 commits since, to 4be1f02. There a, b changed too; after a yes this is asked again with the difference.":  {Head: head, Commits: 2, Fits: patch.Carried{Moved: []string{"a", "b"}}},
		"main moved by more than 1000 commits since, to 4be1f02. No file":                                                          {Head: head, Commits: 1000, More: true, Fits: patch.Carried{OK: true}},
		"main was rewound or rewritten since, to 4be1f02: it no longer has the commit that this change was made on.":               {Head: head, Commits: 3, Rewritten: true, Fits: patch.Carried{OK: true}},
		"main moved since, to 4be1f02. No file": {Head: head, Fits: patch.Carried{OK: true}},
	} {
		if got := movedWords("main", m); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := handlers.SomeOf([]string{strings.Repeat("d/", 400) + "a.go"}); len(got) > 100 || !strings.HasSuffix(got, "d/a.go") {
		t.Errorf("a long path is %q", got)
	}
}
