package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

func review(s *story, fs files, more ...func(dir string)) *patch.Review {
	s.Helper()
	dir := s.checkout()
	write(s.T, dir, fs)
	for _, f := range more {
		f(dir)
	}
	r, err := s.m.Review(s.ctx, s.base.Tree, s.snapshot(dir))
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func codes(r *patch.Review) []string {
	out := []string{}
	for _, w := range r.Warnings {
		out = append(out, w.Code+" "+w.Path)
	}
	slices.Sort(out)
	return out
}

func TestReviewShowsWhatHappenedToEachFile(t *testing.T) {
	long := strings.Repeat("line of text\n", 40)
	s := given(t, files{"mod.txt": "1\n2\n3\n", "del.txt": "x\n", "old/name.txt": long, "mode.sh": "#!/bin/sh\n", "type": "file\n", "bin": "\x00\x01"})
	r := review(s, files{"mod.txt": "1\ntwo\n3\n", "new file.txt": "a\nb\n", "new/name.txt": long + "more\n", "bin": "\x00\x02\x03"}, func(dir string) {
		_ = os.Remove(filepath.Join(dir, "del.txt"))
		_ = os.RemoveAll(filepath.Join(dir, "old"))
		_ = os.Chmod(filepath.Join(dir, "mode.sh"), 0o755)
		_ = os.Remove(filepath.Join(dir, "type"))
		_ = os.Symlink("mod.txt", filepath.Join(dir, "type"))
	})
	var got []string
	for _, f := range r.Files {
		got = append(got, fmt.Sprintf("%s %s<%s +%d -%d %s>%s bin=%v", f.Status, f.Path, f.OldPath, f.Added, f.Removed, f.OldMode, f.NewMode, f.Binary))
	}
	list(t, "files", got,
		"modified bin< +0 -0 100644>100644 bin=true",
		"deleted del.txt< +0 -1 100644> bin=false",
		"modified mod.txt< +1 -1 100644>100644 bin=false",
		"mode mode.sh< +0 -0 100644>100755 bin=false",
		"added new file.txt< +2 -0 >100644 bin=false",
		"renamed new/name.txt<old/name.txt +1 -0 100644>100644 bin=false",
		"type type< +1 -1 100644>120000 bin=false")
	equal(t, "added", r.Added, 5)
	list(t, "warnings", codes(r), "binary bin", "mode_change mode.sh", "symlink type")
	equal(t, "notes", len(r.Notes), 1)
	equal(t, "new size of the binary", r.Files[0].NewSize, 3)
}

func TestEachWarning(t *testing.T) {
	base := files{"a.txt": "1\n", "Makefile": "all:\n", "x/y.txt": "y\n", "dos.bat": "a\r\nb\r\nc\r\n", "mixed": "a\nb\r\n", "orig.go": strings.Repeat("func f() {}\n", 30), "package.json": `{"name":"x","scripts":{"a":"b"}}`}
	for i := range 30 {
		base[fmt.Sprintf("many/%d", i)] = fmt.Sprintf("%d\n", i)
	}
	s := given(t, base)
	remove := func(n int) func(string) {
		return func(dir string) {
			for i := range n {
				_ = os.Remove(filepath.Join(dir, fmt.Sprintf("many/%d", i)))
			}
		}
	}
	cases := []struct {
		name string
		fs   files
		do   func(string)
		want []string
	}{
		{"nothing odd", files{"a.txt": "2\nnaïve café 日本 👩‍🚀 ❤️ Привет\n"}, nil, nil},
		{"ci", files{".github/workflows/ci.yml": "x\n", "sub/.gitlab-ci.yml": "x\n"}, nil, []string{"ci_file .github/workflows/ci.yml", "ci_file sub/.gitlab-ci.yml"}},
		{"agents", files{"docs/CLAUDE.md": "x\n", ".claude/settings.json": "{}\n"}, nil, []string{"agent_config .claude/settings.json", "agent_config docs/CLAUDE.md"}},
		{"lock file", files{"go.sum": "x\n"}, nil, []string{"lock_file go.sum"}},
		{"environment", files{"app/.env": "X=1\n", ".env.production": "X=1\n", ".env.example": "X=\n", ".environment": "x\n"}, nil, []string{"autorun .env.example", "autorun .env.production",
			"autorun .environment", "autorun app/.env", "secret_like .env.production", "secret_like app/.env"}},
		{"CR added", files{"a.txt": "1\r\n"}, nil, []string{"line_endings a.txt"}},
		{"CR added beside", files{"a.txt": "1\n2\r\n"}, nil, []string{"line_endings a.txt"}},
		{"CR within a line", files{"a.txt": "1\nbad()\rgood()\n"}, nil, []string{"control_chars a.txt", "line_endings a.txt"}},
		{"CR lost", files{"dos.bat": "a\nb\nc\n"}, nil, []string{"line_endings dos.bat"}},
		{"LF into CRLF", files{"dos.bat": "a\r\nb\r\nmore\nc\r\n"}, nil, []string{"line_endings dos.bat"}},
		{"CRLF into CRLF", files{"dos.bat": "a\r\nmore\r\nc\r\n"}, nil, nil},
		{"a new file of CRLF", files{"new.bat": "a\r\nb\r\n"}, nil, nil},
		{"a new file of both", files{"new.sh": "a\nb\r\nd\n"}, nil, []string{"line_endings new.sh"}},
		{"mixed as before", files{"mixed": "a\nb\r\nc\n"}, nil, nil},
		{"autorun", files{".envrc": "x\n", ".vscode/tasks.json": "{}\n"}, nil, []string{"autorun .envrc", "autorun .vscode/tasks.json"}},
		{"scripts", files{"package.json": `{"name":"x","scripts":{"a":"b","postinstall":"evil"}}`}, nil, []string{"autorun package.json"}},
		{"no scripts", files{"package.json": `{"name":"y","scripts":{"a":"b"}}`}, nil, nil},
		{"scripts behind another key", files{"package.json": `{"name":"x","scripts":{"postinstall":"evil"},"SCRIPTS":{"a":"b"}}`}, nil, []string{"autorun package.json"}},
		{"scripts in a file of another case", files{"web/Package.JSON": `{"scripts":{"postinstall":"evil"}}`}, nil, []string{"autorun web/Package.JSON"}},
		{"a dependency from elsewhere", files{"package.json": `{"scripts":{"a":"b"},"dependencies":{"left":"git+https://example.com/left"}}`}, nil, []string{"autorun package.json"}},
		{"a dependency of the registry", files{"package.json": `{"scripts":{"a":"b"},"dependencies":{"left":"^1.2.3 || >=2","own":"workspace:*"}}`}, nil, nil},
		{"a blank that is none", files{"a.py": "x = 1\u00a0+ 2\n", "b.sh": "\u3000rm x\n", "c.yaml": "a:\u2003b\n", "d.sh": "end \\\u00a0\n"}, nil,
			[]string{"invisible a.py", "invisible b.sh", "invisible c.yaml", "invisible d.sh"}},
		{"blanks of writers", files{"a.md": "Quoi\u00a0? 10\u202f000 «\u00a0oui\u00a0»\n", "b.md": "\u3000東京は\u3000晴れ\n"}, nil, nil},
		{"marks in a row", files{"a.txt": "❤" + strings.Repeat("\ufe0f", 9) + "\n", "b.txt": "❤" + strings.Repeat("\u200d", 9) + "x\n"}, nil, []string{"invisible a.txt", "invisible b.txt"}},
		{"attributes", files{"d/.gitattributes": "*.go -diff\n"}, nil, []string{"git_attributes d/.gitattributes"}},
		{"submodules", files{".gitmodules": "x\n"}, nil, []string{"submodule .gitmodules"}},
		{"bidi", files{"a.txt": "if admin \u202e// }\n"}, nil, []string{"bidi a.txt"}},
		{"invisible", files{"a.txt": "pass\u200bword\n"}, nil, []string{"invisible a.txt"}},
		{"whole word", files{"a.txt": "if \u0441\u043e\u0440\u0443() {\n"}, nil, []string{"lookalike a.txt"}},
		{"disguised names", files{".c\u200dlaude/x": "x\n", ".GITHUB/workflowſ/x.yml": "x\n"}, nil, []string{"agent_config .c\u200dlaude/x", "ci_file .GITHUB/workflowſ/x.yml", "invisible .c\u200dlaude/x"}},
		{"lookalike", files{"a.txt": "var p\u0430ypal = 1\n", "b.txt": "x\u037e\n"}, nil, []string{"lookalike a.txt", "lookalike b.txt"}},
		{"control", files{"a.txt": "x\x1b[2Jy\n"}, nil, []string{"control_chars a.txt"}},
		{"secret", files{"a.txt": "key = AKIA" + "IOSFODNN7EXAMPLE\n"}, nil, []string{"secret_like a.txt"}},
		{"large", files{"a.txt": strings.Repeat("x\n", 3001)}, nil, []string{"large ", "large a.txt"}},
		{"new program", files{"run.sh": "x\n"}, func(dir string) { _ = os.Chmod(filepath.Join(dir, "run.sh"), 0o755) }, []string{"mode_change run.sh"}},
		{"collision", files{"A.txt": "x\n", "X/z.txt": "z\n"}, nil, []string{"case_collision A.txt", "case_collision X/z.txt"}},
		{"copy", files{"copy.go": strings.Repeat("func f() {}\n", 30), "orig.go": strings.Repeat("func f() {}\n", 30) + "x\n"}, nil, []string{"copy copy.go"}},
		{"20 deletions", nil, remove(15), nil},
		{"21 deletions", nil, remove(21), []string{"mass_deletion "}},
		{"a name", files{"x\u202ey.txt": "x\n", "esc\x1b.txt": "x\n"}, nil, []string{"bidi x\u202ey.txt", "control_chars esc\x1b.txt"}},
		{"only what was there before", files{"a.txt": "1\n2\n"}, nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.do == nil {
				c.do = func(string) {}
			}
			r := review(s, c.fs, c.do)
			list(t, "warnings", codes(r), c.want...)
			for _, w := range r.Warnings {
				if w.Text == "" {
					t.Errorf("%s has no words", w.Code)
				}
			}
		})
	}
	equal(t, "title", patch.WarningTitle("ci_file"), "CI file changed")
}

// Attributes that the patch brings cannot hide its own text.
func TestAttributesHideNothing(t *testing.T) {
	s := given(t, files{"a.go": "package a\n", ".gitattributes": "*.go -diff binary\n"})
	r := review(s, files{"a.go": "package b\n"})
	if r.Files[0].Binary || r.Files[0].Added != 1 {
		t.Errorf("%+v", r.Files[0])
	}
}

func TestHunksNumberLinesAndMarkWords(t *testing.T) {
	s := given(t, files{"a.go": "one\ntwo\nreturn foo(a, b)\nfour\nfive\nsix\nlast"})
	tree := s.changed(files{"a.go": "one\ntwo\nreturn bar(a, b)\nfour\nfive\nsix\nlast\n", "new.txt": "n\nend", "empty": ""})
	r, err := s.m.Review(s.ctx, s.base.Tree, tree)
	if err != nil {
		t.Fatal(err)
	}
	show := func(f patch.File, around int) []string {
		hunks, err := s.m.Hunks(s.ctx, s.base.Tree, tree, f, around)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, h := range hunks {
			out = append(out, fmt.Sprintf("@@ %d,%d %d,%d", h.OldStart, h.OldLines, h.NewStart, h.NewLines))
			for _, l := range h.Lines {
				mark := ""
				for _, sp := range l.Spans {
					mark += "[" + l.Text[sp.Start:sp.End] + "]"
				}
				out = append(out, fmt.Sprintf("%c%d,%d %s %s%v", l.Kind, l.Old, l.New, l.Text, mark, l.NoNewline))
			}
		}
		return out
	}
	list(t, "changed file", show(r.Files[0], 1),
		"@@ 2,3 2,3", " 2,2 two false", "-3,0 return foo(a, b) [foo]false", "+0,3 return bar(a, b) [bar]false", " 4,4 four false",
		"@@ 6,2 6,2", " 6,6 six false", "-7,0 last true", "+0,7 last false")
	list(t, "empty file", show(r.Files[1], 3))
	list(t, "new file", show(r.Files[2], 3), "@@ 0,0 1,2", "+0,1 n false", "+0,2 end true")
	equal(t, "whole file in one hunk", len(show(r.Files[0], 1000)), 1+9)
}

// Many files are compared at once, and each reads as it does alone: renamed, copied,
// deleted, hostile by name, of another type.
func TestManyFilesAtOnceReadAsEachAlone(t *testing.T) {
	long := strings.Repeat("func f() {}\n", 40)
	s := given(t, files{"old.go": long, "gone.txt": "a\nb\n", "kept.go": "x\ny\nz\n", "mode.sh": "echo\n", "type": "a file\n", "diff --git a/x b/x": "1\n", "bin": "\x00\x01"})
	dir := s.checkout()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(filepath.Join(dir, "old.go"), filepath.Join(dir, "new.go")))
	must(os.Remove(filepath.Join(dir, "gone.txt")))
	must(os.Chmod(filepath.Join(dir, "mode.sh"), 0o755)) //nolint:gosec // the mode is what is tested
	must(os.Remove(filepath.Join(dir, "type")))
	must(os.Symlink("kept.go", filepath.Join(dir, "type")))
	write(t, dir, files{"new.go": long + "// more\n", "kept.go": "x\nY\nz\n\ndiff --git a/type b/type\nindex 0..1\n@@ -1 +1 @@\n", "a\nb \"quoted\".txt": "n", "ä.txt": "ü\r\n",
		"diff --git a/x b/x": "2\n", "bin": "\x00\x02", "empty": "", "last": "--- a/y\n+++ b/y\n"})
	tree := s.snapshot(dir)
	r, err := s.m.Review(s.ctx, s.base.Tree, tree)
	must(err)
	for _, around := range []int{0, 3, 1000} {
		got := map[int][]patch.Hunk{}
		all := func(int) bool { return true }
		must(s.m.EachHunks(s.ctx, s.base.Tree, tree, r.Files, all, around, func(i int, hunks []patch.Hunk) error {
			for k := range hunks {
				patch.MarkWords(hunks[k].Lines)
			}
			got[i] = hunks
			return nil
		}))
		for i, f := range r.Files {
			want, err := s.m.Hunks(s.ctx, s.base.Tree, tree, f, around)
			must(err)
			if len(want) == 0 && len(got[i]) == 0 {
				continue
			}
			if shown := fmt.Sprintf("%+v", got[i]); shown != fmt.Sprintf("%+v", want) {
				t.Errorf("%q with %d lines around:\n%s\nalone:\n%+v", f.Path, around, shown, want)
			}
		}
	}
	n := 0
	must(s.m.EachHunks(s.ctx, s.base.Tree, tree, r.Files, func(i int) bool { return i == 2 }, 3, func(i int, _ []patch.Hunk) error {
		n += i
		return nil
	}))
	equal(t, "the one that was asked for", n, 2)
	// A list that is of other trees is not trusted: each file is read by its own content.
	must(s.m.EachHunks(s.ctx, tree, tree, r.Files, func(int) bool { return true }, 3, func(i int, hunks []patch.Hunk) error {
		want, err := s.m.Hunks(s.ctx, s.base.Tree, tree, r.Files[i], 3)
		equal(t, r.Files[i].Path, len(hunks), len(want))
		return err
	}))
}

func TestVisibleShowsCodePoints(t *testing.T) {
	cases := map[string]string{
		"plain\ttext":      "plain\ttext",
		"a\u202eb":         "a⟦U+202E⟧b",
		"a\u200bb":         "a⟦U+200B⟧b",
		"\x1b[31m":         "⟦U+001B⟧[31m",
		"bad\xffbyte":      "bad⟦0xFF⟧byte",
		"x\u037e":          "x⟦U+037E⟧",
		"👩\u200d🚀 ❤\ufe0f": "👩\u200d🚀 ❤\ufe0f",
		"a\u200db":         "a⟦U+200D⟧b",
		"❤\ufe0f\u200d🔥":   "❤\ufe0f\u200d🔥",
		"❤\ufe0f\ufe0f":    "❤\ufe0f⟦U+FE0F⟧",
		"rm\u00a0-rf":      "rm⟦U+00A0⟧-rf",
		"\U000e0041":       "⟦U+E0041⟧",
		"line\nfeed":       "line⟦U+000A⟧feed",
		"\u009b":           "⟦U+009B⟧",
	}
	for in, want := range cases {
		equal(t, fmt.Sprintf("%q", in), patch.Shown(in), want)
	}
	pieces := patch.Visible("a\u202eb")
	if len(pieces) != 3 || pieces[1].Risk != patch.RiskBidi || pieces[0].Risk != "" {
		t.Errorf("%+v", pieces)
	}
}
