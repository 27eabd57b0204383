package command

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent/agenttest"
)

// A program behind a pipe is talked to, sees the checkout but no token, and leaves
// nothing behind, however it is ended: a run ends its own processes and no others (P49).
func TestAProgramBehindAPipe(t *testing.T) {
	const script = `(setsid sleep 600 &); pwd; echo "token=$GATEHOUSE_TOKEN mode=$MODE"; while read line; do echo "got $line"; done; sleep 600`
	for _, end := range []string{"close", "the end of the context"} {
		t.Run(end, func(t *testing.T) {
			job := shell(t, "")
			env := map[string]string{"MODE": "a", "TEST_MARK": job.Agent.Env["TEST_MARK"]}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			host := agenttest.NewHost()
			p, err := testRunner(t).Pipe(ctx, job, host, []string{"sh", "-c", script}, env)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(p)
			next := func() string { lines.Scan(); return lines.Text() }
			dir, err := filepath.EvalSymlinks(job.Dir)
			if got := next(); err != nil || got != dir {
				t.Errorf("it works in %q; want %q, %v", got, dir, err)
			}
			if got := next(); got != "token= mode=a" {
				t.Errorf("it has %q", got)
			}
			if _, err := fmt.Fprintln(p, "hello"); err != nil {
				t.Fatal(err)
			}
			if got := next(); got != "got hello" {
				t.Errorf("it said %q", got)
			}
			if len(host.Sandboxes()) != 1 {
				t.Errorf("sandboxes %v", host.Sandboxes())
			}
			if end != "close" {
				cancel()
				agenttest.Eventually(t, "nothing is left", func() bool { return len(marked(job)) == 0 })
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if left := marked(job); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if left, err := os.ReadDir(job.ScratchDir); err != nil || len(left) > 0 {
				t.Errorf("its folder is left: %v, %v", left, err)
			}
		})
	}
	job := shell(t, "")
	if _, err := testRunner(t).Pipe(t.Context(), job, agenttest.NewHost(), []string{"no-such-program-here"}, nil); err == nil || !strings.Contains(err.Error(), "no-such-program-here") {
		t.Errorf("a missing program: %v", err)
	}
}

// An errand is a program that is run once: its input, its code and the end of what it says
// are told, and nothing that it leaves behind goes on (P22, P20).
func TestAnErrandIsRunOnceAndLeavesNothing(t *testing.T) {
	job := shell(t, "")
	env := map[string]string{"TEST_MARK": job.Agent.Env["TEST_MARK"], "MY_TOKEN": "a secret here"}
	once := func(e Errand, script string) (Ran, error) {
		e.Argv, e.Env, e.Keep = []string{"sh", "-c", script}, env, 100
		return testRunner(t).Once(t.Context(), job, agenttest.NewHost(), e)
	}
	got, err := once(Errand{Input: strings.Repeat("x", 1<<20)}, `(setsid sleep 600 &); sleep 600 & echo "t=$GATEHOUSE_TOKEN $MY_TOKEN"; echo bad >&2; exit 4`)
	if err != nil || got.Code != 4 || got.Output != "t= [secret]" || got.Errors != "bad" || got.Cut || got.Ended != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = once(Errand{Input: "hello", Merged: true}, `cat; echo; seq 100 >&2`); err != nil || got.Code != 0 || !got.Cut || !strings.HasSuffix(got.Output, "\n100") || len(got.Output) > 110 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = once(Errand{Timeout: 50 * time.Millisecond}, `trap '' TERM; sleep 600 & wait; sleep 600`); err != nil || !strings.Contains(got.Ended, "50ms, which is its limit") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = once(Errand{Apart: true}, `pwd; ls`); err != nil || strings.Contains(got.Output, job.Dir) || strings.Contains(got.Output, "\n") {
		t.Errorf("apart it sees %+v, %v", got, err)
	}
	if left := marked(job); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left, err := os.ReadDir(job.ScratchDir); err != nil || len(left) > 0 {
		t.Errorf("its folder is left: %v, %v", left, err)
	}
}
