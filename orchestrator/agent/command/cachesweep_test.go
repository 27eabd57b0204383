package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent/agenttest"
)

// Given agents with caches, one of which is not configured any more, then a sweep removes its
// caches and those of checks of what it had a hand in, read-only folders and all; what is in
// use stays until the next sweep, and nothing else is touched, above all nothing outside.
func TestASweepRemovesOnlyWhatNoAgentOwns(t *testing.T) {
	caches, outside := filepath.Join(t.TempDir(), "caches"), t.TempDir()
	r := testRunner(t, func(o *Options) { o.Caches = caches })
	if n, err := r.SweepCaches(t.Context(), nil); n != 0 || err != nil {
		t.Fatalf("before anything is cached: %d, %v", n, err)
	}
	run := func(name string) {
		job := shell(t, `mkdir -p "$GOMODCACHE/m" && echo x > "$GOMODCACHE/m/f" && chmod -R a-w "$GOMODCACHE"; ln -s `+outside+` "$XDG_CACHE_HOME/away"; echo done`)
		job.Agent.Name = name
		if _, err := r.Run(t.Context(), job, agenttest.NewHost()); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("a", 64)
	for _, name := range []string{"coder", "gone", "Writer.2"} {
		run(name)
	}
	for _, authors := range [][]string{{"coder"}, {"coder", "Writer.2"}, {"gone"}, {"coder", "gone"}, {long, "coder"}} {
		if _, err := r.Check(t.Context(), t.TempDir(), "true", authors, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(outside, "kept")
	write(t, kept, "kept", 0o600)
	write(t, filepath.Join(caches, "agents", "notes.txt"), "not ours", 0o600)
	for _, link := range []string{filepath.Join("agents", "gone-0123456789abcdef"), "checked"} {
		if err := os.Symlink(outside, filepath.Join(caches, link)); err != nil {
			t.Fatal(err)
		}
	}
	present := func(paths ...string) (is []bool) {
		for _, p := range paths {
			_, err := os.Lstat(filepath.Join(caches, p))
			is = append(is, err == nil)
		}
		return is
	}
	is := func(what string, want bool, paths ...string) {
		t.Helper()
		for i, got := range present(paths...) {
			if got != want {
				t.Errorf("%s: %s is there: %t", what, paths[i], got)
			}
		}
	}
	here := []string{"coder", "Writer.2", long}
	own := []string{agentCaches("coder"), agentCaches("Writer.2"), checkCaches([]string{"coder"}), checkCaches([]string{"coder", "Writer.2"}), checkCaches([]string{long, "coder"}),
		"agents/notes.txt", "agents/gone-0123456789abcdef", "checked"}
	others := []string{agentCaches("gone"), checkCaches([]string{"gone"}), checkCaches([]string{"coder", "gone"})}
	ended := r.using(agentCaches("gone"))
	if n, err := r.SweepCaches(t.Context(), here); n != 2 || err != nil {
		t.Errorf("the first sweep removed %d, %v", n, err)
	}
	is("while gone's program runs", true, append(own, others[0])...)
	is("while gone's program runs", false, others[1:]...)
	ended()
	// As a sweep that was killed leaves it.
	if err := os.Rename(filepath.Join(caches, others[0]), filepath.Join(caches, "agents", gone+filepath.Base(others[0]))); err != nil {
		t.Fatal(err)
	}
	if n, err := r.SweepCaches(t.Context(), here); n != 1 || err != nil {
		t.Errorf("the second sweep removed %d, %v", n, err)
	}
	is("afterwards", true, own...)
	is("afterwards", false, append(others, "agents/"+gone+filepath.Base(others[0]))...)
	if text, err := os.ReadFile(kept); string(text) != "kept" || err != nil {
		t.Errorf("what is outside was touched: %q, %v", text, err)
	}
}

// A running program's caches are in use, a check's as well.
func TestAProgramThatRunsHoldsItsCaches(t *testing.T) {
	caches := t.TempDir()
	r := testRunner(t, func(o *Options) { o.Caches = caches })
	job := shell(t, `touch "$XDG_CACHE_HOME/mine"; until test -e go; do sleep 0.02; done; cat "$XDG_CACHE_HOME/mine" && echo held`)
	t.Cleanup(func() { loosen(t, caches) })
	done := make(chan string, 1)
	go func() {
		out, err := r.Run(t.Context(), job, agenttest.NewHost())
		if err != nil {
			done <- err.Error()
			return
		}
		done <- out.Result.Text
	}()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(caches, agentCaches("coder"), "xdg", "mine")); err == nil {
			break
		}
	}
	if n, err := r.SweepCaches(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("a sweep removed %d, %v", n, err)
	}
	write(t, filepath.Join(job.Dir, "go"), "", 0o600)
	if text := <-done; !strings.Contains(text, "held") {
		t.Errorf("the program said %q", text)
	}
	if n, err := r.SweepCaches(t.Context(), nil); n != 1 || err != nil {
		t.Errorf("after its end a sweep removed %d, %v", n, err)
	}
}
