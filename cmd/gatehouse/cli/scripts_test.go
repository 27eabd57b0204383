package cli

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the real program. The scripts that speak to a server get one that
// answers as the contract says, at $GATEHOUSE_URL.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"GATEHOUSE_CONFIG", "GATEHOUSE_TOKEN", "PAGER", "LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR"} {
				e.Setenv(name, "")
			}
			e.Setenv("LC_ALL", "C.UTF-8")
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("GORACE", placetest.NoSleep)
			api := newFakeAPI()
			e.Defer(api.close)
			e.Setenv("GATEHOUSE_URL", api.url())
			e.Values[apiKey{}] = api
			addr, err := freeAddress()
			if err != nil {
				return err
			}
			e.Setenv("ADDR", addr)
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				e.Setenv("GIT_"+who+"_NAME", "Ann")
				e.Setenv("GIT_"+who+"_EMAIL", "ann@example.com")
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":       wantCode,
			"cutting":    cutting,
			"sent":       sent,
			"secret":     secret,
			"forging":    forging,
			"delivering": delivering,
			"pressing":   pressing,
			"answers":    answers,
			"retried":    retried,
			"id":         idIn,
		},
	})
}

// freeAddress is one for a script that serves: below the ports that the system gives to whoever asks for any, as other
// tests do at the same time.
func freeAddress() (string, error) {
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(10_000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return "", err
		}
		return l.Addr().String(), l.Close()
	}
}

type apiKey struct{}

// answers waits until a server answers at an address, or a request at it is pending.
func answers(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		req, err := http.NewRequest(http.MethodGet, args[0], nil)
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+ts.Getenv("GATEHOUSE_TOKEN"))
		if res, err := http.DefaultClient.Do(req); err == nil {
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err == nil && res.StatusCode == http.StatusOK && (len(args) == 1 || strings.Contains(string(body), args[1])) {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("no answer as wanted from %s", args[0])
}

// retried lets a task go on that is held up; it may have done so by itself just now: retried TASK.
func retried(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("gatehouse", append([]string{"retry"}, args...)...)
	if said := ts.ReadFile("stderr"); err != nil && !strings.Contains(said, "This has completed.") {
		ts.Fatalf("retry: %v", err)
	}
}

// wantCode runs a command and compares its exit code: code 2 gatehouse sned.
func wantCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%s: exit code %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
	// What it printed is for stdout and stderr, as after exec.
}

// cutting makes the server end its next N streams after one event each: cutting N. Off, it
// refuses them all, and the task has ended when the first was refused: cutting off.
func cutting(ts *testscript.TestScript, _ bool, args []string) {
	ts.Value(apiKey{}).(*fakeAPI).cut(args[0])
}

// sent compares the last body of a route with a pattern.
func sent(ts *testscript.TestScript, neg bool, args []string) {
	body := ts.Value(apiKey{}).(*fakeAPI).lastBody(args[0])
	if strings.Contains(body, args[1]) == neg {
		ts.Fatalf("%s got %s; contains %q: %v", args[0], body, args[1], neg)
	}
}

// secret puts the first line of a file into a variable: secret TOKEN stdout-file.
func secret(ts *testscript.TestScript, _ bool, args []string) {
	first, _, _ := strings.Cut(ts.ReadFile(args[1]), "\n")
	ts.Setenv(args[0], first)
}

// forging changes bytes of a file: forging FILE OLD NEW.
func forging(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not have %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(name, []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}

// delivering posts a file as GitHub does to the trigger ci-failed: delivering ID FILE.
func delivering(ts *testscript.TestScript, _ bool, args []string) {
	body := ts.ReadFile(args[1])
	req, err := http.NewRequest(http.MethodPost, "http://"+ts.Getenv("ADDR")+"/hooks/ci-failed", strings.NewReader(body))
	ts.Check(err)
	placetest.Signed(req, args[0], []byte(body))
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	ts.Check(res.Body.Close())
	ts.Logf("the hook answered %s", res.Status)
}

// pressing says what the fake's next decision meets: decided, moved or plain.
func pressing(ts *testscript.TestScript, _ bool, args []string) {
	ts.Value(apiKey{}).(*fakeAPI).meet(args[0])
}

// idIn puts the first value of a key of a JSON file into a variable: id VAR FILE KEY.
func idIn(ts *testscript.TestScript, _ bool, args []string) {
	_, rest, found := strings.Cut(ts.ReadFile(args[1]), `"`+args[2]+`":"`)
	value, _, closed := strings.Cut(rest, `"`)
	if !found || !closed {
		ts.Fatalf("%s has no %s", args[1], args[2])
	}
	ts.Setenv(args[0], value)
}
