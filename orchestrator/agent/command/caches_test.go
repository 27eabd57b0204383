package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent/agenttest"
)

// poison tries to leave something for others wherever a cache is known to be.
const poison = `for d in "$XDG_CACHE_HOME" "$npm_config_cache" "$GOCACHE" "$GOMODCACHE" "$HOME/.cache" "$HOME/.npm" "$SHARED" \
	"$CACHES"/agents/coder* "$CACHES"/checks/* "$CACHES"; do echo evil 2>/dev/null > "$d/poison"; done; find "$XDG_CACHE_HOME" "$GOCACHE" -name poison | wc -l`

// found counts what somebody left there.
const found = `find "$XDG_CACHE_HOME" "$npm_config_cache" "$GOCACHE" "$GOMODCACHE" -name poison | wc -l`

// Given an agent that writes into all caches that it reaches, then no other agent and no
// check finds any of it; the agent itself does, so that its second run is warm.
func TestACacheIsWrittenByOneAgentOnly(t *testing.T) {
	for name, choose := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			home, data := t.TempDir(), t.TempDir()
			shared := filepath.Join(home, "go-build")
			for _, d := range []string{filepath.Join(home, ".cache"), filepath.Join(home, ".npm"), shared} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			caches := filepath.Join(data, "caches")
			r := testRunner(t, func(o *Options) {
				o.Hide, o.Caches = []string{data}, caches
				o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GOCACHE=" + shared, "XDG_CACHE_HOME=" + filepath.Join(home, ".cache")}
			})
			choose(r)
			as := func(agent, script string) string {
				job := shell(t, script)
				job.Agent.Name, job.Agent.Env["CACHES"], job.Agent.Env["SHARED"] = agent, caches, shared
				out, err := r.Run(t.Context(), job, agenttest.NewHost())
				if err != nil {
					t.Fatal(err)
				}
				return out.Result.Text
			}
			checked := func(script string, authors ...string) string {
				res, err := r.Check(t.Context(), t.TempDir(), script, authors, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSpace(res.Output)
			}
			as("coder", "true") // its caches are there when the other comes
			checked("true", "coder")
			if got := as("evil", poison); got != "2" {
				t.Errorf("evil left %s files in caches of its own, want 2", got)
			}
			for who, got := range map[string]string{
				"coder": as("coder", found), "checks of coder": checked(found, "coder"), "checks of evil": checked(found, "evil"),
				"checks of both": checked(found, "coder", "evil"), "checks of nobody": checked(found),
			} {
				if got != "0" {
					t.Errorf("%s found %s files", who, got)
				}
			}
			if got := as("evil", found); got != "4" {
				t.Errorf("evil found %s of its own 4", got)
			}
			// A check runs what its authors wrote: what it leaves is for their checks alone.
			checked(`echo evil > "$GOCACHE/poison"`, "evil", "coder")
			for who, want := range map[string]string{"coder": "0", "evil": "0"} {
				if got := checked(found, who); got != want {
					t.Errorf("checks of %s alone found %s", who, got)
				}
			}
			if got := checked(found, "coder", "evil"); got != "1" {
				t.Errorf("checks of both found %s, want their own", got)
			}
			for _, dir := range []string{filepath.Join(home, ".cache"), filepath.Join(home, ".npm"), shared, caches} {
				if exists(filepath.Join(dir, "poison")) {
					t.Errorf("%s was written", dir)
				}
			}
		})
	}
}

// Modules that the server's user has come from there without a network, into a cache of the
// agent's own, and only those whose sums are the repository's.
func TestModulesComeFromTheServersUserByTheirSums(t *testing.T) {
	sums := mustRead(t, "../../../go.sum")
	line := regexp.MustCompile(`(?m)^golang\.org/x/sync (v\S+) h1:(\S+)$`).FindStringSubmatch(sums)
	if line == nil {
		t.Fatal("the module of the test is not in go.sum")
	}
	for name, c := range map[string]struct{ sums, want string }{
		"its sum":     {sums, "here"},
		"another sum": {strings.ReplaceAll(sums, line[2], "AAAA"+line[2][4:]), "checksum mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, `go mod download golang.org/x/sync 2>&1; test -d "$GOMODCACHE/golang.org/x/sync@`+line[1]+`" && echo here`)
			job.Agent.Command[2] += "; true"
			job.Agent.Env["GOFLAGS"], job.Agent.Env["GOTOOLCHAIN"] = "-mod=mod", "local"
			write(t, filepath.Join(job.Dir, "go.mod"), "module app\n\ngo 1.24\n\nrequire golang.org/x/sync "+line[1]+"\n", 0o644)
			write(t, filepath.Join(job.Dir, "go.sum"), c.sums, 0o644)
			caches := t.TempDir()
			t.Cleanup(func() { loosen(t, caches) })
			r := testRunner(t, func(o *Options) { o.Caches = caches })
			// Only what the server's user has: no test asks a registry.
			o := append(os.Environ(), "GOPROXY=off")
			r.environ = o
			out, err := r.Run(t.Context(), job, agenttest.NewHost())
			if err != nil || !strings.Contains(out.Result.Text, c.want) {
				t.Errorf("%+v, %v", out.Result, err)
			}
		})
	}
}

// loosen makes folders of modules writable, so that they can be removed.
func loosen(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
