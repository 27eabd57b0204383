package browser

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// firstDemo is the demo as a newcomer meets it, but for Go's library, which is compiled already; see warm. It is run once
// for all tests. Others begin with the caches that it leaves.
var firstDemo = sync.OnceValues(func() (demoRun, error) {
	folder, err := os.MkdirTemp("", "gatehouse-first-demo")
	if err != nil {
		return demoRun{}, err
	}
	if err := warm(context.Background(), folder); err != nil {
		return demoRun{}, err
	}
	return demoIn(context.Background(), folder)
})

// demoRun is what a demo printed and where it did its work.
type demoRun struct {
	folder    string
	out, errs string
	code      int
}

// demoIn runs the real program's `demo --once --json` with its things in a folder.
func demoIn(ctx context.Context, folder string, args ...string) (demoRun, error) {
	cmd := exec.CommandContext(ctx, "gatehouse", append([]string{"demo", "--once", "--json", "--data", folder}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		err = nil // the code tells
	}
	return demoRun{folder, out.String(), errs.String(), cmd.ProcessState.ExitCode()}, err
}

// firstDemoBegan tells whether there is a first demo to forget.
var firstDemoBegan atomic.Bool

// forgetFirstDemo removes the first demo's things once no test needs them.
func forgetFirstDemo() {
	if !firstDemoBegan.Load() {
		return
	}
	if first, err := firstDemo(); err == nil {
		os.RemoveAll(first.folder) //nolint:errcheck // the system's folder for what is temporary
	}
}

// first waits for the first demo.
func first(t *testing.T) demoRun {
	t.Helper()
	firstDemoBegan.Store(true)
	run, err := firstDemo()
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// demoFolderFor is an empty folder for a demo, but for the caches of the first one's team.
func demoFolderFor(t *testing.T) string {
	t.Helper()
	folder, from := t.TempDir(), filepath.Join(first(t).folder, "data", "caches")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(folder, "data", "caches", strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		return os.Link(path, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// refusedTask is the example of the demo that a guard refuses.
const refusedTask = "Try to hand this back to where it came from."

// demoDocument is what demo --once --json prints.
type demoDocument struct {
	TaskID     string     `json:"task_id"`
	ApprovalID string     `json:"approval_id"`
	Commit     string     `json:"commit"`
	Repository string     `json:"repository"`
	Chain      []handedOn `json:"chain"`
}

type handedOn struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// result reads what a demo printed.
func (r demoRun) result(t *testing.T) (demoDocument, string, int) {
	t.Helper()
	var res demoDocument
	if r.code == 0 {
		if err := json.Unmarshal([]byte(r.out), &res); err != nil {
			t.Fatalf("stdout is not one document: %v\n%s\n%s", err, r.out, r.errs)
		}
	}
	return res, r.errs, r.code
}

// demoOnce runs a demo of this test's own.
func demoOnce(t *testing.T, args ...string) (demoDocument, string, int) {
	t.Helper()
	run, err := demoIn(t.Context(), demoFolderFor(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	return run.result(t)
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// landedByDemo checks what a person would look at after demo --once.
func landedByDemo(t *testing.T, res demoDocument) {
	t.Helper()
	want := []handedOn{{"kik", "coder"}, {"coder", "reviewer"}}
	if len(res.Chain) != 2 || res.Chain[0] != want[0] || res.Chain[1] != want[1] {
		t.Errorf("the chain is %v", res.Chain)
	}
	log := runGit(t, res.Repository, "log", "-1", "--format=%H %P%n%B")
	if !strings.HasPrefix(log, res.Commit+" ") || len(strings.Fields(strings.SplitN(log, "\n", 2)[0])) != 3 {
		t.Errorf("the head is not the landed merge %s:\n%s", res.Commit, log)
	}
	for _, trailer := range []string{"Gatehouse-Task: " + res.TaskID, "Gatehouse-Agent: coder", "Gatehouse-Digest: ", "Approved-by: you"} {
		if !strings.Contains(log, trailer) {
			t.Errorf("no trailer %q in\n%s", trailer, log)
		}
	}
	if !strings.HasPrefix(res.ApprovalID, "apr_") {
		t.Errorf("the request is %q", res.ApprovalID)
	}
}

func TestTheDemoDoesTheMainJobByItself(t *testing.T) {
	t.Parallel()
	res, errs, code := first(t).result(t)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	landedByDemo(t, res)
	if got := runGit(t, res.Repository, "show", "HEAD:report/report.go"); !strings.Contains(got, "slices.Sort(names)") {
		t.Errorf("nothing was modernised:\n%s", got)
	}
}

// A real module without dependencies, from the module cache, put under git.
func TestTheDemoWorksOnAGivenRepositoryAndDoesNotWriteIt(t *testing.T) {
	t.Parallel()
	given := filepath.Join(t.TempDir(), "human größe")
	where, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", humanize).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(given, os.DirFS(strings.TrimSpace(string(where)))); err != nil {
		t.Fatal(err)
	}
	runGit(t, given, "init", "-q", "-b", "trunk")
	runGit(t, given, "add", "-A")
	runGit(t, given, "commit", "-q", "-m", "as published")
	before := fingerprint(t, given)
	res, errs, code := demoOnce(t, "--repo", given)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	landedByDemo(t, res)
	if fingerprint(t, given) != before {
		t.Error("the given folder was written")
	}

	// What has landed there is modern: a second demo on it finds nothing to do.
	_, errs, code = demoOnce(t, "--repo", res.Repository)
	if code != 1 || !strings.Contains(errs, "nothing to modernise") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

func TestTheDemoSaysWhatItCannotWorkOn(t *testing.T) {
	t.Parallel()
	empty, text := t.TempDir(), t.TempDir()
	runGit(t, text, "init", "-q", "-b", "main")
	runGit(t, text, "commit", "-q", "--allow-empty", "-m", "nothing")
	for folder, want := range map[string]string{filepath.Join(empty, "missing"): "no folder", empty: "not a git repository", text: "no go.mod"} {
		run, err := demoIn(t.Context(), t.TempDir(), "--repo", folder)
		if err != nil || run.code != 2 || !strings.Contains(run.errs, want) {
			t.Errorf("exit %d, want 2 and %q: %v\n%s", run.code, want, err, run.errs)
		}
	}
}

// fingerprint hashes every byte, name and mode below a folder.
func fingerprint(t *testing.T, folder string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h.Write([]byte(path + info.Mode().String() + info.ModTime().String()))
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			h.Write(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
