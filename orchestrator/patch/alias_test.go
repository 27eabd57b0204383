package patch_test

import (
	"os"
	"path/filepath"
	"testing"

	"gatehouse/orchestrator/patch"
)

// A yes to a file is no yes to another one that some machine takes it for.
func TestANewPathThatIsAnotherOneSomewhereIsRefused(t *testing.T) {
	s := given(t, files{"core/auth.go": "x\n", "a.txt": "1\n", "résumé.md": "é\n", "secrets/key": "k\n", "old/AUX/con.txt": "x\n", "Odd/a": "1\n", "odd/b": "2\n"},
		func(r *patch.Repository, _ *patch.Options) { r.Protect = []string{"secrets/**"} })
	for name, c := range map[string]struct {
		add  string
		code string // "" passes
	}{
		"a backslash":                        {`core\auth.go`, patch.CodePathAlias},
		"a device":                           {"nul", patch.CodePathAlias},
		"a device with an ending":            {"docs/COM1.tar.gz", patch.CodePathAlias},
		"a device with a blank":              {"con .txt", patch.CodePathAlias},
		"a device as a folder":               {"Aux/x", patch.CodePathAlias},
		"the console":                        {"CONIN$", patch.CodePathAlias},
		"a device with a raised digit":       {"lpt²", patch.CodePathAlias},
		"a dot at the end":                   {"a.txt.", patch.CodePathAlias},
		"a blank at the end of a folder":     {"core /auth.go", patch.CodePathAlias},
		"a short name":                       {"SECRET~1/key", patch.CodePathAlias},
		"a short name with an ending":        {"RSUM~12.MD", patch.CodePathAlias},
		"a stream":                           {"a.txt:hidden", patch.CodePathAlias},
		"a drive":                            {"c:x", patch.CodePathAlias},
		"another case":                       {"core/AUTH.go", patch.CodePathAlias},
		"another case of a folder":           {"Core/new.go", patch.CodePathAlias},
		"other code points of the same name": {"re\u0301sume\u0301.md", patch.CodePathAlias},
		"a Cyrillic letter":                  {"\u0441ore/auth.go", patch.CodePathAlias},
		"fullwidth letters":                  {"ｃore/x.go", patch.CodePathAlias},
		"an ignored character":               {"a\u200d.txt", patch.CodePathAlias},
		"a long s":                           {"re\u0301\u017fum\u00e9.md", patch.CodePathAlias},
		"a file in place of a folder":        {"CORE", patch.CodePathAlias},
		"git's folder by look":               {".g\u0456t/config", patch.CodePathAlias},
		"protected, in another case":         {"SECRETS/new", patch.CodePathProtected},
		"protected, in another alphabet":     {"s\u0435cr\u0435ts/new", patch.CodePathProtected},
		"protected, with a joiner":           {"sec\u200drets/new", patch.CodePathProtected},
		"protected, fullwidth":               {"ｓecrets/new", patch.CodePathProtected},
		"a plain name":                       {"core/other.go", ""},
		"names that only begin like devices": {"console/auxiliary/com10.txt", ""},
		"a backup":                           {"notes.md.~1~", ""},
		"a tilde":                            {"~tmp/x~y", ""},
		"beside an odd name that is there":   {"old/AUX/new.go", ""},
		"in one of two that are there":       {"odd/a2", ""},
		"another alphabet alone":             {"док/план.md", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.m.Validate(s.ctx, s.base.Tree, s.changed(files{c.add: "new\n"}), patch.Rules{})
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			list(t, "files", refusal(t, err, c.code).Files, c.add)
		})
	}
	t.Run("two new ones against each other", func(t *testing.T) {
		err := s.m.Validate(s.ctx, s.base.Tree, s.changed(files{"new/x.go": "1\n", "new/X.go": "2\n"}), patch.Rules{})
		list(t, "files", refusal(t, err, patch.CodePathAlias).Files, "new/X.go", "new/x.go")
	})
	t.Run("in a patch that arrives as text", func(t *testing.T) {
		tree, err := s.m.ApplyText(s.ctx, s.base.Tree, []byte("--- /dev/null\n+++ b/CORE/AUTH.GO\n@@ -0,0 +1 @@\n+x\n"))
		if err != nil {
			t.Fatal(err)
		}
		refusal(t, s.m.Validate(s.ctx, s.base.Tree, tree, patch.Rules{}), patch.CodePathAlias)
	})
}

// A base with odd names stays workable: they may be changed, deleted and given plain names.
func TestABaseWithOddNamesStaysWorkable(t *testing.T) {
	s := given(t, files{"AUX.txt": "1\n", "a.txt": "1\n", "A.txt": "2\n", "x:y": "1\n", "GIT~2": "1\n", "Readme.md": "1\n"})
	dir := s.checkout()
	write(t, dir, files{"AUX.txt": "2\n", "A.txt": "3\n"})
	for _, name := range []string{"x:y", "GIT~2"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(dir, "Readme.md"), filepath.Join(dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	if err := s.m.Validate(s.ctx, s.base.Tree, s.snapshot(dir), patch.Rules{}); err != nil {
		t.Fatal(err)
	}
}

// What landed meanwhile under another spelling of a new name makes the approval stale.
func TestAnAliasThatTheBranchGotMeanwhileIsNoCarryOver(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	ours, theirs := s.changed(files{"docs/new.md": "1\n"}), s.changed(files{"Docs/other.md": "2\n"})
	carried, err := s.m.CarryOver(s.ctx, s.base.Tree, ours, theirs)
	if err != nil || carried.OK {
		t.Fatalf("carried over: %+v, %v", carried, err)
	}
	list(t, "moved", carried.Moved, "docs/new.md")
}
