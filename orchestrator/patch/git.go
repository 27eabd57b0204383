package patch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// attributes switch off whatever git would do to a file between a tree and a
// folder, and every way in which a committed .gitattributes could change what a
// diff or merge shows. They stand in info/attributes, which wins over all others.
// (working-tree-encoding and diff must be "!": "-" is an error for the one and
// hides the text for the other.)
const attributes = "* -text !eol -crlf -filter -ident !working-tree-encoding !export-subst !diff !merge !whitespace !conflict-marker-size\n"

// command is one call of git.
type command struct {
	dir    string    // working folder; "" is the mirror
	gitDir string    // "" is the mirror; "-" leaves GIT_DIR unset (git finds it from dir)
	args   []string  // without "git"
	env    []string  // further variables
	stdin  io.Reader // nil is empty
	max    int64     // bytes of output; 0 is 64 MiB
	remote bool      // talks to the source: gets the credential and the way out
	held   *os.File  // stays open in the command and its children; nil is none
}

// failure is a git command that ended with an error.
type failure struct {
	verb   string
	code   int // exit status; -1 when it was killed
	stderr string
	err    error
}

func (f *failure) Error() string {
	if f.stderr == "" {
		return fmt.Sprintf("git %s: %v", f.verb, f.err)
	}
	return fmt.Sprintf("git %s: %v: %s", f.verb, f.err, f.stderr)
}

func (f *failure) Unwrap() error { return f.err }

// errOutput: git printed more than the caller is ready to hold.
var errOutput = errors.New("output is larger than the limit")

// fixed is put before every command: nothing of the machine's or a person's
// configuration takes part, and nothing runs by itself.
var fixed = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false",
	"-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.ignoreCase=false",
	"-c", "core.precomposeUnicode=false", "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true",
	"-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.ext.allow=never", "-c", "credential.helper=",
	"-c", "commit.gpgSign=false", "-c", "advice.detachedHead=false", "-c", "submodule.recurse=false",
	"-c", "fetch.recurseSubmodules=false", "-c", "color.ui=false", "-c", "diff.renameLimit=2000",
}

// environment is all that git sees. GIT_CONFIG_GLOBAL names a file of our own,
// because git drops -c settings on the way to upload-pack and receive-pack, and
// safe.directory must reach them.
func (r *Mirror) environment(c command) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(r.home.dir, "home"), "LC_ALL=C", "LANGUAGE=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + r.dir + ".config", "GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "GIT_LITERAL_PATHSPECS=1", "GIT_ADVICE=0",
	}
	switch c.gitDir {
	case "":
		env = append(env, "GIT_DIR="+r.dir)
	case "-": // but never a repository that the data folder happens to lie in
		env = append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(r.home.dir))
	default:
		env = append(env, "GIT_DIR="+c.gitDir)
	}
	if c.remote && !r.repo.Local() {
		for _, name := range []string{"SSH_AUTH_SOCK", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
			"http_proxy", "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
			if v := os.Getenv(name); v != "" {
				env = append(env, name+"="+v)
			}
		}
		user, secret, ok := strings.Cut(r.repo.Credential, ":")
		if !ok {
			user, secret = "x-access-token", r.repo.Credential
		}
		env = append(env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes",
			"GIT_ASKPASS="+filepath.Join(r.home.dir, "askpass"), "GATEHOUSE_ASKPASS_USER="+user, "GATEHOUSE_ASKPASS_SECRET="+secret)
	}
	return append(env, c.env...)
}

// once runs one command to its end and returns what it printed. When ctx ends its whole
// process group is told to stop, so that git takes its lock files away, and then killed.
func (r *Mirror) once(ctx context.Context, c command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.home.opts.Timeout)
	defer cancel()
	limit := c.max
	limit = cmp.Or(max(limit, 0), 64<<20)
	out := &bounded{max: limit, stop: cancel}
	stderr := &tail{max: 4 << 10}
	cmd := r.prepare(ctx, c)
	cmd.Stdout, cmd.Stderr = out, stderr
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // who did not listen
	}
	switch {
	case out.over:
		return nil, fmt.Errorf("git %s: %w", verb(c.args), errOutput)
	case err != nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return out.buf.Bytes(), &failure{verb: verb(c.args), code: cmd.ProcessState.ExitCode(), stderr: r.redact(stderr.String()), err: err}
	}
	return out.buf.Bytes(), nil
}

func (r *Mirror) prepare(ctx context.Context, c command) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{}, fixed...), c.args...)...)
	cmd.Dir = cmp.Or(c.dir, r.home.dir)
	cmd.Env = r.environment(c)
	cmd.Stdin = c.stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if c.held != nil {
		cmd.ExtraFiles = []*os.File{c.held}
	}
	return cmd
}

// text runs a command whose answer is one short line.
func (r *Mirror) text(ctx context.Context, args ...string) (string, error) {
	out, err := r.git(ctx, command{args: args})
	return strings.TrimSpace(string(out)), err
}

// verb is the subcommand, for errors; arguments may hold paths and are left out.
func verb(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") && !strings.Contains(a, "=") {
			return a
		}
	}
	return ""
}

// redact takes the credential, and passwords in URLs, out of a text for people.
func (r *Mirror) redact(s string) string {
	if c := r.repo.Credential; c != "" {
		s = strings.ReplaceAll(s, c, "[redacted]")
		if _, secret, ok := strings.Cut(c, ":"); ok && secret != "" {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	return redactURL(s)
}

// bounded keeps output up to max bytes and stops the command beyond.
type bounded struct {
	buf  bytes.Buffer
	max  int64
	over bool
	stop func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(b.buf.Len()+len(p)) > b.max {
		b.over = true
		b.stop()
		return len(p), nil
	}
	return b.buf.Write(p)
}

// tail keeps the last max bytes.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > t.max {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-t.max:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), "?")) }

// exitCode returns the exit status behind err, or -1.
func exitCode(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return -1
}

// stderrOf returns what git said behind err.
func stderrOf(err error) string {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.stderr
	}
	return ""
}

// scratch makes a private folder for a temporary index or file; done removes it.
func (r *Mirror) scratch() (dir string, done func(), err error) {
	dir, err = os.MkdirTemp(filepath.Join(r.home.dir, "tmp"), "x")
	if err != nil {
		return "", nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
