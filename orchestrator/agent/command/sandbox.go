package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
)

// What a run is confined by, as Host.Sandbox is told.
const (
	SandboxBubblewrap = "bubblewrap"
	SandboxLandlock   = "landlock"
	SandboxNone       = "none"
)

// credentials are where people keep what an agent has no business with, below
// HOME. An agent that needs one names it under `writable`.
var credentials = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass",
	".config/gcloud", ".config/gh", ".config/hub", ".config/git/credentials", ".password-store", ".local/share/keyrings",
}

// doors lead out of a sandbox: through them a program lets others work for it.
var doors = []string{
	"/run/docker.sock", "/run/containerd", "/run/podman", "/run/user", "/run/dbus", "/run/systemd/private",
}

// states are the folders (with a slash at the end) and files, below HOME, in which
// known agents keep their sign-in and their sessions. Only the agent itself may write
// its own.
var states = map[string][]string{
	"claude":           {".claude/", ".claude.json"},
	"claude-agent-acp": {".claude/", ".claude.json"},
	"codex":            {".codex/"},
	"codex-acp":        {".codex/"},
	"gemini":           {".gemini/"},
	"opencode":         {".local/share/opencode/", ".local/state/opencode/"},
	"crush":            {".config/crush/", ".local/share/crush/"},
	"cursor":           {".cursor/"},
	"aider":            {".aider/"},
}

// stateOf returns what a known agent may write below home. The folders are made where
// they are missing, as the program would on its first run and inside a sandbox cannot: it may
// not write home itself. A file is not made, because an empty one is read as a broken
// one; nor is home. Only the names above are made, so a task cannot choose what.
func stateOf(program, home string) []string {
	names := states[filepath.Base(program)]
	if st, err := os.Stat(home); err != nil || !st.IsDir() {
		return nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			// Where it cannot be made, the program says better than we do what it lacks.
			_ = os.MkdirAll(filepath.Join(home, name), 0o700)
		}
	}
	return below(home, names)
}

// confinement is what a program may see and write. All paths are absolute, and
// exist, and have no link in them.
type confinement struct {
	who      string // whose program it is, for sentences
	dir      string
	tmp      string   // becomes /tmp under bubblewrap
	writable []string // beside dir
	readable []string // although it lies in a hidden folder
	hide     []string
	seen     []string // texts: what they name in /tmp must stay visible
}

// real returns the paths that exist, resolved, each once.
func real(paths []string) []string {
	var found []string
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			continue
		}
		if r, err := filepath.EvalSymlinks(p); err == nil && !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	return found
}

// below joins each name to home; without a home there is nothing.
func below(home string, names []string) []string {
	if home == "" {
		return nil
	}
	paths := make([]string, 0, len(names))
	for _, n := range names {
		paths = append(paths, filepath.Join(home, n))
	}
	return paths
}

// mount is one line of bwrap's arguments.
type mount struct {
	rank int // what wins on the same path: the higher
	dest string
	args []string
}

// bubblewrap returns the arguments that run a program confined by bwrap.
func (c confinement) bubblewrap(program string, args []string) []string {
	mounts := []mount{{rank: 0, dest: "/tmp", args: []string{"--bind", c.tmp, "/tmp"}}}
	for _, p := range c.tmpEntries() {
		mounts = append(mounts, mount{1, p, []string{"--ro-bind-try", p, p}})
	}
	for _, p := range c.hide {
		m := mount{2, p, []string{"--tmpfs", p}}
		if st, err := os.Stat(p); err == nil && !st.IsDir() {
			m.args = []string{"--ro-bind", "/dev/null", p}
		}
		mounts = append(mounts, m)
	}
	for _, p := range append(slices.Clone(c.writable), c.dir) {
		mounts = append(mounts, mount{3, p, []string{"--bind", p, p}})
	}
	for _, p := range c.readable {
		mounts = append(mounts, mount{3, p, []string{"--ro-bind", p, p}})
	}
	// A folder before what lies in it: a hidden folder inside a writable one stays
	// hidden, and a checkout inside a hidden folder is seen.
	slices.SortStableFunc(mounts, func(a, b mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.dest, "/"), strings.Count(b.dest, "/")), cmp.Compare(a.rank, b.rank))
	})
	line := []string{"bwrap", "--unshare-pid", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	for _, m := range mounts {
		line = append(line, m.args...)
	}
	line = append(line, "--chdir", c.dir, "--", program)
	return append(line, args...)
}

// inTmp finds the entries of /tmp that a text names.
var inTmp = regexp.MustCompile(`/tmp/[^/\s'":;,]+`)

// tmpEntries returns what of /tmp stays visible, read-only, inside the program's own
// /tmp: what the run is known to need, and what its command line and environment
// name. The rest is other people's, and may vanish while the mounts are made.
func (c confinement) tmpEntries() []string {
	var entries []string
	for _, text := range slices.Concat(c.seen, c.hide, c.writable, c.readable, []string{c.dir}) {
		for _, p := range inTmp.FindAllString(text, -1) {
			if _, err := os.Stat(p); err == nil && !slices.Contains(entries, p) {
				entries = append(entries, p)
			}
		}
	}
	return entries
}

// confineFor confines an agent's program as its declaration says, and tells the host.
func (r *Runner) confineFor(ctx context.Context, spec agent.Spec, host agent.Host, o *order, c confinement) error {
	kind, err := r.confine(ctx, o, c, spec.Sandbox)
	if err != nil {
		return err
	}
	if spec.Sandbox == agent.SandboxRequired && kind == SandboxNone {
		return agent.Fail(agent.CodeNoSandbox, "%s has `sandbox: required`, and nothing on this machine confines a program, so it was not started. "+
			"Install bubblewrap and allow user namespaces, or use Linux 6.2 or later with Landlock.", spec.Name)
	}
	if spec.Network == agent.NetworkOff {
		if !CanCloseNetwork() {
			return agent.Fail(agent.CodeNoSandbox, "%s has `network: off`, which cannot be had on this kind of processor, so it was not started.", spec.Name)
		}
		o.NoNetwork = true
	}
	if err := host.Sandbox(ctx, kind); err != nil {
		return fmt.Errorf("record the sandbox: %w", err)
	}
	if err := host.Confined(ctx, agent.Confinement{Limits: spec.Limits, Network: spec.Network}); err != nil {
		return fmt.Errorf("record the limits: %w", err)
	}
	return nil
}

// confine chooses the sandbox that is wanted and writes it into the order.
func (r *Runner) confine(ctx context.Context, o *order, c confinement, wanted string) (string, error) {
	kind, err := r.Confines(ctx, agent.Spec{Sandbox: wanted})
	if err != nil {
		return "", err
	}
	switch kind {
	case SandboxBubblewrap:
		o.Args = c.bubblewrap(o.Program, o.Args[1:])
		o.Program, o.Wrapped, o.Dir = r.bwrap, true, c.dir
		o.Fence = &fence{} // abstract sockets are no files: mounts do not hide them
		for i, pair := range o.Env {
			if strings.HasPrefix(pair, "TMPDIR=") {
				o.Env[i] = "TMPDIR=/tmp" // the same folder, short enough for the name of a socket
			}
		}
	case SandboxLandlock:
		if folder, hidden := c.exposes(); folder != "" {
			return "", agent.Fail(agent.CodeStart, "%s %s, so it was not started. %s", cmp.Or(c.who, "A program"), exposed(folder, hidden), mendExposed)
		}
		o.Fence = newFence(c.hide, append(slices.Clone(c.writable), c.dir))
		o.Fence.Read = append(o.Fence.Read, c.readable...)
	}
	return kind, nil
}

// exposes finds a writable folder with something hidden in it, which Landlock would show: it
// gives all that is below a folder and takes nothing out. What is itself named as writable is
// meant to be seen.
func (c confinement) exposes() (folder, hidden string) {
	for _, folder := range c.writable {
		for _, path := range c.hide {
			if within(path, folder) && !slices.Contains(c.writable, path) {
				return folder, path
			}
		}
	}
	return "", ""
}

// exposed says what is wrong after the name of who may write; mendExposed what to do.
func exposed(folder, hidden string) string {
	return fmt.Sprintf("may write %s, in which %s is hidden from programs, and Landlock cannot hide a part of a folder that may be written", folder, hidden)
}

const mendExposed = "Install bubblewrap and allow user namespaces, or name a folder under `writable` that has nothing hidden in it."

// Exposes says why an agent's program is not started here: that Landlock would show it what
// is hidden in a folder that it may write. "" where nothing is in the way.
func (r *Runner) Exposes(ctx context.Context, spec agent.Spec) (string, error) {
	if kind, err := r.Confines(ctx, spec); err != nil || kind != SandboxLandlock {
		return "", err
	}
	home := cmp.Or(spec.Env["HOME"], keepFrom(r.environ, r.keep).get("HOME"))
	folder, hidden := confinement{writable: real(spec.Writable), hide: r.hidden(home)}.exposes()
	if folder == "" {
		return "", nil
	}
	return fmt.Sprintf("%s %s, so it is not started here. %s", spec.Name, exposed(folder, hidden), mendExposed), nil
}

// bestSandbox finds out, once, what works on this machine: the kernel may forbid
// user namespaces, and a container may forbid mounting /proc.
func (r *Runner) bestSandbox(ctx context.Context) (string, error) {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.sandbox != "" {
		return r.sandbox, nil
	}
	best := SandboxNone
	path, err := exec.LookPath("bwrap")
	if err == nil {
		r.bwrap = path
		err = r.probe(ctx)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	switch {
	case err == nil:
		best = SandboxBubblewrap
	case landlockVersion() >= landlockFiles:
		best = SandboxLandlock
	}
	if err != nil {
		r.log.Warn("bubblewrap does not work here; install bubblewrap and allow user namespaces", "error", err, "used", best)
	}
	r.sandbox = best
	return best, nil
}

// probe runs true as an agent's program would run.
func (r *Runner) probe(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "gatehouse-probe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	dir = real([]string{dir})[0]
	c := confinement{dir: dir, tmp: dir, hide: r.hidden(os.Getenv("HOME"))}
	p, err := startProcess(r.self, order{
		Program: r.bwrap, Args: c.bubblewrap(program, nil), Dir: dir, Wrapped: true, Env: []string{"PATH=" + os.Getenv("PATH")},
	}, "GATEHOUSE_RUN=probe", false)
	if err != nil {
		return err
	}
	defer p.close()
	select {
	case <-p.ended:
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	p.stop(0)
	<-p.ended
	text, _ := io.ReadAll(io.LimitReader(p.stderr, tailBytes)) // what fits into the pipe is enough
	words := strings.TrimSpace(string(text))
	if p.err != nil {
		return p.err
	}
	switch r := p.report; {
	case r.NotStarted != nil:
		return errors.New(cmp.Or(words, r.NotStarted.Why))
	case r.Stopped || r.Code != 0 || r.Signal != 0:
		return errors.New(cmp.Or(words, "true did not run in it"))
	}
	return nil
}

// hidden returns what no confined program sees.
func (r *Runner) hidden(home string) []string {
	return real(slices.Concat(r.hide, r.secrets(), below(home, credentials), doors))
}

// Machine says what confines programs on this machine, and each thing that it does not
// forbid though a person may take it for forbidden.
func (r *Runner) Machine(ctx context.Context) (kind string, missing []string, err error) {
	kind, err = r.bestSandbox(ctx)
	if err != nil {
		return "", nil, err
	}
	return kind, gaps(kind, landlockVersion()), nil
}

// gaps are what a kind of sandbox leaves open with a version of Landlock, as sentences.
func gaps(kind string, landlock int) []string {
	if kind == SandboxNone {
		return []string{"Programs run without a sandbox: they read and write what the server may. Install bubblewrap and allow user namespaces, or use Linux 6.2 or later with Landlock."}
	}
	var all []string
	if kind == SandboxLandlock && landlock < landlockScopes {
		all = append(all, "A program can end processes of other runs and the server. Install bubblewrap, or use Linux 6.12 or later.")
	}
	if landlock < landlockScopes {
		all = append(all, "A program can connect to sockets without a path (abstract Unix sockets). Use Linux 6.12 or later.")
	}
	if kind == SandboxLandlock && landlock < landlockSockets {
		all = append(all, "A program can connect to sockets with a path that file rights leave open, hidden ones too, such as that of Docker. Install bubblewrap, or give the agent network: off.")
	}
	return all
}
