package command

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// asClient makes the test binary look for what it reaches, from inside a run.
const asClient = "COMMAND_TEST_CLIENT"

// reach says what a confined program reaches: a socket without a path, one with a path,
// and a port.
func reach() int {
	names := map[string]string{"abstract": "unix", "socket": "unix", "port": "tcp"}
	for _, name := range []string{"abstract", "socket", "port"} {
		c, err := net.Dial(names[name], os.Getenv("REACH_"+strings.ToUpper(name)))
		if err != nil {
			_, _ = os.Stdout.WriteString(name + ": no\n")
			continue
		}
		_ = c.Close()
		_, _ = os.Stdout.WriteString(name + ": yes\n")
	}
	return 0
}

// listen stands for a service on this machine that is not the agent's.
func listen(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// P49: an agent's program ends neither another run's process, nor the server, nor its own
// supervisor. On a kernel that is too old for it the machine's report says so.
func TestARunReachesNoProcessButItsOwn(t *testing.T) {
	for name, choose := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			other := exec.Command("sleep", "600")
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
			job := shell(t, `try() { if kill -0 $2 2>/dev/null; then echo "$1: yes"; else echo "$1: no"; fi; }
				try other $OTHER; try server $SERVER; try supervisor $PPID
				sleep 600 & try own $!; kill -9 $!`)
			job.Agent.Env["OTHER"], job.Agent.Env["SERVER"] = strconv.Itoa(other.Process.Pid), pidText()
			r := testRunner(t)
			choose(r)
			out, err := r.Run(t.Context(), job, agenttest.NewHost())
			if err != nil {
				t.Fatal(err)
			}
			want := "other: no\nserver: no\nsupervisor: no\nown: yes"
			if name == SandboxLandlock && landlockVersion() < landlockScopes {
				want = "other: yes\nserver: yes\nsupervisor: yes\nown: yes"
				if said := strings.Join(gaps(name, landlockVersion()), " "); !strings.Contains(said, "end processes of other runs") {
					t.Errorf("it is not said: %s", said)
				}
			}
			got := out.Result.Text
			if name == SandboxBubblewrap { // its own number there is 1 or 2, and never the supervisor's
				got = strings.Replace(got, "supervisor: yes", "supervisor: no", 1)
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// Whoever cannot end its supervisor cannot leave a process behind either.
func TestAConfinedProgramCannotEndItsSupervisor(t *testing.T) {
	if landlockVersion() < landlockScopes {
		if said := strings.Join(gaps(SandboxLandlock, landlockVersion()), " "); !strings.Contains(said, "Linux 6.12") {
			t.Errorf("it is not said: %s", said)
		}
		return
	}
	r := testRunner(t)
	r.sandbox = SandboxLandlock
	out, err := r.Run(t.Context(), shell(t, `(env -i setsid sleep 600 &) ; kill -9 $PPID || echo still here`), agenttest.NewHost())
	if err != nil || out.Result.Text != "still here" {
		t.Fatalf("got %+v, %v", out.Result, err)
	}
}

func TestWhatARunReachesOverSockets(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, choose := range sandboxes(t) {
		for _, network := range []string{agent.NetworkOpen, agent.NetworkOff} {
			t.Run(name+" "+network, func(t *testing.T) {
				hidden := t.TempDir()
				job := shell(t, "")
				job.Agent.Command, job.Agent.Network = []string{self}, network
				job.Agent.Env[asClient] = "1"
				job.Agent.Env["REACH_ABSTRACT"] = listen(t, "unix", "@gatehouse-test-"+job.Agent.Env["TEST_MARK"])
				job.Agent.Env["REACH_SOCKET"] = listen(t, "unix", filepath.Join(hidden, "s"))
				job.Agent.Env["REACH_PORT"] = listen(t, "tcp", "127.0.0.1:0")
				r := testRunner(t, func(o *Options) { o.Hide = []string{hidden} })
				choose(r)
				out, err := r.Run(t.Context(), job, agenttest.NewHost())
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"abstract": "no", "socket": "no", "port": "yes"}
				said := strings.Join(gaps(name, landlockVersion()), " ")
				if network == agent.NetworkOff {
					want["port"] = "no"
				} else {
					if landlockVersion() < landlockScopes {
						want["abstract"] = "yes"
						if !strings.Contains(said, "sockets without a path") {
							t.Errorf("it is not said: %s", said)
						}
					}
					if name == SandboxLandlock && landlockVersion() < landlockSockets {
						want["socket"] = "yes"
						if !strings.Contains(said, "sockets with a path") {
							t.Errorf("it is not said: %s", said)
						}
					}
				}
				if got, all := out.Result.Text, "abstract: "+want["abstract"]+"\nsocket: "+want["socket"]+"\nport: "+want["port"]; got != all {
					t.Errorf("got  %q\nwant %q", got, all)
				}
			})
		}
	}
}

func TestRequiredAndMissingIsAFailure(t *testing.T) {
	r := testRunner(t)
	r.sandbox = SandboxNone // as on a machine without bubblewrap and Landlock
	job := shell(t, `echo ran > ran`)
	job.Agent.Sandbox = agent.SandboxRequired
	host := agenttest.NewHost()
	_, err := r.Run(t.Context(), job, host)
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Code != agent.CodeNoSandbox || !strings.Contains(f.Message, "Install bubblewrap") {
		t.Fatalf("ended with %v", err)
	}
	if exists(filepath.Join(job.Dir, "ran")) || len(host.Sandboxes()) > 0 {
		t.Error("it ran all the same")
	}
	r.sandbox = ""
	if _, err := r.Run(t.Context(), job, host); err != nil || !exists(filepath.Join(job.Dir, "ran")) {
		t.Errorf("where there is a sandbox it does not run: %v", err)
	}
}

func TestTooManyFilesEndTheRun(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"many":                    {`for i in 1 2 3 4; do head -c 700000 /dev/zero > f$i; done; echo done`, "2 MB are allowed"},
		"one that is too long":    {`head -c 9000000 /dev/zero > f || exit $?`, "a file of more than 2 MB"},
		"one, and nobody listens": {`exec head -c 9000000 /dev/zero > f`, "a file of more than 2 MB"},
		"in the scratch folder":   {`for i in 1 2 3 4; do head -c 700000 /dev/zero > "$TMPDIR/f$i"; done; sleep 600`, "2 MB are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			job := shell(t, c.script)
			write(t, filepath.Join(job.Dir, "before"), strings.Repeat("x", 3<<20), 0o644) // was there, and does not count
			job.Agent.Limits = agent.Limits{Files: 2 << 20}
			mustFail(t, job, agent.CodeDisk, c.want)
		})
	}
	job := shell(t, `head -c 1000000 /dev/zero > f; echo done`)
	job.Agent.Limits = agent.Limits{Files: 2 << 20}
	if got := mustAnswer(t, job).Text; got != "done" {
		t.Errorf("within its limit: %q", got)
	}
}

func TestARunIsKeptToItsProcessors(t *testing.T) {
	job := shell(t, `nproc`)
	job.Agent.Limits = agent.Limits{CPU: 1}
	host := agenttest.NewHost()
	res, err := run(t, job, host)
	if err != nil || res.Text != "1" {
		t.Errorf("got %q, %v", res.Text, err)
	}
	if got := host.Confinements(); len(got) != 1 || got[0].Limits != job.Agent.Limits {
		t.Errorf("told the host %+v", got)
	}
}

// What a run used is told at its end, however it ends.
func TestWhatARunUsedIsTold(t *testing.T) {
	job := shell(t, `x=$(head -c 60000000 /dev/zero | tr '\0' x); touch up; sleep 2; head -c 500000 /dev/zero > f; exit 3`)
	job.Agent.Limits = agent.Limits{Memory: 1 << 30, Processes: 50, Files: 1 << 30}
	host := agenttest.NewHost()
	if _, err := run(t, job, host); err == nil {
		t.Fatal("it should have failed")
	}
	all := host.Confinements()
	if len(all) != 2 {
		t.Fatalf("told the host %+v", all)
	}
	if m := all[1].Most; m.Memory < 30_000_000 || m.Processes < 1 || m.Files < 500_000 || m.Memory > 500<<20 {
		t.Errorf("used %+v", m)
	}
}
