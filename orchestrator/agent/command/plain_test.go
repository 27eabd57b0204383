package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

func TestTheTaskComesOnStandardInputAndInFiles(t *testing.T) {
	job := shell(t, `cat; echo; echo "var $GATEHOUSE_TASK"; echo "file $(cat "$GATEHOUSE_TASK_FILE")"; cat "$GATEHOUSE_CONTEXT"; echo
		echo "$GATEHOUSE_TASK_ID $GATEHOUSE_DELEGATION_ID $GATEHOUSE_URL"; pwd; tr '\0' ' ' < /proc/$$/cmdline`)
	job.Context = []agent.ContextEntry{{Namespace: "team", Key: "tone", Value: "dry", Agent: "kik"}}
	text := mustAnswer(t, job).Text
	for _, want := range []string{
		"fix it\n", "var fix it", "file fix it", `[{"namespace":"team","key":"tone","value":"dry","agent":"kik"}]`,
		"tsk_1 dlg_1 http://127.0.0.1:1", job.Dir,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the program did not see %q:\n%s", want, text)
		}
	}
	if line := text[strings.LastIndex(text, "\n"):]; strings.Contains(line, "fix it") {
		t.Errorf("the task is in an argument: %s", line)
	}
}

func TestAfterRequestChangesTheTaskIsFollowedByWhatWasSaid(t *testing.T) {
	job := shell(t, `cat`)
	job.Feedback = &agent.Feedback{
		Comment: "Keep the old name.", Comments: []agent.LineComment{{Path: "core/a.go", Line: 7, Text: "not this", Code: "\treturn nil"},
			{Path: "core/b.go", Line: 2, Side: "L", Text: "why gone?"}, {Path: "core/c.go", Text: "split it"}}, Note: "2 are left out.", Earlier: []agent.Earlier{{Revision: 1, By: "bob", Comment: "please add c2"}}, Diff: "--- a/x\n+++ b/x\n",
	}
	text := mustAnswer(t, job).Text
	at := 0
	for _, want := range []string{"fix it", "Keep the old name.", "bob, of revision 1: please add c2\n", "core/a.go:7: not this\n> \treturn nil\n", "core/b.go:2 (before the change): why gone?", "core/c.go: split it", "2 are left out.", "--- a/x\n+++ b/x"} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing or out of order in:\n%s", want, text)
		}
		at += i
	}
}

func TestALongTaskIsNotInAVariable(t *testing.T) {
	job := shell(t, `wc -c; wc -c < "$GATEHOUSE_TASK_FILE"; echo "${GATEHOUSE_TASK-unset}"`)
	job.Text = strings.Repeat("x", 200_000)
	if got := strings.Fields(mustAnswer(t, job).Text); strings.Join(got, " ") != "200000 200000 unset" {
		t.Fatalf("got %q", got)
	}
}

func TestAProgramThatDoesNotReadItsTaskIsFine(t *testing.T) {
	job := shell(t, `exec <&-; echo fine`)
	job.Text = strings.Repeat("x", 1<<20)
	if got := mustAnswer(t, job).Text; got != "fine" {
		t.Fatalf("got %q", got)
	}
}

func TestWithoutARepositoryItStartsInAnEmptyFolder(t *testing.T) {
	job := shell(t, `ls -A; echo new > file; cat file`)
	job.Dir = ""
	if got := mustAnswer(t, job).Text; got != "new" {
		t.Fatalf("got %q", got)
	}
}

func TestNonZeroExitIsAFailureWithTheTail(t *testing.T) {
	job := shell(t, `for i in $(seq 1 100); do echo "line $i" >&2; done; echo "token $GATEHOUSE_TOKEN" >&2; exit 7`)
	f := mustFail(t, job, agent.CodeExit, "sh ended with code 7", "line 100", "line 83", "[secret]")
	if strings.Contains(f.Message, "line 60\n") || strings.Contains(f.Message, job.Token) {
		t.Errorf("too long a tail, or a secret in it: %s", f.Message)
	}
	mustFail(t, shell(t, `echo "--- FAIL: TestX"; exit 1`), agent.CodeExit, "--- FAIL: TestX")
	mustFail(t, shell(t, `kill -9 $$`), agent.CodeExit, "signal 9")
	mustFail(t, shell(t, `kill -9 $$`, unconfined), agent.CodeExit, "signal 9")
}

func TestAFailureSaysWhatWasSaidOnBothOutputs(t *testing.T) {
	const before = "sh ended with code 3. The last it said:\n"
	for script, want := range map[string]string{
		`echo old >&2; echo Not logged in; exit 3`: before + "old\nAnd on standard output:\nNot logged in",
		`echo same >&2; echo same; exit 3`:         before + "same",
		`echo only; exit 3`:                        before + "only",
		`exit 3`:                                   "sh ended with code 3 and said nothing about why.",
	} {
		if f := mustFail(t, shell(t, script), agent.CodeExit); f.Message != want {
			t.Errorf("%s: %q, want %q", script, f.Message, want)
		}
	}
}

// The last words count, also when the program is gone before they were read.
func TestTheLastWordsOfAProgramAreHeard(t *testing.T) {
	for range 10 {
		job := shell(t, `yes "a long line, again and again" | head -c 60000 >&2; echo "and why" >&2; exit 1`)
		if f := mustFail(t, job, agent.CodeExit); !strings.HasSuffix(f.Message, "and why") {
			t.Fatalf("its last words are %q", f.Message[max(0, len(f.Message)-60):])
		}
	}
}

func TestAProgramThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		make    func(dir string)
		words   string
	}{
		"not installed":      {"no-such-program", nil, "was not found"},
		"not in checkout":    {"./review.sh", nil, "not in the checkout"},
		"not executable":     {"./review.sh", func(dir string) { write(t, filepath.Join(dir, "review.sh"), "#!/bin/sh\n", 0o644) }, "chmod +x"},
		"interpreter absent": {"./review.sh", func(dir string) { write(t, filepath.Join(dir, "review.sh"), "#!/no/such\n", 0o755) }, "first line may name a program"},
		"no program":         {"./review.sh", func(dir string) { write(t, filepath.Join(dir, "review.sh"), "echo ok\n", 0o755) }, "no program for this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, "", unconfined)
			if c.make != nil {
				c.make(job.Dir)
			}
			job.Agent.Command = []string{c.command}
			mustFail(t, job, agent.CodeStart, c.words)
		})
	}
}

func TestARelativeCommandIsTheCheckouts(t *testing.T) {
	job := shell(t, "")
	write(t, filepath.Join(job.Dir, "review.sh"), "#!/bin/sh\necho reviewed\n", 0o755)
	job.Agent.Command = []string{"./review.sh"}
	if got := mustAnswer(t, job).Text; got != "reviewed" {
		t.Fatalf("got %q", got)
	}
}

func TestHundredMegabytesEndTheRun(t *testing.T) {
	job := shell(t, `head -c 100000000 /dev/zero; echo no > "$PWD/reached"; sleep 600`)
	mustFail(t, job, agent.CodeOutput, "8388608 bytes")
	if exists(filepath.Join(job.Dir, "reached")) {
		t.Error("it went on after its limit")
	}
	job = shell(t, `echo 0123456789`)
	job.Agent.OutputLimit = 5
	mustFail(t, job, agent.CodeOutput, "more than 5 bytes")
}

// What a program says on the side has the same limit, in both protocols, and its last words
// are no way around it.
func TestAFloodOnStandardErrorEndsTheRun(t *testing.T) {
	for name, change := range map[string]func(*agent.Job){"plain": func(*agent.Job) {}, "jsonl": jsonl} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, `head -c 9000000 /dev/zero | tr '\0' '\n' >&2; sleep 600`, change)
			mustFail(t, job, agent.CodeOutput, "8388608 bytes on standard error", "raise its `output_limit`")
			job = shell(t, `echo 0123456789 >&2; echo '{"type":"result","text":"done"}'`, change)
			job.Agent.OutputLimit = 40
			if got := mustAnswer(t, job).Text; !strings.Contains(got, "done") {
				t.Errorf("below the limit: %q", got)
			}
			job.Agent.OutputLimit = 8
			mustFail(t, job, agent.CodeOutput, "more than 8 bytes")
		})
	}
}

func TestNULsAndBrokenUTF8AreReplaced(t *testing.T) {
	if got := mustAnswer(t, shell(t, `printf 'a\000b\377c'`)).Text; got != "a\uFFFDb\uFFFDc" {
		t.Fatalf("got %q", got)
	}
}

// Colours and titles are for a terminal; the words between them are the answer, and a
// secret is no less one for being coloured in half.
func TestWhatIsForATerminalIsLeftOut(t *testing.T) {
	host := agenttest.NewHost()
	res, err := run(t, shell(t, `printf '\033]0;title\007\033[1;31mred\033[0m \033]8;;http://x\033\\link\033]8;;\033\\ %s\033[0m%s\n\033[K' \
		"$(printf %.9s "$GATEHOUSE_TOKEN")" "${GATEHOUSE_TOKEN#?????????}"; printf '\033[32mstep\033[m one\n' >&2`), host)
	if err != nil {
		t.Fatal(err)
	}
	if res.Text != "red link [secret]" {
		t.Errorf("the answer is %q", res.Text)
	}
	if shown, _ := host.Shown(); shown != "step one" {
		t.Errorf("progress is %q", shown)
	}
	f := mustFail(t, shell(t, `printf '\033[31mNot logged in\033[0m\n'; exit 1`), agent.CodeExit)
	if want := "sh ended with code 1. The last it said:\nNot logged in"; f.Message != want {
		t.Errorf("the failure is %q, want %q", f.Message, want)
	}
	for _, broken := range []string{"\x1b", "\x1b[", "\x1b]no end", "a\x1b[31\nb", "[31m"} {
		if got := plain(broken); got != broken {
			t.Errorf("%q became %q", broken, got)
		}
	}
}

func TestTheTimeoutEndsAll(t *testing.T) {
	job := shell(t, `trap '' TERM; (setsid sleep 600 &); sleep 600; sleep 600`)
	job.Agent.Timeout = 300 * time.Millisecond
	started := time.Now()
	mustFail(t, job, agent.CodeTimeout, "300ms")
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

// engineClock is a host that knows better than the runner how long it ran.
type engineClock struct {
	*agenttest.Host
	ran time.Duration
}

func (e engineClock) RunningTime() time.Duration { return e.ran }

func TestTheEnginesClockCounts(t *testing.T) {
	job := shell(t, `sleep 0.5; echo fine`)
	job.Agent.Timeout = 100 * time.Millisecond
	out, err := testRunner(t).Run(t.Context(), job, engineClock{agenttest.NewHost(), 0})
	if err != nil || out.Result.Text != "fine" {
		t.Fatalf("waiting at the engine counted: %v", err)
	}
	job = shell(t, `sleep 600`)
	_, err = testRunner(t).Run(t.Context(), job, engineClock{agenttest.NewHost(), time.Hour})
	if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Code != agent.CodeTimeout {
		t.Fatalf("ended with %v", err)
	}
}

func TestChildrenLeftBehindAreGoneBeforeTheResultCounts(t *testing.T) {
	const script = `(setsid sh -c 'sh -c "trap \"\" TERM; while :; do sleep 1; done" &' &)
		(sleep 600 &) ; nohup sleep 600 >/dev/null 2>&1 & echo left`
	for name, change := range map[string]func(*agent.Job){"sandboxed": func(*agent.Job) {}, "unconfined": unconfined} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, script, change)
			started := time.Now()
			if got := mustAnswer(t, job).Text; got != "left" {
				t.Fatalf("got %q", got)
			}
			if left := marked(job); len(left) > 0 {
				t.Fatalf("still running: %v", left)
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("took %s: it waited for pipes that children held", took)
			}
		})
	}
}

func TestAProgramMayDeleteItsCheckout(t *testing.T) {
	for name, change := range map[string]func(*agent.Job){"sandboxed": func(*agent.Job) {}, "unconfined": unconfined} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, `touch a; rm -rf "$PWD" 2>/dev/null; echo gone`, change)
			if got := mustAnswer(t, job).Text; got != "gone" {
				t.Fatalf("got %q", got)
			}
			if exists(filepath.Join(job.Dir, "a")) {
				t.Error("the file is still there")
			}
		})
	}
}

func TestAThousandLinesOfProgressAreMerged(t *testing.T) {
	host := agenttest.NewHost()
	if _, err := run(t, shell(t, `for i in $(seq 1 1000); do echo "step $i" >&2; done`), host); err != nil {
		t.Fatal(err)
	}
	shown, times := host.Shown()
	if len(times) > 20 || !strings.Contains(shown, "step 1000") || !strings.HasPrefix(shown, "step 1") {
		t.Fatalf("%d messages; %.100s", len(times), shown)
	}
	for i := 2; i < len(times)-1; i++ { // the last may follow at once, when the program ends
		if gap := times[i].Sub(times[i-1]); gap < mergeTime-10*time.Millisecond {
			t.Errorf("message %d came after %s", i, gap)
		}
	}
}

func TestAFloodOfProgressKeepsItsEnd(t *testing.T) {
	host := agenttest.NewHost()
	if _, err := run(t, shell(t, `yes "a long line of progress, again and again" | head -n 200000 >&2; echo last >&2`), host); err != nil {
		t.Fatal(err)
	}
	shown, times := host.Shown()
	if !strings.Contains(shown, "lines left out") || !strings.HasSuffix(shown, "last") {
		t.Fatalf("end of progress: %.200s", shown[max(0, len(shown)-200):])
	}
	if limit := len(times) * (mergeBytes + 100); len(shown) > limit {
		t.Errorf("%d bytes shown in %d messages", len(shown), len(times))
	}
}

func TestGatehouseIsOnPath(t *testing.T) {
	r := testRunner(t)
	job := shell(t, `readlink -f "$(command -v gatehouse)"; cd "$TMPDIR" && touch here && echo writable`)
	out, err := r.Run(t.Context(), job, agenttest.NewHost())
	if err != nil {
		t.Fatal(err)
	}
	self, err := filepath.EvalSymlinks(r.self)
	if err != nil {
		t.Fatal(err)
	}
	if want := self + "\nwritable"; out.Result.Text != want {
		t.Fatalf("got %q, want %q", out.Result.Text, want)
	}
}

func TestNoSecretOfTheServerReachesAProgram(t *testing.T) {
	r := testRunner(t, func(o *Options) {
		o.Environ = append(os.Environ(), "GITHUB_TOKEN=topsecret1", "ANTHROPIC_API_KEY=topsecret2", "HOOK_SECRET=topsecret3",
			"DATABASE_URL=topsecret4", "GATEHOUSE_CONFIG=topsecret5", "LC_SECRET=topsecret6", "UNKNOWN=topsecret7", "LC_TIME=C.UTF-8", "TZ=Europe/Vienna")
	})
	job := shell(t, `env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep topsecret || :`)
	job.Agent.Env["MODEL_KEY"] = "given-to-this-agent"
	out, err := r.Run(t.Context(), job, agenttest.NewHost())
	if err != nil {
		t.Fatal(err)
	}
	text := out.Result.Text
	if strings.Contains(text, "topsecret") {
		t.Errorf("a secret in the environment:\n%s", text)
	}
	// The agent's own key is there, and is not shown.
	for _, want := range []string{"LC_TIME=C.UTF-8", "TZ=Europe/Vienna", "MODEL_KEY=[secret]", "GATEHOUSE_TOKEN=[secret]", "HOME="} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in:\n%s", want, text)
		}
	}
}
