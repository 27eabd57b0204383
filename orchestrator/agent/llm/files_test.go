package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// checkout is a folder as an agent gets it, with traps in it.
func checkout(t *testing.T) string {
	t.Helper()
	outside := t.TempDir()
	dir := t.TempDir()
	put := func(path, content string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(outside, "secret.txt"), "a secret")
	put(filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	put(filepath.Join(dir, "docs", "a.md"), "# A\nneedle here\n")
	put(filepath.Join(dir, ".git", "config"), "needle in git\n")
	put(filepath.Join(dir, "image.bin"), "\x00\x01needle")
	put(filepath.Join(dir, "run.sh"), "#!/bin/sh\n")
	put(filepath.Join(dir, "big.txt"), strings.Repeat("needle\n", 1000)+strings.Repeat("z", 1<<20))
	put(filepath.Join(dir, "lines.txt"), func() string {
		var b strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&b, "line %d\n", i+1)
		}
		return b.String()
	}())
	for name, target := range map[string]string{"out": outside, "file": filepath.Join(outside, "secret.txt"), "git": ".git", "in": "docs"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// use makes one call in a checkout and returns its result.
func use(t *testing.T, dir, tool string, input any) agent.Block {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	host := team()
	job := task("Work.")
	job.Dir = dir
	if _, _, err := play(t, host, job, calls(call("a", tool, string(raw))), says("done")); err != nil {
		t.Fatal(err)
	}
	return results(t, host.Turns(), 0)[0]
}

type in = map[string]any

// What the file tools show.
func TestFilesAreShown(t *testing.T) {
	dir := checkout(t)
	for _, c := range []struct {
		name, tool string
		input      in
		has, lacks []string
	}{
		{"a file", "read_file", in{"path": "main.go"}, []string{"package main\n\nfunc main() {}"}, nil},
		{"a path with dots in it", "read_file", in{"path": "docs/../main.go"}, []string{"package main"}, nil},
		{"some lines", "read_file", in{"path": "lines.txt", "offset": 4998, "limit": 2}, []string{"line 4998\nline 4999", "[lines 4998 to 4999 of 5000"}, []string{"line 5000\n"}},
		{"a long file from its start", "read_file", in{"path": "lines.txt"}, []string{"line 1\n", "[lines 1 to 2000 of 5000"}, []string{"line 2001\n"}},
		{"a binary file is named", "read_file", in{"path": "image.bin"}, []string{"binary file of 8 bytes"}, []string{"needle"}},
		{"a folder", "list_files", in{}, []string{"docs/", "main.go 29", "out (symbolic link)"}, []string{".git", "a.md", "secret"}},
		{"folders below", "list_files", in{"recursive": true}, []string{"docs/a.md 16"}, []string{"config", "secret"}},
		{"a search", "search", in{"pattern": "n[e]+dle h"}, []string{"docs/a.md:2: needle here", "left out"}, []string{"git", "big.txt"}},
		{"a search by name", "search", in{"pattern": "main", "glob": "*.go"}, []string{"main.go:1", "main.go:3"}, nil},
		{"a search without a find", "search", in{"pattern": "nowhere at all"}, []string{"Nothing matches"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := use(t, dir, c.tool, c.input)
			if has(t, b.Text, c.has...); b.IsError {
				t.Errorf("an error: %s", b.Text)
			}
			for _, l := range c.lacks {
				if strings.Contains(b.Text, l) {
					t.Errorf("%q has %q", b.Text, l)
				}
			}
		})
	}
}

// What a model must not reach, and what is no file, is refused with a code and a sentence.
func TestNothingOutsideOfTheCheckoutIsReached(t *testing.T) {
	dir := checkout(t)
	for path, code := range map[string]string{
		"../secret": "path_outside", "/etc/passwd": "path_outside", "docs/../../x": "path_outside", "a\x00b": "path_outside", "a\nb": "path_outside",
		strings.Repeat("x/", 600): "path_outside",
		".git/config":             "git_internal", ".GIT/config": "git_internal", "docs/.git/x": "git_internal", ".git . /config": "git_internal",
		".git::$INDEX_ALLOCATION/x": "git_internal", "GIT~1/config": "git_internal", ".g\u200cit/config": "git_internal",
		"out/secret.txt": "symlink", "file": "symlink", "git/config": "symlink", "in/a.md": "symlink",
		"pipe": "bad_mode", "docs": "is_folder",
	} {
		for _, tool := range []string{"read_file", "write_file"} {
			b := use(t, dir, tool, in{"path": path, "content": "mine"})
			if !b.IsError || !strings.HasPrefix(b.Text, code+": ") {
				t.Errorf("%s %q: %q; want %s", tool, path, b.Text, code)
			}
			if strings.Contains(b.Text, dir) {
				t.Errorf("%s %q tells of a place on this machine: %q", tool, path, b.Text)
			}
		}
	}
	for _, tool := range []string{"list_files", "search"} {
		for _, path := range []string{"..", "/", ".git", "out", "git", "nowhere"} {
			if b := use(t, dir, tool, in{"path": path, "pattern": "secret"}); !b.IsError {
				t.Errorf("%s %q: %q", tool, path, b.Text)
			}
		}
	}
	// Patterns whose counts would make a search take minutes are none, however short.
	for _, input := range []in{{"pattern": "("}, {"pattern": ""}, {"pattern": strings.Repeat("a", 2000)}, {"pattern": "a", "glob": "["},
		{"pattern": strings.Repeat(`(\pL|\pN){900}`, 20)}, {"pattern": `((a{30}){30}){30}`}, {"pattern": "(x{1000}){1000}"}} {
		if b := use(t, dir, "search", input); !b.IsError {
			t.Errorf("search %v: %q", input, b.Text)
		}
	}
	if b := use(t, dir, "read_file", in{"path": "lines.txt", "offset": 9999}); !b.IsError {
		t.Errorf("a line that is not there: %q", b.Text)
	}
}

// What is written is there, in folders that are made, and a program stays one.
func TestFilesAreWritten(t *testing.T) {
	dir := checkout(t)
	for path, content := range map[string]string{"new/deep/file.txt": "text\n", "main.go": "package other\n", "run.sh": "#!/bin/sh\necho\n", "empty": ""} {
		if b := use(t, dir, "write_file", in{"path": path, "content": content}); b.IsError {
			t.Fatalf("%s: %s", path, b.Text)
		}
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != content {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run.sh: %v, %v", info.Mode(), err)
	}
	for _, input := range []in{{"path": "x"}, {"path": "x", "content": strings.Repeat("x", 3<<20)}, {"path": ".", "content": "x"}, {"path": "main.go/x", "content": "x"}} {
		if b := use(t, dir, "write_file", input); !b.IsError {
			t.Errorf("%v: %q", input["path"], b.Text)
		}
	}
}

// A diff is applied by the engine; what does not fit is an answer.
func TestPatchesAreProposed(t *testing.T) {
	var got string
	host := team()
	host.ApplyDiff = func(diff string) error {
		got = diff
		if strings.Contains(diff, "wrong") {
			return agent.Fail("context_mismatch", "Line 3 is different.")
		}
		return nil
	}
	job := task("Work.")
	job.Dir = t.TempDir()
	_, _, err := play(t, host, job, calls(call("a", "propose_patch", `{"diff":"diff --git a/x b/x"}`), call("b", "propose_patch", `{"diff":"wrong"}`), call("c", "propose_patch", `{"diff":" "}`)), says("done"))
	if err != nil {
		t.Fatal(err)
	}
	b := results(t, host.Turns(), 0)
	if b[0].IsError || !b[1].IsError || !b[2].IsError || !strings.HasSuffix(got, "wrong\n") {
		t.Errorf("%+v; the last diff was %q", b, got)
	}
	has(t, b[1].Text, "context_mismatch: Line 3 is different.")
}

// The checks' results come with the end of their output.
func TestChecksAreRun(t *testing.T) {
	host := team()
	host.Results = []agent.CheckResult{{Command: "go vet", OK: true}, {Command: "go test", Output: strings.Repeat("noise\n", 10_000) + "FAIL x"}}
	job := task("Work.")
	job.Dir = t.TempDir()
	if _, _, err := play(t, host, job, calls(call("a", "run_checks", `{}`)), says("done")); err != nil {
		t.Fatal(err)
	}
	text := results(t, host.Turns(), 0)[0].Text
	if has(t, text, "go vet: passed", "go test: FAILED", "FAIL x", "1 of 2 checks passed"); len(text) > 20_000 {
		t.Errorf("the answer has %d bytes", len(text))
	}
}

// All of shared_context, the empty list included (P1–P5, K30, K31, K41, K42).
func TestSharedContextIsReadAndWritten(t *testing.T) {
	host := team()
	steps := []struct {
		input string
		want  string
		bad   bool
	}{
		{`{"action":"list"}`, "Nothing is stored under shared yet.", false}, // P5
		{`{"action":"set","namespace":"codebase","key":"layout","value":"cmd"}`, "Stored codebase/layout.", false},
		{`{"action":"set","namespace":"codebase","key":"map","value":{"a":[1]},"ttl_seconds":60,"extend":true}`, "Stored", false},
		{`{"action":"get","namespace":"codebase","key":"layout"}`, "written by self:\ncmd", false},
		{`{"action":"get","namespace":"codebase","key":"none"}`, "There is no codebase/none.", false},
		{`{"action":"structured","namespace":"codebase","key":"map"}`, `"a": [`, false},
		{`{"action":"structured","namespace":"codebase","key":"layout"}`, "codebase/layout, written by self, is no JSON", true},
		{`{"action":"query","namespace":"codebase","limit":5}`, `{"namespace":"codebase","key":"layout","value":"cmd","agent":"self"}`, false},
		{`{"action":"prefix","namespace":"codebase","prefix":"la"}`, `"layout"`, false},
		{`{"action":"prefix","namespace":"codebase","prefix":"%"}`, `begins with "%"`, false},
		{`{"action":"list","namespace":"codebase"}`, "map (written by self, 9 bytes)", false},
		{`{"action":"touch","namespace":"codebase","key":"map","ttl_seconds":9}`, "prolonged", false},
		{`{"action":"touch","namespace":"codebase","key":"none"}`, "There is no", false},
		{`{"action":"delete","namespace":"codebase","key":"map"}`, "codebase/map is gone", false},
		{`{"action":"write","namespace":"codebase","key":"layout","value":"cmd, web"}`, "Stored codebase/layout.", false},
		{`{"action":"read","namespace":"codebase","key":"layout"}`, "written by self:\ncmd, web", false},
		{`{"action":"get"}`, "get needs a key", true},
		{`{"action":"set","key":"k"}`, "needs a value", true},
		{`{"action":"set","key":"k","value":"v","ttl_seconds":-1}`, "below 0", true},
	}
	var blocks []agent.Block
	for _, s := range steps {
		blocks = append(blocks, call("", "shared_context", s.input))
	}
	if _, _, err := play(t, host, task("Work."), calls(blocks...), says("done")); err != nil {
		t.Fatal(err)
	}
	got := results(t, host.Turns(), 0)
	for i, s := range steps {
		if has(t, got[i].Text, s.want); got[i].IsError != s.bad {
			t.Errorf("%s: error %v: %s", s.input, got[i].IsError, got[i].Text)
		}
	}
	if w := host.Writes(); len(w) != 3 || w[1].Value != `{"a":[1]}` || w[1].TTLSeconds != 60 || !w[1].Extend {
		t.Errorf("written %+v", w)
	}
}

// A shared context that refuses is an answer; a run that is over is an end.
func TestASharedContextThatRefuses(t *testing.T) {
	host := team()
	host.Err = func(method string) error {
		if method == "Get" {
			return agent.Fail("forbidden", "kik may not read secrets.")
		}
		return nil
	}
	if _, _, err := play(t, host, task("Work."), calls(call("a", "shared_context", `{"action":"get","namespace":"secrets","key":"k"}`)), says("done")); err != nil {
		t.Fatal(err)
	}
	has(t, results(t, host.Turns(), 0)[0].Text, "forbidden: kik may not read secrets.")
	over := agenttest.NewHost()
	over.Err = func(method string) error {
		if method == "Get" {
			return agent.ErrStopped
		}
		return nil
	}
	if _, _, err := play(t, over, task("Work."), calls(call("a", "shared_context", `{"action":"get","key":"k"}`)), says("done")); !errors.Is(err, agent.ErrStopped) {
		t.Errorf("ended with %v", err)
	}
}
