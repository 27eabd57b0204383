package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// sandboxes are those that this machine has; without any, the tests that follow
// would hold nothing, so that is an error here.
func sandboxes(t *testing.T) map[string]func(*Runner) {
	t.Helper()
	found := map[string]func(*Runner){}
	probe := testRunner(t)
	if kind, err := probe.bestSandbox(t.Context()); err == nil && kind == SandboxBubblewrap {
		found[SandboxBubblewrap] = func(*Runner) {}
	}
	if landlockVersion() >= landlockFiles {
		found[SandboxLandlock] = func(r *Runner) { r.sandbox = SandboxLandlock }
	}
	if len(found) == 0 {
		t.Fatal("no sandbox works here: install bubblewrap and allow user namespaces")
	}
	return found
}

func TestAConfinedProgramWritesOnlyWhereItMay(t *testing.T) {
	for name, choose := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			data, beside, extra, home := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
			write(t, filepath.Join(data, "gatehouse.db"), "keys", 0o600)
			write(t, filepath.Join(beside, "other"), "readable", 0o644)
			config := filepath.Join(beside, "gatehouse.yaml")
			write(t, config, "password", 0o644)
			for _, d := range []string{".ssh", ".cache"} {
				if err := os.MkdirAll(filepath.Join(home, d), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(home, ".ssh", "id_ed25519"), "private", 0o600)

			job := shell(t, `try() { echo "$1: $(sh -c "$2" 2>/dev/null || echo no)"; }
				try checkout 'echo yes > a && cat a'
				try scratch 'echo yes > "$TMPDIR/a" && cat "$TMPDIR/a"'
				try extra 'echo yes > "$EXTRA/a" && cat "$EXTRA/a"'
				try cache 'echo yes > "$XDG_CACHE_HOME/a" && cat "$XDG_CACHE_HOME/a"'
				try shared 'echo yes > "$HOME/.cache/a"'
				try read 'cat "$BESIDE/other"'
				try beside 'echo yes > "$BESIDE/a"'
				try truncate ': > "$BESIDE/other"'
				try etc 'echo yes > /etc/gatehouse-test'
				try home 'echo yes > "$HOME/.profile"'
				try database 'cat "$DATA/gatehouse.db"'
				try config 'grep . "$BESIDE/gatehouse.yaml"'
				try ssh 'cat "$HOME/.ssh/id_ed25519"'
				try server 'cat /proc/$SERVER/environ'
				try null 'echo x > /dev/null && echo yes'
				try sibling 'cat "$SIBLING"'`)
			// The checkout lies inside the hidden folder, beside another run's.
			sibling := filepath.Join(data, "runs", "other", "secret")
			job.Dir = filepath.Join(data, "runs", "mine")
			for _, d := range []string{job.Dir, filepath.Dir(sibling)} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write(t, sibling, "secret", 0o644)
			for k, v := range map[string]string{"EXTRA": extra, "BESIDE": beside, "DATA": data, "HOME": home, "SIBLING": sibling, "SERVER": pidText()} {
				job.Agent.Env[k] = v
			}
			job.Agent.Writable = []string{extra}

			r := testRunner(t, func(o *Options) { o.Hide = []string{data, config, "/no/such/folder"} })
			choose(r)
			host := agenttest.NewHost()
			out, err := r.Run(t.Context(), job, host)
			if err != nil {
				t.Fatal(err)
			}
			if got := host.Sandboxes(); len(got) != 1 || got[0] != name {
				t.Errorf("told the host %v", got)
			}
			want := "checkout: yes|scratch: yes|extra: yes|cache: yes|shared: no|read: readable|beside: no|truncate: no|etc: no|home: no|" +
				"database: no|config: no|ssh: no|server: no|null: yes|sibling: no"
			if got := strings.ReplaceAll(out.Result.Text, "\n", "|"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if mustRead(t, filepath.Join(beside, "other")) != "readable" || mustRead(t, filepath.Join(job.Dir, "a")) != "yes\n" {
				t.Error("the files outside do not look like it")
			}
		})
	}
}

func TestAConfinedProgramMayWriteToTmpAndSeesItsNeighbours(t *testing.T) {
	r := testRunner(t)
	kind, err := r.bestSandbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tools, err := os.MkdirTemp("/tmp", "gatehouse-tools-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tools) })
	write(t, filepath.Join(tools, "tool"), "#!/bin/sh\necho from the tool\necho x > /tmp/gatehouse-test-note && rm /tmp/gatehouse-test-note\n", 0o755)
	job := shell(t, "")
	job.Agent.Command = []string{filepath.Join(tools, "tool")}
	if kind != SandboxBubblewrap {
		job.Agent.Writable = []string{"/tmp"} // Landlock can forbid, but not give another /tmp
	}
	if got := mustAnswer(t, job).Text; got != "from the tool" {
		t.Fatalf("got %q", got)
	}
	if exists("/tmp/gatehouse-test-note") {
		t.Error("the program's /tmp is everybody's")
	}
}

// On a fresh machine a coding agent finds its state folder made, and writes nothing
// else at home; another program gets no folder.
func TestAKnownAgentHasItsStateFolderOnAFreshMachine(t *testing.T) {
	const script = "#!/bin/sh\necho session > \"$HOME/.codex/log\" && echo kept\necho x > \"$HOME/.profile\" || echo no more\n"
	for name, choose := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			for program, want := range map[string]string{"codex": "kept\nno more", "stranger": "no more"} {
				home, bin := t.TempDir(), t.TempDir()
				job := shell(t, "")
				job.Agent.Command = []string{filepath.Join(bin, program)}
				job.Agent.Env["HOME"] = home
				write(t, job.Agent.Command[0], script, 0o755)
				r := testRunner(t)
				choose(r)
				out, err := r.Run(t.Context(), job, agenttest.NewHost())
				if err != nil || out.Result.Text != want {
					t.Errorf("%s: %+v, %v; want %q", program, out.Result, err, want)
				}
				st, err := os.Stat(filepath.Join(home, ".codex"))
				if made := err == nil; made != (program == "codex") || made && st.Mode().Perm() != 0o700 {
					t.Errorf("%s: the folder is %v, %v", program, st, err)
				}
			}
		})
	}
}

func TestAStateFolderIsNotMadeWhereItCannotBe(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".claude"), "a file", 0o600)
	if err := os.Symlink("/no/such/folder", filepath.Join(home, ".codex")); err != nil {
		t.Fatal(err)
	}
	stateOf("claude", home)
	if got := real(stateOf("/usr/bin/codex", home)); len(got) > 0 {
		t.Errorf("codex may write %v", got)
	}
	if got := mustRead(t, filepath.Join(home, ".claude")); got != "a file" {
		t.Errorf(".claude became %q", got)
	}
	missing := filepath.Join(home, "missing")
	if got := stateOf("gemini", missing); got != nil || exists(missing) {
		t.Errorf("a home was made, and %v in it may be written", got)
	}
	if got := stateOf("gemini", ""); got != nil {
		t.Errorf("without a home %v may be written", got)
	}
}

// A home in /tmp is seen in the program's own /tmp, too.
func TestAHomeInTmpIsSeen(t *testing.T) {
	home, err := os.MkdirTemp("/tmp", "gatehouse-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	write(t, filepath.Join(home, ".settings"), "mine", 0o600)
	cache := t.TempDir() // elsewhere, as home is seen when a cache lies in it
	r := testRunner(t, func(o *Options) {
		o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GOCACHE=" + cache, "GOMODCACHE=" + cache}
	})
	out, err := r.Run(t.Context(), shell(t, `cat "$HOME/.settings"`), agenttest.NewHost())
	if err != nil || out.Result.Text != "mine" {
		t.Errorf("got %+v, %v", out.Result, err)
	}
}

func TestAConfinedProgramCannotUndoItsSandbox(t *testing.T) {
	r := testRunner(t)
	if kind, err := r.bestSandbox(t.Context()); err != nil || kind != SandboxBubblewrap {
		return // Landlock cannot be undone by anybody
	}
	job := shell(t, `mount -o remount,rw / 2>/dev/null && echo remounted; umount /tmp 2>/dev/null && echo unmounted
		kill -9 `+pidText()+` 2>/dev/null && echo killed; grep -E '^(CapEff|NoNewPrivs)' /proc/self/status | tr '\t\n' '  '`)
	if got := mustAnswer(t, job).Text; got != "CapEff: 0000000000000000 NoNewPrivs: 1" {
		t.Fatalf("got %q", got)
	}
}

func TestTheGoToolWorksConfined(t *testing.T) {
	for name, choose := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			warm, err := exec.Command("go", "env", "GOCACHE").Output() // named under env, it is shared; a cold one is slow
			if err != nil {
				t.Fatal(err)
			}
			job := shell(t, `go vet ./... && go test ./... && go fix ./... && grep -c any a.go`)
			job.Agent.Env["GOCACHE"] = strings.TrimSpace(string(warm))
			write(t, filepath.Join(job.Dir, "go.mod"), "module a\n\ngo 1.26\n", 0o644)
			write(t, filepath.Join(job.Dir, "a.go"), "package a\n\nvar X interface{}\n", 0o644)
			write(t, filepath.Join(job.Dir, "a_test.go"), "package a\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.TempDir() }\n", 0o644)
			r := testRunner(t)
			choose(r)
			out, err := r.Run(t.Context(), job, agenttest.NewHost())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(out.Result.Text, "\n1") {
				t.Fatalf("got %q", out.Result.Text)
			}
		})
	}
}

func TestSandboxOffIsSaid(t *testing.T) {
	host := agenttest.NewHost()
	if _, err := run(t, shell(t, `true`, unconfined), host); err != nil {
		t.Fatal(err)
	}
	if got := host.Sandboxes(); len(got) != 1 || got[0] != SandboxNone {
		t.Errorf("told the host %v", got)
	}
}

// What is hidden is not shown because it lies in a folder that may be written. Landlock gives
// all that is below a folder, so where nothing else confines, the program is not started.
// Who names the hidden thing itself means it to be seen.
func TestNothingHiddenIsShownInAWritableFolder(t *testing.T) {
	for name, choose := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			keys, data := filepath.Join(home, ".ssh"), filepath.Join(home, "data")
			for _, dir := range []string{keys, data} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "secret"), "secret", 0o600)
			}
			r := testRunner(t, func(o *Options) { o.Hide = []string{data} })
			choose(r)
			for _, one := range []struct {
				writable []string
				sees     string
				hidden   string
			}{
				{[]string{home}, "ssh: no, data: no", data},
				{[]string{home, data}, "ssh: no, data: secret", keys},
				{[]string{home, data, keys}, "ssh: secret, data: secret", ""},
			} {
				job := shell(t, `touch "$HOME/wrote"; echo "ssh: $(cat "$HOME/.ssh/secret" 2>/dev/null || echo no), data: $(cat "$HOME/data/secret" 2>/dev/null || echo no)"`)
				job.Agent.Env["HOME"], job.Agent.Writable = home, one.writable
				why, err := r.Exposes(t.Context(), job.Agent)
				if err != nil {
					t.Fatal(err)
				}
				host := agenttest.NewHost()
				out, err := r.Run(t.Context(), job, host)
				wrote := os.Remove(filepath.Join(home, "wrote")) == nil
				if name == SandboxBubblewrap || one.hidden == "" {
					if err != nil || out.Result.Text != one.sees || !wrote || why != "" {
						t.Errorf("%v: it says %+v, %v; %q", one.writable, out.Result, err, why)
					}
					continue
				}
				f, ok := errors.AsType[*agent.Failure](err)
				if !ok || f.Code != agent.CodeStart || !strings.Contains(f.Message, "may write "+home+", in which "+one.hidden+" is hidden") || !strings.Contains(f.Message, "Install bubblewrap") {
					t.Errorf("%v: ended with %v", one.writable, err)
				}
				if wrote || len(host.Sandboxes()) > 0 || !strings.Contains(why, one.hidden+" is hidden") {
					t.Errorf("%v: it ran (%v), or nobody knew before: %q", one.writable, wrote, why)
				}
			}
		})
	}
}

func TestAHiddenFolderInsideAWritableOneStaysHidden(t *testing.T) {
	line := strings.Join(confinement{dir: "/srv/data/run", tmp: "/srv/data/scratch/tmp", writable: []string{"/srv"}, hide: []string{"/srv/data"}}.
		bubblewrap("/bin/true", []string{"-x"}), " ")
	at := -1
	for _, want := range []string{"--ro-bind / /", "--bind /srv /srv", "/srv/data ", "--bind /srv/data/run /srv/data/run", "--chdir /srv/data/run -- /bin/true -x"} {
		i := strings.Index(line, want)
		if i <= at {
			t.Fatalf("%q is missing or out of order in %s", want, line)
		}
		at = i
	}
}
