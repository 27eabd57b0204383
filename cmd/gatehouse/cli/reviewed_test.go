package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/wire"
)

// atTerminal is a shell on a terminal in front of the fake server, with an answer typed.
func atTerminal(t *testing.T, f *fakeAPI, typed string) (sh *console.Shell, out, errs *bytes.Buffer, env map[string]string) {
	t.Helper()
	in, err := os.Open(os.DevNull)
	if typed != "" {
		name := filepath.Join(t.TempDir(), "typed")
		if err := os.WriteFile(name, []byte(typed+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err = os.Open(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() }) //nolint:errcheck // it was only read
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	env = map[string]string{"XDG_STATE_HOME": t.TempDir(), "PAGER": "cat"}
	sh = &console.Shell{Globals: console.Globals{URL: f.url(), Token: "ann's"}, In: in, Out: out, Errs: errs, Now: time.Now, Stdin: true, Tty: true,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	return sh, out, errs, env
}

// On a terminal approve shows the diff before it asks, or says that it is another one than
// was read, and shows that; what was read already is asked about at once.
func TestApproveOnATerminalShowsWhatItAsksAbout(t *testing.T) {
	t.Parallel()
	f := newFakeAPI()
	defer f.close()
	sh, out, errs, _ := atTerminal(t, f, "no")
	api, err := sh.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	approve := &ApproveCmd{ID: "c81m2x"}
	if err := approve.Run(t.Context(), sh, api); err == nil || err.Error() != "Nothing was approved." {
		t.Fatalf("after a no: %v", err)
	}
	if !strings.Contains(out.String(), "+new") || !strings.Contains(errs.String(), "⚠ ci_file, checks_failed\nLand it on main as one merge commit? [y/N]") {
		t.Errorf("shown: %s\nasked: %s", out, errs)
	}
	state, _ := sh.Env("XDG_STATE_HOME")
	again, out, _, env := atTerminal(t, f, "y")
	env["XDG_STATE_HOME"] = state
	if err := approve.Run(t.Context(), again, api); err != nil || strings.Contains(out.String(), "+new") {
		t.Errorf("what was read is shown again, or: %v\n%s", err, out)
	}
	if err := keepShown(again, reviewed{Server: api.Base(), Request: fakeReq, Revision: 1, Digest: strings.Repeat("0", 64), At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	changed, out, errs, env := atTerminal(t, f, "y")
	env["XDG_STATE_HOME"] = state
	if err := approve.Run(t.Context(), changed, api); err != nil || !strings.Contains(errs.String(), "It changed since you read revision 1 of it. This is revision 2:") || !strings.Contains(out.String(), "+new") {
		t.Errorf("what changed: %v\n%s\n%s", err, errs, out)
	}
	if sent := f.lastBody("POST /api/v1/approvals/{id}/decision"); !strings.Contains(sent, `"revision":2,"ticked":["ci_file","checks_failed"]`) {
		t.Errorf("sent: %s", sent)
	}
}

// What was shown is remembered for its person and its server alone, for a while, and where
// nobody else may write.
func TestWhatWasShownIsRemembered(t *testing.T) {
	t.Parallel()
	f := newFakeAPI()
	defer f.close()
	sh, _, _, env := atTerminal(t, f, "")
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	sh.Now = func() time.Time { return at }
	api, err := sh.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := wire.Request{ID: fakeReq, Revision: 3, Digest: fakeDigest}
	rememberShown(sh, api, r)
	folder, file, err := memoryFile(sh, api.Base(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{folder: 0o700, filepath.Dir(folder): 0o700, file: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %o", path, info, err, want)
		}
	}
	known := func(what string, want bool) {
		t.Helper()
		if v, ok := recallShown(sh, api, r.ID); ok != want || ok && (v.Revision != 3 || v.Digest != fakeDigest) {
			t.Errorf("%s: %+v %v", what, v, ok)
		}
	}
	known("at once", true)
	sh.Token = "bob's"
	known("another person", false)
	sh.Token = "ann's"
	at = at.Add(keepReviewed + time.Second)
	known("a month later", false)
	at = at.Add(-time.Hour)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	known("where others may write", false)
	if err := keepShown(sh, wasShown(sh, api, r)); err == nil || !strings.Contains(err.Error(), "others may write into") {
		t.Errorf("kept where others may write: %v", err)
	}
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"server":`), 0o600); err != nil {
		t.Fatal(err)
	}
	known("half a file", false)
	env["XDG_STATE_HOME"], env["HOME"] = "relative", ""
	if err := keepShown(sh, wasShown(sh, api, r)); err == nil {
		t.Error("kept nowhere")
	}
}

// Only so many are kept: the newest.
func TestTheOldestOfTooManyAreForgotten(t *testing.T) {
	t.Parallel()
	f := newFakeAPI()
	defer f.close()
	sh, _, _, _ := atTerminal(t, f, "")
	api, err := sh.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rememberShown(sh, api, wire.Request{ID: "apr_mine", Revision: 1, Digest: fakeDigest})
	folder, _, err := memoryFile(sh, api.Base(), "apr_mine")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxReviewed + 5 {
		name := filepath.Join(folder, strings.Repeat("f", 30)+string(rune('a'+i%26))+strings.Repeat("e", 1+i/26)+".json")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		age := time.Duration(i+1) * time.Minute
		if i == 0 {
			age = 2 * keepReviewed
		}
		if err := os.Chtimes(name, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	rememberShown(sh, api, wire.Request{ID: "apr_other", Revision: 1, Digest: fakeDigest})
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != maxReviewed {
		t.Errorf("%d are kept: %v", len(entries), err)
	}
	if _, ok := recallShown(sh, api, "apr_mine"); !ok {
		t.Error("a new one is forgotten")
	}
}
