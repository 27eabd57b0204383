package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"
)

const (
	// startTime is how long a program may take to answer until its session is there. Some load
	// a plugin or two over the network first.
	startTime = 2 * time.Minute
	// CancelGrace is how long a program may take to end its turn once it is told to; then it
	// is ended.
	CancelGrace = 600 * time.Millisecond
	// maxPrompts is how often a run goes on with what people said to its calls.
	maxPrompts = 20
	// maxWords bounds what is told of one text of the program, in bytes.
	maxWords = 8 << 10
	// maxTokens bounds one report of usage, so that sums cannot overflow.
	maxTokens = 1_000_000_000_000
)

// Work is what a dialogue is about, and how it reaches those around it.
type Work struct {
	Job     agent.Job
	Host    agent.Host
	Dir     string // where the program works
	Task    string // as programs are told it
	Program string // in sentences
	Limit   int64  // of what it says in one turn, in bytes
	Safe    func(string) string
	Secret  int // length of the longest secret that Safe takes out
	Say     func(line string)
	Pause   func() // the run waits for a person
	Resume  func()
}

// Dialogue is what is said to one program and by it. Its updates are taken by one goroutine,
// and each request for a permission has one of its own.
type Dialogue struct {
	Work
	wire *wire
	conn *sdk.Connection
	ctx  context.Context // of Talk; ends with its cause when the run is over
	fail context.CancelCauseFunc

	closing sync.Mutex
	closed  bool
	open    sync.WaitGroup // goroutines that use the host, or wait for the program

	sending sync.Mutex // held while something is decided and reported, so that reports keep their order
	mu      sync.Mutex // guards all below
	said
	record
	asks
	id     string // of the session, "" until the first prompt: what comes before is a replay
	cost   float64
	billed float64
}

// New is a dialogue with a program over its standard input and output. It begins with Talk.
func New(w Work) *Dialogue {
	return &Dialogue{Work: w, record: record{calls: map[string]*call{}}, asks: asks{counts: map[string]int{}, passes: map[string]int{}}}
}

// begin is true where a goroutine may begin, which calls open.Done.
func (t *Dialogue) begin() bool {
	t.closing.Lock()
	defer t.closing.Unlock()
	if t.closed {
		return false
	}
	t.open.Add(1)
	return true
}

// Wait returns once nothing of the dialogue runs. The program must have ended.
func (t *Dialogue) Wait() {
	t.closing.Lock()
	t.closed = true
	t.closing.Unlock()
	if t.conn != nil {
		<-t.wire.ended
	}
	t.open.Wait()
}

// Talk gives the program its task and returns its answer. When ctx ends the program is told,
// and Talk returns within CancelGrace. After it, output is read and thrown away until its end.
func (t *Dialogue) Talk(ctx context.Context, stdin io.Writer, stdout io.Reader) (agent.Result, error) {
	t.ctx, t.fail = context.WithCancelCause(ctx)
	defer t.fail(nil)
	t.wire = &wire{update: t.take, broken: t.broken, program: t.Program, noise: func(line string) { t.Say(t.brief(line, maxWords)) }}
	t.conn = dial(t.wire, stdin, stdout, t.handle)
	text, err := t.enter()
	if err == nil {
		err = t.turns(text)
	}
	if cause := context.Cause(t.ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return agent.Result{}, err
	}
	return agent.Result{Text: t.answer()}, nil
}

// broken ends the run for what the program wrote. Once the run is over it changes nothing.
func (t *Dialogue) broken(err error) { t.fail(err) }

// brief makes the program's words fit to tell, in about n bytes.
func (t *Dialogue) brief(s string, n int) string {
	return textcut.Brief(strings.ReplaceAll(strings.ToValidUTF8(t.Safe(s), "\uFFFD"), "\x00", "\uFFFD"), n)
}

// enter makes the session, or finds it again, and returns the first prompt.
func (t *Dialogue) enter() (string, error) {
	ctx, stop := context.WithTimeoutCause(t.ctx, startTime, agent.Fail(agent.CodeStart,
		"%s did not begin a session within %s, so it was ended. Look whether its `command` starts an agent of the Agent Client Protocol, which may need a flag such as --acp.", t.Program, agent.Span(startTime)))
	defer stop()
	can, err := ask[capabilities](ctx, t, sdk.AgentMethodInitialize, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber, ClientInfo: &sdk.Implementation{Name: "gatehouse", Version: "1"}})
	if err != nil {
		return "", t.notBegun(err)
	}
	if can.ProtocolVersion != sdk.ProtocolVersionNumber {
		return "", agent.Fail(agent.CodeProtocol, "%s speaks version %d of the Agent Client Protocol, and version %d is spoken here. Install a release that speaks it.", t.Program, can.ProtocolVersion, sdk.ProtocolVersionNumber)
	}
	if path := t.obeys(can); path != "" && !t.Job.Agent.TrustCheckout {
		return "", agent.Fail(agent.CodeStart, "%s does what %s of the checkout says, without asking, and no setting of its own stops that; so it was not given the task. Take %s out of the repository, or write trust_checkout: true for %s.",
			t.Program, path, path, t.Job.Agent.Name)
	}
	tools, err := servers(t.Job.Agent, can)
	if err != nil {
		return "", err
	}
	s, again, err := t.load(ctx, can, tools)
	if err == nil && s.ID == "" {
		s, err = t.anew(ctx, can, tools)
	}
	if err != nil {
		return "", t.notBegun(err)
	}
	return t.first(again), t.use(ctx, s, again.billed)
}

// anew makes a session. A program that is not signed in is told to take its key.
func (t *Dialogue) anew(ctx context.Context, can capabilities, tools []sdk.McpServer) (session, error) {
	begin := sdk.NewSessionRequest{Cwd: t.Dir, McpServers: tools, Meta: safeMeta()}
	s, err := ask[session](ctx, t, sdk.AgentMethodSessionNew, begin)
	refused, ok := errors.AsType[*sdk.RequestError](err)
	method := can.keyMethod()
	if !ok || refused.Code != notSignedIn || method == "" {
		return s, err
	}
	if _, failed := ask[struct{}](ctx, t, sdk.AgentMethodAuthenticate, sdk.AuthenticateRequest{MethodId: method}); failed != nil {
		return s, err // which says more
	}
	return ask[session](ctx, t, sdk.AgentMethodSessionNew, begin)
}

// notSignedIn is the protocol's code of an error.
const notSignedIn = -32000

// notBegun is why there is no session.
func (t *Dialogue) notBegun(err error) error {
	refused, ok := errors.AsType[*sdk.RequestError](err)
	switch {
	case !ok:
		return err
	case refused.Code == notSignedIn:
		return agent.Fail(agent.CodeStart, "%s is not signed in: %s. Give it a key under `env`, or sign in with it once as the server's user.", t.Program, t.told(err))
	}
	return agent.Fail(agent.CodeStart, "%s began no session: %s", t.Program, t.told(err))
}

// maxSession is how long the name of a session may be, in bytes.
const maxSession = 900

// keep stores what finds the session again: the generation that it is used in, what was
// reported of its price, and its name.
func (t *Dialogue) keep() error {
	t.mu.Lock()
	text := fmt.Sprintf("%d %g %s", t.Job.Generation, t.billed, t.id)
	t.mu.Unlock()
	if err := t.Host.KeepSession(t.ctx, text); err != nil {
		return fmt.Errorf("keep the session: %w", err)
	}
	return nil
}

// again says how a session that was found again is gone on with.
type again struct {
	loaded, lost bool
	billed       float64
}

// load finds the session of the run before again. Without one, or where the program cannot,
// nothing is returned.
func (t *Dialogue) load(ctx context.Context, can capabilities, tools []sdk.McpServer) (session, again, error) {
	kept := strings.SplitN(t.Job.Session, " ", 3)
	if len(kept) != 3 || kept[2] == "" || t.Job.Feedback != nil && t.Job.Feedback.StartOver {
		return session{}, again{}, nil
	}
	if !can.AgentCapabilities.LoadSession || can.named(t.Program, bound...) {
		t.Say(t.Program + " cannot go on in its session, so it begins a new one.")
		return session{}, again{}, nil
	}
	s, err := ask[session](ctx, t, sdk.AgentMethodSessionLoad, sdk.LoadSessionRequest{SessionId: sdk.SessionId(kept[2]), Cwd: t.Dir, McpServers: tools, Meta: safeMeta()})
	if refused, ok := errors.AsType[*sdk.RequestError](err); ok {
		t.Say(t.Program + " could not go on in its session, so it begins a new one: " + t.told(refused))
		return session{}, again{}, nil
	}
	s.ID = kept[2]
	billed, _ := strconv.ParseFloat(kept[1], 64) // we wrote it
	return s, again{loaded: true, lost: kept[0] == strconv.Itoa(t.Job.Generation), billed: billed}, err
}

// first is the first prompt. A session that goes on knows the task.
func (t *Dialogue) first(a again) string {
	remarks := ""
	if t.Job.Feedback != nil {
		remarks = t.Job.Feedback.Remarks(true)
	}
	switch {
	case a.loaded && a.lost && t.Job.Fallback == nil:
		return "Your work was interrupted, and the files are again as they were when it began: what you changed since is gone. Look at them before you go on. This is the task.\n\n" + t.Task
	case a.loaded && !a.lost && remarks != "":
		return remarks
	}
	return t.Task
}
