package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

func pidText() string { return strconv.Itoa(os.Getpid()) }

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// stubborn starts what is hard to find and hard to end, and says when it runs.
const stubborn = `trap '' TERM HUP INT
	(setsid sh -c '(sh -c "trap \"\" TERM; while :; do sleep 1; done" &) ; sleep 600' &)
	(sleep 600 &)
	echo up > up; while :; do sleep 1; done`

func TestKillingTheServerLeavesNoProcess(t *testing.T) {
	for name, change := range map[string]func(*agent.Job){"sandboxed": func(*agent.Job) {}, "unconfined": unconfined} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, stubborn, change)
			encoded, err := json.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			server := exec.Command(os.Args[0])
			server.Env = append(os.Environ(), asServer+"="+string(encoded))
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			agenttest.Eventually(t, "the program runs", func() bool { return exists(filepath.Join(job.Dir, "up")) })
			if err := server.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = server.Wait() // "signal: killed" is what was asked for
			started := time.Now()
			agenttest.Eventually(t, "all is gone", func() bool { return len(marked(job)) == 0 })
			if took := time.Since(started); took > grace+2*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestCancelLeavesNoProcessWithinTwoSeconds(t *testing.T) {
	for name, change := range map[string]func(*agent.Job){"sandboxed": func(*agent.Job) {}, "unconfined": unconfined} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, stubborn, change)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, 1)
			go func() {
				_, err := testRunner(t).Run(ctx, job, agenttest.NewHost())
				ended <- err
			}()
			agenttest.Eventually(t, "the program runs", func() bool { return exists(filepath.Join(job.Dir, "up")) })
			why := errors.New("ann cancelled it")
			cancel(why)
			started := time.Now()
			if err := <-ended; !errors.Is(err, why) {
				t.Errorf("ended with %v", err)
			}
			if took := time.Since(started); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
			if left := marked(job); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		})
	}
}

func TestAProgramIsAskedBeforeItIsKilled(t *testing.T) {
	job := shell(t, `trap 'echo tidied > tidy; exit 0' TERM; touch up; while :; do sleep 0.05; done`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = testRunner(t).Run(ctx, job, agenttest.NewHost())
	}()
	agenttest.Eventually(t, "the program runs", func() bool { return exists(filepath.Join(job.Dir, "up")) })
	cancel()
	<-ended
	if got := mustRead(t, filepath.Join(job.Dir, "tidy")); got != "tidied\n" {
		t.Errorf("got %q", got)
	}
}

// A program without a sandbox can kill its own supervisor. Then nothing reports how
// it ended, and the server cleans up after it.
func TestKillingTheSupervisorIsAnErrorAndLeavesNoProcess(t *testing.T) {
	job := shell(t, `(setsid sleep 600 &); kill -9 $PPID; sleep 600`, unconfined)
	_, err := run(t, job, agenttest.NewHost())
	if _, failure := errors.AsType[*agent.Failure](err); err == nil || failure {
		t.Fatalf("ended with %v; want an error, so that it is tried again", err)
	}
	agenttest.Eventually(t, "all is gone", func() bool { return len(marked(job)) == 0 })
}

func TestAForkBombIsEnded(t *testing.T) {
	job := shell(t, `f() { for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sh -c "sleep 600 & sleep 600 & sleep 600" &) ; done; }; f; f; f; sleep 600`)
	job.Agent.Limits = agent.Limits{Processes: 40}
	_, err := run(t, job, agenttest.NewHost())
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Code != agent.CodeProcesses || !strings.Contains(f.Message, "40 are allowed") {
		t.Fatalf("ended with %v", err)
	}
}

func TestTooMuchMemoryEndsTheRun(t *testing.T) {
	job := shell(t, `x=$(head -c 100000000 /dev/zero | tr '\0' x); sleep 600`)
	job.Agent.Limits = agent.Limits{Memory: 50 << 20}
	_, err := run(t, job, agenttest.NewHost())
	if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Code != agent.CodeMemory || !strings.Contains(f.Message, "50 MB are allowed") {
		t.Fatalf("ended with %v", err)
	}
}

func TestAMissingSelfIsAnErrorThatIsTriedAgain(t *testing.T) {
	r := New(Options{Self: "/no/such/gatehouse", Sandbox: "off"})
	_, err := r.Run(t.Context(), shell(t, `true`), agenttest.NewHost())
	if _, failure := errors.AsType[*agent.Failure](err); err == nil || failure {
		t.Fatalf("ended with %v", err)
	}
}

func TestNoFileIsLeftOpen(t *testing.T) {
	r := testRunner(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for i, before := 0, 0; i < 5; i++ {
		if _, err := r.Run(t.Context(), shell(t, `ls -l /proc/self/fd | grep -c pipe; exit 1`), agenttest.NewHost()); err == nil {
			t.Fatal("it should have failed")
		}
		if i == 0 {
			before = count()
		} else if now := count(); now > before {
			t.Fatalf("%d files open after run %d, %d after the first", now, i+1, before)
		}
	}
}

func TestTheProgramInheritsOnlyItsOwnPipes(t *testing.T) {
	leak, err := unix.FcntlInt(0, unix.F_DUPFD, 200) // as one that the server's parent left open
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(leak) }()
	// The fourth is the listing itself.
	if got := mustAnswer(t, shell(t, `cd /proc/self/fd && exec ls -C -w 1000`, unconfined)).Text; got != "0  1  2  3" {
		t.Fatalf("open files: %s", got)
	}
}

func TestSuperviseByHandDoesNothing(t *testing.T) {
	out, err := exec.Command(os.Args[0], SuperviseCommand).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), "by hand") {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c) S 7 9 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 4096 3 18446744073709551615"
	p, ok := parseStat(42, []byte(line))
	if !ok || p.parent != 7 || p.group != 9 || p.zombie || p.memory != 3*int64(unix.Getpagesize()) {
		t.Fatalf("%+v %v", p, ok)
	}
	for _, bad := range []string{"", "42 (a", "42 (a) S 1"} {
		if _, ok := parseStat(42, []byte(bad)); ok {
			t.Errorf("%q was read", bad)
		}
	}
}
