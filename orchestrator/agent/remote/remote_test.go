package remote_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/remote"
	"gatehouse/orchestrator/budget"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// TestContract runs what every kind of agent fulfils, over streams, by asking only (A31), and
// with a system of the protocol's older version. A remote agent hands nothing on here.
func TestContract(t *testing.T) {
	for name, set := range map[string]func(*elsewhere){
		"streaming": func(*elsewhere) {},
		"polling":   func(e *elsewhere) { e.card.Capabilities.Streaming = false },
		"0.3":       func(e *elsewhere) { e.old = true },
		"0.3, polling": func(e *elsewhere) {
			e.old, e.card.Capabilities.Streaming = true, false
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := func(text, want string) func(*testing.T) agenttest.Case {
				return func(t *testing.T) agenttest.Case {
					e := system(t)
					set(e)
					return agenttest.Case{Job: e.job(text), Text: want}
				}
			}
			agenttest.Suite(t, func(*testing.T) agent.Runner { return runner(remote.Options{}) }, agenttest.Behaviours{
				Answers:    one("say it is v2.3.1", "it is v2.3.1"), // A39a
				Fails:      one("fail for no reason", ""),
				Progresses: one("progress half of it", "took it on as task"),
				Hangs:      one("hang", ""),
			})
		})
	}
}

// run runs a job to its end.
func run(t *testing.T, o remote.Options, job agent.Job, host *agenttest.Host) (agent.Result, error) {
	t.Helper()
	return agenttest.Drive(t.Context(), runner(o), job, host)
}

// failure checks that a run ended with a code, and that its sentence holds the words.
func failure(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Code != code {
		t.Fatalf("ended with %v; want the code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("%q lacks %q", f.Message, w)
		}
	}
}

// The trip there and back: the task is sent with the token and the count of hops, what
// acknowledged it is shown first, then the progress, then the answer with its usage; the
// two turns keep it all (A22, A23, A24, A28, A29).
func TestThereAndBack(t *testing.T) {
	e := system(t)
	e.execute = func(_ context.Context, x *a2asrv.ExecutorContext, tell func(a2a.Event) bool) {
		task := a2a.NewSubmittedTask(x, x.Message)
		task.Metadata = map[string]any{"usage": map[string]any{"input_tokens": 12, "output_tokens": 5, "usd": 0.25}}
		tell(task)
		tell(status(x, a2a.TaskStateWorking, "half of it"))
		report := a2a.NewArtifactEvent(x, a2a.NewTextPart("All is well."), a2a.NewDataPart(map[string]any{"score": 7}))
		report.Artifact.Name = "report"
		tell(report)
		tell(a2a.NewArtifactEvent(x, a2a.NewRawPart([]byte("zip"))))
		tell(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil))
	}
	host, job := agenttest.NewHost(), e.job("Look at it.")
	job.Handover = &agent.Handover{Goto: "far", Update: agent.HandoverUpdate{Context: agent.HandoverContext{PreviousAgent: "kik"}}}
	job.Context = []agent.ContextEntry{{Namespace: "plan", Key: "k", Value: "a secret plan"}}
	res, err := run(t, remote.Options{}, job, host)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Text, "All is well.") || string(res.Data) != `{"score":7}` || len(res.Artifacts) != 2 || res.Artifacts[0].Name != "report" {
		t.Errorf("result %+v, data %s", res, res.Data)
	}
	if !strings.Contains(res.Text, "3 bytes") { // files are named, not taken
		t.Errorf("the file is not named: %q", res.Text)
	}
	shown, _ := host.Shown()
	if ack, half := strings.Index(shown, "took it on as task"), strings.Index(shown, "half of it"); ack < 0 || half < ack || !strings.Contains(shown, "Far helper") {
		t.Errorf("shown %q", shown)
	}
	if u := host.Used(); u.InputTokens != 12 || u.OutputTokens != 5 || u.USD == nil || *u.USD != 0.25 {
		t.Errorf("used %+v", u)
	}
	if turns := host.Turns(); len(turns) != 2 || turns[0].Message.Role != agent.FromUser || turns[1].Message.Role != agent.FromModel {
		t.Errorf("turns %+v", turns)
	}
	for i, h := range e.headers {
		if h.Get("Authorization") != "Bearer s3cret" || h.Get(agent.HopsHeader) != "2" {
			t.Errorf("call %s had the headers %v", e.calls[i], h)
		}
	}
	sent := strings.Join(e.bodies, "")
	if !strings.Contains(sent, "Look at it.") || !strings.Contains(sent, "kik") || strings.Contains(sent, "a secret plan") {
		t.Errorf("sent %s", sent)
	}
}

// What the sources fix: 120 s for the acknowledgement (A34), 3 s between questions (A31).
func TestFiguresOfTheSources(t *testing.T) {
	if remote.DefaultAck != 120*time.Second || remote.DefaultPoll != 3*time.Second {
		t.Errorf("%s, %s", remote.DefaultAck, remote.DefaultPoll)
	}
}

// What agents know here leaves the system only where `reads` names it.
func TestKnowledgeIsSentByNameOnly(t *testing.T) {
	e := system(t)
	job := e.job("say ok")
	job.Agent.Reads, job.Context = []string{"plan"}, []agent.ContextEntry{{Namespace: "plan", Key: "k", Value: "a shared plan"}}
	if _, err := run(t, remote.Options{}, job, agenttest.NewHost()); err != nil {
		t.Fatal(err)
	}
	if sent := strings.Join(e.bodies, ""); !strings.Contains(sent, "a shared plan") {
		t.Errorf("sent %s", sent)
	}
}

// An agent may answer without a task.
func TestAnAnswerWithoutATask(t *testing.T) {
	e := system(t)
	e.execute = func(_ context.Context, x *a2asrv.ExecutorContext, tell func(a2a.Event) bool) {
		tell(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("At once.")))
	}
	host := agenttest.NewHost()
	if res, err := run(t, remote.Options{}, e.job("x"), host); err != nil || res.Text != "At once." {
		t.Fatalf("%q, %v", res.Text, err)
	}
	if n := len(host.Turns()); n != 2 {
		t.Errorf("%d turns", n)
	}
}

// How a task may end there without an answer, each with its code and what was said.
func TestHowItEndsThere(t *testing.T) {
	for _, c := range []struct{ text, code, says string }{
		{"fail the disk is full", agent.CodeRemote, "failed"},
		{"decline not my work", agent.CodeRemote, "declined"},
		{"stop somebody pulled the plug", agent.CodeRemote, "cancelled"},
		{"ask which branch?", agent.CodeInput, "asks back"},
		{"signin at the door", agent.CodeInput, "sign in"},
	} {
		t.Run(c.text, func(t *testing.T) {
			e := system(t)
			_, err := run(t, remote.Options{}, e.job(c.text), agenttest.NewHost())
			_, said, _ := strings.Cut(c.text, " ")
			failure(t, err, c.code, c.says, said)
		})
	}
}

// A run that begins anew watches the same task, and one whose answer is stored asks
// nobody (A25, A27): the work is sent once.
func TestARunThatBeginsAnewSendsNothingAgain(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		e := system(t)
		e.card.Capabilities.Streaming = streaming
		release := make(chan struct{})
		e.execute = func(ctx context.Context, x *a2asrv.ExecutorContext, tell func(a2a.Event) bool) {
			tell(a2a.NewSubmittedTask(x, x.Message))
			select {
			case <-release:
			case <-ctx.Done():
				return
			}
			tell(a2a.NewArtifactEvent(x, a2a.NewTextPart("the answer")))
			tell(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil))
		}
		ctx, crash := context.WithCancel(t.Context())
		host := agenttest.NewHost()
		host.OnSave = func(agent.Turn) error { crash(); return nil } // the node is lost as soon as turn 1 is stored
		if _, err := agenttest.Drive(ctx, runner(remote.Options{}), e.job("x"), host); !errors.Is(err, context.Canceled) {
			t.Fatalf("ended with %v", err)
		}
		close(release)
		host.OnSave = nil
		job := e.job("x")
		job.Attempt = 2
		for range 2 { // the second time the answer is stored
			res, err := run(t, remote.Options{}, job, host)
			if err != nil || res.Text != "the answer" {
				t.Fatalf("%q, %v", res.Text, err)
			}
		}
		if n := e.made(sendCall, streamCall); n != 1 {
			t.Errorf("sent %d times", n)
		}
		if len(e.cancels) != 0 {
			t.Error("a lost run cancelled the task that another one goes on with")
		}
	}
}

// A run that was lost before the acknowledgement was stored looks for its task, and sends
// the same message where it finds none; another generation is another task.
func TestTheSameMessageForTheSameGeneration(t *testing.T) {
	e := system(t)
	ids := func(job agent.Job) (string, error) {
		before := len(e.bodies)
		_, err := run(t, remote.Options{}, job, agenttest.NewHost())
		for i, b := range e.bodies[before:] {
			if _, rest, ok := strings.Cut(b, `"messageId":"`); ok && e.calls[before+i] == streamCall {
				return rest[:36], err
			}
		}
		return "", err
	}
	job := e.job("say ok")
	first, err := ids(job)
	if err != nil || first == "" {
		t.Fatal(first, err)
	}
	job.Attempt = 2
	again, err := ids(job)
	if err != nil || again != "" && again != first {
		t.Errorf("sent again as %s, first %s, %v", again, first, err)
	}
	if e.made("ListTasks") == 0 {
		t.Error("it was not looked for")
	}
	job.Attempt, job.Generation = 1, 1
	if other, err := ids(job); err != nil || other == first {
		t.Errorf("another generation has the message %s, %v", other, err)
	}
}

// Nobody there, or somebody who does not say a word: the run fails after the time for the
// acknowledgement, with no_ack and what was tried (A34, X5).
func TestNoAcknowledgement(t *testing.T) {
	// Long enough for a slow machine to try twice.
	short := remote.Options{Ack: func() time.Duration { return 2 * time.Second }}
	gone := system(t)
	gone.Close()
	_, err := run(t, short, gone.job("x"), agenttest.NewHost())
	failure(t, err, agent.CodeNoAck, "did not acknowledge the task within 2s", "nothing is queued", "refused")

	for name, at := range map[string]string{"its card": "card", "a message": streamCall} {
		t.Run("silent on "+name, func(t *testing.T) {
			e := system(t)
			over := make(chan struct{})
			t.Cleanup(func() { close(over) }) // before the server closes, which waits for its handlers
			e.bend = func(_ http.ResponseWriter, call string, _ []byte) bool {
				if call == at {
					<-over
				}
				return false
			}
			_, err := run(t, short, e.job("x"), agenttest.NewHost())
			failure(t, err, agent.CodeNoAck)
		})
	}
	t.Run("always 503", func(t *testing.T) {
		e := system(t)
		e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
			if call == streamCall {
				http.Error(w, "busy", http.StatusServiceUnavailable)
			}
			return call == streamCall
		}
		_, err := run(t, short, e.job("x"), agenttest.NewHost())
		failure(t, err, agent.CodeNoAck, "503")
		if e.made(streamCall) < 2 {
			t.Error("it was not tried again")
		}
	})
}

// Who is cancelled here is cancelled there; a node that stops cancels nothing.
func TestCancelIsPassedOn(t *testing.T) {
	for _, over := range []bool{true, false} {
		e := system(t)
		host := agenttest.NewHost()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := agenttest.Drive(ctx, runner(remote.Options{}), e.job("hang"), host)
			done <- err
		}()
		agenttest.Eventually(t, "it works", func() bool { shown, _ := host.Shown(); return strings.Contains(shown, "I begin") })
		host.Gone.Store(over)
		cancel(agent.ErrStopped)
		if err := <-done; !errors.Is(err, agent.ErrStopped) {
			t.Fatalf("ended with %v", err)
		}
		if n := len(e.cancels); (n == 1) != over {
			t.Errorf("over is %v, and it was cancelled %d times", over, n)
		}
	}
}

// A limit that ends the run ends the work there, too.
func TestALimitCancels(t *testing.T) {
	e := system(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, agent.Fail(agent.CodeTimeout, "Too long."))
	defer cancel()
	_, err := agenttest.Drive(ctx, runner(remote.Options{}), e.job("hang"), agenttest.NewHost())
	failure(t, err, agent.CodeTimeout)
	if len(e.cancels) != 1 {
		t.Error("the work there goes on")
	}
}

// Usage that is missing or cannot be counts as all that is left.
func TestUsageThatIsNotReported(t *testing.T) {
	for name, usage := range map[string]any{
		"missing": nil, "negative": map[string]any{"input_tokens": -5, "output_tokens": 1}, "text": "much",
		"half": map[string]any{"input_tokens": 5}, "absurd": map[string]any{"input_tokens": 1e300, "output_tokens": 1},
		"a negative price": map[string]any{"input_tokens": 1, "output_tokens": 1, "usd": -3},
	} {
		t.Run(name, func(t *testing.T) {
			e := system(t)
			e.execute = func(_ context.Context, x *a2asrv.ExecutorContext, tell func(a2a.Event) bool) {
				task := a2a.NewSubmittedTask(x, x.Message)
				task.Metadata = map[string]any{"usage": usage}
				tell(task)
				tell(status(x, a2a.TaskStateCompleted, "ok"))
			}
			host, left := agenttest.NewHost(), int64(5000)
			host.Left = budget.Limits{Tokens: &left}
			if res, err := run(t, remote.Options{}, e.job("x"), host); err != nil || res.Text != "ok" {
				t.Fatalf("%q, %v", res.Text, err)
			}
			if u := host.Used(); u.InputTokens+u.OutputTokens != left || u.USD != nil {
				t.Errorf("used %+v", u)
			}
		})
	}
}
