package command

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
