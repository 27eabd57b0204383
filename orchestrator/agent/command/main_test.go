package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// asServer makes the test binary run one job, so that a test can kill -9 it.
const asServer = "COMMAND_TEST_JOB"

// TestMain lets the test binary stand for gatehouse: it is its own supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SuperviseCommand {
		os.Exit(Supervise())
	}
	if os.Getenv(asClient) != "" {
		os.Exit(reach())
	}
	if behaviour := os.Getenv(asACP); behaviour != "" {
		os.Exit(serveACP(strings.TrimSpace(behaviour)))
	}
	if job := os.Getenv(asServer); job != "" {
		os.Exit(serveOne(job))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func serveOne(encoded string) int {
	var job agent.Job
	if err := json.Unmarshal([]byte(encoded), &job); err != nil {
		return 2
	}
	self, err := os.Executable()
	if err != nil {
		return 2
	}
	if _, err := New(Options{Self: self}).Run(context.Background(), job, agenttest.NewHost()); err != nil {
		return 1
	}
	return 0
}

func testRunner(t *testing.T, change ...func(*Options)) *Runner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Self: self}
	for _, c := range change {
		c(&opts)
	}
	return New(opts)
}

// shell is a job whose program is a shell script. When the test ends, none of the
// processes that ever had its mark may live.
func shell(t *testing.T, script string, change ...func(*agent.Job)) agent.Job {
	t.Helper()
	root := t.TempDir()
	job := agent.Job{
		TaskID: "tsk_1", DelegationID: "dlg_1", Attempt: 1, Text: "fix it", URL: "http://127.0.0.1:1", Token: "run-token-0123456789",
		Dir: filepath.Join(root, "checkout"), ScratchDir: filepath.Join(root, "scratch"),
		Agent: agent.Spec{
			Name: "coder", Kind: agent.Command, Command: []string{"sh", "-c", script}, Timeout: 30 * time.Second,
			Env: map[string]string{"TEST_MARK": rand.Text()},
		},
	}
	for _, dir := range []string{job.Dir, job.ScratchDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range change {
		c(&job)
	}
	t.Cleanup(func() {
		if left := marked(job); len(left) > 0 {
			t.Errorf("orphan processes: %v", left)
		}
	})
	return job
}

func jsonl(job *agent.Job)      { job.Agent.Protocol = "jsonl" }
func unconfined(job *agent.Job) { job.Agent.Sandbox = "off" }

// marked lists the living processes that carry the job's mark.
func marked(job agent.Job) []string {
	var found []string
	for _, p := range processTable() {
		dir := filepath.Join("/proc", strconv.Itoa(p.pid))
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && !p.zombie && strings.Contains(string(env), "TEST_MARK="+job.Agent.Env["TEST_MARK"]) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, fmt.Sprintf("%d %s", p.pid, strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	return found
}

func run(t *testing.T, job agent.Job, host agent.Host) (agent.Result, error) {
	t.Helper()
	out, err := testRunner(t).Run(t.Context(), job, host)
	if err != nil {
		return agent.Result{}, err
	}
	return *out.Result, nil
}

// mustAnswer runs the job and returns its answer.
func mustAnswer(t *testing.T, job agent.Job) agent.Result {
	t.Helper()
	res, err := run(t, job, agenttest.NewHost())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// mustFail runs the job and returns its failure, which must have the code and hold
// the words.
func mustFail(t *testing.T, job agent.Job, code string, words ...string) *agent.Failure {
	t.Helper()
	res, err := run(t, job, agenttest.NewHost())
	f, ok := err.(*agent.Failure)
	if !ok || f.Code != code {
		t.Fatalf("answer %q, error %v; want a failure with code %s", res.Text, err, code)
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("the failure lacks %q: %s", w, f.Message)
		}
	}
	return f
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
