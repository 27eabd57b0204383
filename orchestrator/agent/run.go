package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/budget"
)

// Runner is what a kind of agent provides. Run works on one attempt of one
// delegation until there is an answer, or until nothing can be done before the
// children that it handed on have ended (Outcome.Park). It returns a *Failure when
// the agent failed, and any other error when the run itself could not be made
// (it is then tried again up to engine.max_attempts). Run must return soon after
// ctx ends, with all that it started gone.
type Runner interface {
	// Traits says what of the kind others have to know; it never changes.
	Traits() Traits
	Run(ctx context.Context, job Job, host Host) (Outcome, error)
}

// Traits are what the engine, the guards and the pages have to know of a kind of agent. The
// zero value is one that only answers.
type Traits struct {
	// Files: it works on files, in a folder of its own with a checkout of the repository.
	Files bool
	// Conversation: its turns are stored with its files, so that a run goes on from the one
	// before, and a task may be forked there.
	Conversation bool
	// Turns: it stores turns and is given them again.
	Turns bool
	// Prompted: what it is given goes into a prompt, which is short, and not into a file.
	Prompted bool
	// Timed: the engine ends it at its timeout. Programs have their supervisor for that.
	Timed bool
	// Planned: people have written down whom it hands work to, so that is no agent's choice.
	Planned bool
	// Texts: it is given what is in its children's artifacts, and not their names alone.
	Texts bool
	// Hears says of an agent of the kind whether it is told what people say while it works; nil:
	// none is.
	Hears func(Spec) bool
	// Elsewhere: it works in another system, which hands on in its own way.
	Elsewhere bool
}

// Job is what one attempt is given.
type Job struct {
	TaskID       string
	DelegationID string
	Attempt      int
	Agent        Spec
	From         string    // who handed the work on: an agent's name, or "" at the root
	Text         string    // the task
	Feedback     *Feedback // set on a run after "request changes"
	Dir          string    // the checkout, "" when the agent has no repository
	ScratchDir   string    // a folder of this run alone, outside the checkout, removed afterwards
	Token        string    // run token: acts as this delegation, dies with the attempt
	URL          string    // this node's address, without /api/v1
	Context      []ContextEntry
	Memo         json.RawMessage // what the last Park of this delegation stored
	Children     []Child         // the hops made so far, oldest first, without those that a Turn has carried
	Turns        []Turn          // the conversation so far (SaveTurn)
	Carried      int             // how many of Turns are of the revision before: the run goes on behind them
	Next         string          // what is said to a conversation that goes on, where there is no Feedback; "" for no more than that
	Revision     int             // number of the revision that the run will make: 1, and more after "request changes"
	Handover     *Handover       // the command that came with the hop, nil when none did (H8)
	Fallback     *Fallback       // the hand-over of this run's work that failed, nil when none did
	Channel      string          // where the task came from: web, cli, chat … (P15)
	Chat         string          // the chat there, "" where the channel has none (P15)
	Board        string          // the namespace of the task's own board (P6)
	Generation   int             // how often the delegation began anew before: a retry, "request changes"
	RemoteHops   int             // hand-overs between systems that led to the task
	Source       *Source         // what the task is about elsewhere, nil when nobody said (A8)
	Session      string          // what KeepSession was told last; "" after start over and after a retry
	Told         []PersonMessage // what people said to attempts and runs before this one, oldest first
	// Attachments are the files that came with the task. AttachmentsDir has them, to be read
	// only; "" where there are none, and for kinds that work on no files.
	Attachments    []Attachment
	AttachmentsDir string
}

// Recalled is what people said to the runs before, behind the task; "" where nobody did.
func (j Job) Recalled() string {
	if len(j.Told) == 0 {
		return ""
	}
	return "\n\n# What people said while it was worked on before\n\n" + ToldAll(j.Told)
}

// LineComment is a remark on one line of a patch.
type LineComment struct {
	Path string `json:"path"`
	Line int    `json:"line"`           // counts from 1; 0 is the whole file
	Side string `json:"side,omitempty"` // L: the old file; R or "": the new one
	Code string `json:"code,omitempty"` // the line as it was when the remark was made
	Text string `json:"text"`
}

// String is the remark as an agent reads it: where, what, and below it the line that it
// is about. The lines of the code are quoted, so that they are not taken for the task.
func (c LineComment) String() string {
	where := c.Path
	if c.Line > 0 {
		where = fmt.Sprintf("%s:%d", c.Path, c.Line)
	}
	if c.Side == "L" {
		where += " (before the change)"
	}
	s := where + ": " + c.Text
	if c.Code != "" {
		s += "\n> " + strings.ReplaceAll(c.Code, "\n", "\n> ")
	}
	return s
}

// ContextEntry is one value of the shared context as an agent is given it.
type ContextEntry struct {
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Value     string `json:"value"`
	Agent     string `json:"agent"`           // who wrote it
	Scope     string `json:"scope,omitempty"` // task: for this task alone; house: for everybody (P2)
	// UpdatedAt is when it was written or touched last.
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// Whole is the length of the value in bytes where Value is only its beginning.
	Whole int `json:"whole_bytes,omitempty"`
}

// Outcome is how Run ended: with a Result, or parked. Exactly one is set.
type Outcome struct {
	Result *Result
	Park   *Park
}

// Park asks the engine to make these hops and to wait for all open children
// without a goroutine. Memo is stored with them in one transaction, and the next
// Job carries it together with the Children. A hop that is refused is a child in
// state "refused"; when none is open, Run is called again at once.
type Park struct {
	Hops []Hop
	Memo json.RawMessage
	// Asks are put before people, and waited for like children. Consult then says what came
	// of them.
	Asks []Ask
	// ForSpawned waits until a spawned child has ended as well; else only children that
	// were not spawned are waited for.
	ForSpawned bool
}

// Hop is one hand-over. Ref makes it idempotent: the same Ref of the same
// delegation returns the child that exists.
type Hop struct {
	Ref        string
	To         string
	Capability string // used when To is empty: the first agent that has it (P13)
	Text       string
	Context    map[string]string // written to the shared context before the child starts (H8)
	Handover   *Handover         // the command object that the child is given
	Spawn      bool              // fire and forget: the caller goes on, and is told when it ended (P44)
	Again      bool              // of a spawn: made although the same was made before; Ref tells it from others
	Budget     *budget.Limits    // the most that the child may use; nil leaves it to the engine
	// Round tells a repetition that is meant from a loop: a workflow counts its hops here
	// (H26, H27). It is part of what the repeat guard compares.
	Round int
	// Final hands the rest of the work over: once the hop is made the context of the run
	// ends with ErrHandedOver, and the delegation ends with what comes of the child. For
	// kinds that run a program; a model parks for a hop of its own.
	Final bool
}

// Refused is the Child.State of a hop that a guard refused.
const Refused = "refused"

// Child is one hop of a delegation as its caller sees it.
type Child struct {
	ID    string // "" when refused
	Ref   string
	To    string
	Text  string
	State string // a delegation's state, or Refused
	Ended bool
	Spawn bool
	Usage Usage // of the child and everything below it (O14)
	// Result is set when State is completed; Error when it ended otherwise or was
	// refused (K11: data for the caller, never a crash).
	Result *Result
	Error  *Failure
}

// Host is the engine as a running agent sees it. Every method is safe for
// concurrent use and returns ErrStopped once the attempt is over.
type Host interface {
	// Progress shows a line to whoever watches (K13). Lines may be merged.
	Progress(ctx context.Context, text string) error
	// Usage adds to what the run has used.
	Usage(ctx context.Context, u Usage) error
	// PutContext writes one value of the shared context as this agent.
	PutContext(ctx context.Context, w ContextWrite) error
	// Delegate makes one hop and returns at once; a refusal is a Child, not an error.
	// With an empty Ref the hop is the n-th of its (to, text) in this attempt.
	Delegate(ctx context.Context, hop Hop) (Child, error)
	// Await gives the slot back, blocks until the child has ended and this run has
	// a slot again, and returns the child; its changes are in the checkout then.
	Await(ctx context.Context, id string) (Child, error)
	// Sandbox records what the run is confined by: "bubblewrap", "landlock", "none", or
	// NoProgram where nothing runs that could be confined.
	Sandbox(ctx context.Context, name string) error
	// Confined records the limits of the run, and at its end the most that it used.
	Confined(ctx context.Context, c Confinement) error

	// SaveTurn stores the next turn of the conversation with its usage, the files of the
	// checkout as they are now (when changed says that a tool may have changed them) and
	// its event, in one transaction. After a turn of the model that passed the budget it
	// still succeeds; the turn with the tools' results then returns a *Failure with the
	// code budget_exceeded, so that every call has its result on record (O17, O18). A
	// paused task answers ErrPaused once the turn is stored.
	SaveTurn(ctx context.Context, t Turn, changed bool) error
	// Delta shows a part of a message that is being written. It never waits; parts may be
	// merged, and who watches too slowly misses some.
	Delta(d Delta)
	// Ended returns the spawned children that have ended and that no turn has carried,
	// in the order of their ends.
	Ended(ctx context.Context) ([]Child, error)
	// Roster lists all agents, each with the guard that would refuse it now (P10, P14).
	Roster(ctx context.Context) ([]Member, error)
	// Shared is the shared context, with this run as its reader and writer.
	Shared() Shared
	// Checks runs the repository's checks on the checkout as it is now.
	Checks(ctx context.Context) ([]CheckResult, error)
	// Apply changes the checkout as a unified diff says, or returns a *Failure with the
	// patch's code and changes nothing.
	Apply(ctx context.Context, diff string) error
	// Reserve reserves the next call of a model, and returns how long its answer may be, in
	// tokens: what was asked for, or what is left. The next turn of the model, or Usage after
	// a call that failed, takes its place; a call that nobody hears of again counts as it was
	// reserved. Where nothing is left, here or with whom the run works for, it is a *Failure
	// with the code budget_exceeded.
	Reserve(ctx context.Context, c ModelCall) (output int64, err error)
	// Remaining is what this run may still use, without what its live children reserve.
	Remaining(ctx context.Context) (budget.Limits, error)
	// Consult says of each ask what is known without waiting: whether rules and grants let the
	// call be made or refuse it, or what people have answered. One that is AskOpen is waited
	// for, by Ask or in a Park.
	Consult(ctx context.Context, asks []Ask) ([]Answer, error)
	// Ask puts an ask before people where that is needed, gives the slot back, and blocks until
	// there is an answer and this run has a slot again. A call that it allows counts as begun.
	Ask(ctx context.Context, a Ask) (Answer, error)
	// Proceed notes that a call which people allowed is about to be made, as Consult said it may
	// be: an attempt after this one is told so (Answer.Begun). It is a *Failure with the code
	// action_refused where it may not any more.
	Proceed(ctx context.Context, a Ask) error
	// Report stores what a program tells of its work. Texts may be cut.
	Report(ctx context.Context, what Report) error
	// KeepSession stores how the program finds its own session again, at most 1 kB: a run after
	// "request changes", and an attempt after a lost one, are given it (Job.Session).
	KeepSession(ctx context.Context, session string) error
	// Unread is what people said that the run has not been told, oldest first, as of the last
	// turn that was stored. The turn that carries it names it (Turn.Messages).
	Unread(ctx context.Context) ([]PersonMessage, error)
	// Hear takes what people said that the run has not been told, for kinds that store no turns:
	// an attempt after this one finds it in Job.Told. With wait it blocks until there is something.
	Hear(ctx context.Context, wait bool) ([]PersonMessage, error)
	// Over reports whether the delegation has ended or belongs to the past, so that what its
	// run started elsewhere is of no use any more. It also answers when the attempt is over:
	// a run that was lost with its node's lease goes on elsewhere, and is not over.
	Over(ctx context.Context) (bool, error)
}

// ModelCall is what a call of a model may cost, in tokens: what is sent, as far as that can
// be told before, and the longest answer.
type ModelCall struct {
	Input  int64
	Output int64
}

// Shared is the shared context as one run uses it: every read and write is recorded
// with the run, and reading prolongs the life of memory (memory:{agent}, K43). What the
// agent may not read or write is a *Failure with the code forbidden and a sentence.
type Shared interface {
	Get(ctx context.Context, namespace, key string) (ContextEntry, bool, error)
	// Prefix returns the entries of a namespace whose key begins with prefix, taken literally
	// (K41), newest first; all of them where prefix is "" (K31).
	Prefix(ctx context.Context, namespace, prefix string, limit int) ([]ContextEntry, error)
	Set(ctx context.Context, w ContextWrite) error
	Touch(ctx context.Context, namespace, key string, ttlSeconds int64) (bool, error)
	Delete(ctx context.Context, namespace, key string) error
}

// ContextWrite is a write to the shared context. Without Namespace it is the task's own
// board (P6). Without TTLSeconds it never expires
// (K29), unless the configuration has a life span for the namespace.
type ContextWrite struct {
	Namespace  string
	Key        string
	Value      string
	TTLSeconds int64
	// Extend keeps an entry alive: where it exists its expiry moves forward, else it lives
	// the extension's 90 days (K39).
	Extend bool
}

// Result is what every kind of agent returns.
type Result struct {
	Text      string          `json:"text"`
	Data      json.RawMessage `json:"data,omitempty"`
	Artifacts []Artifact      `json:"artifacts,omitempty"`
	Patch     string          `json:"-"` // a unified diff in place of changes in the checkout
	// Commit is the landing commit, once the patch of this result has landed.
	Commit string `json:"commit,omitempty"`
	// Pushed is the branch that Commit was pushed to for people to merge; "" where it is on
	// the target.
	Pushed string `json:"pushed,omitempty"`
	// Declined are the changed files that people left out of that landing.
	Declined []string `json:"declined,omitempty"`
}

// Usage counts what model work cost. USD is nil when nobody reported a price.
type Usage struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	USD          *float64 `json:"usd"`
}

// Add returns the sum of u and v; the price is known when either is.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens}
	if u.USD != nil || v.USD != nil {
		var usd float64
		for _, p := range []*float64{u.USD, v.USD} {
			if p != nil {
				usd += *p
			}
		}
		sum.USD = &usd
	}
	return sum
}

// Failure is how a delegation failed, as people and calling agents read it.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// NoProgram is the sandbox of a run that starts no program.
const NoProgram = "no program"

// Failures that every kind uses. The codes are shown, searched and counted.
const (
	CodeExit        = "exit"         // the program ended with another code than 0
	CodeTimeout     = "timeout"      // it ran longer than its limit
	CodeStart       = "start"        // the program could not be started
	CodeOutput      = "output_limit" // it printed more than its limit
	CodeProtocol    = "protocol"     // a line that is not of the protocol
	CodeStep        = "step_failed"  // a workflow's step did not complete
	CodeLost        = "lost"         // its node went away max_attempts times
	CodeNoCheckout  = "no_checkout"  // the checkout could not be made
	CodeUnavailable = "unavailable"  // the agent is not configured any more
	CodeBudget      = "budget_exceeded"
	CodeModel       = "model"              // the provider failed, and trying again did not help
	CodeOverflow    = "overflow"           // the conversation is too long, also after it was cut
	CodeLoop        = "loop"               // the model made the same call without end (P35)
	CodeTurns       = "max_turns"          // the model was asked as often as its agent may, and had no answer
	CodeNoAck       = "no_ack"             // nobody took it up in time: an agent elsewhere, or here by engine.queue_timeout (A34)
	CodeStuck       = "stuck"              // it did not end when it was told to (P53)
	CodeRemote      = "remote"             // the agent elsewhere failed, declined, or is out of reach
	CodeInput       = "input_required"     // the agent elsewhere asks back, and nobody is there to answer
	CodeNoSandbox   = "sandbox_missing"    // it must run confined, and nothing here confines it
	CodeMemory      = "out_of_memory"      // it held more memory than its limit
	CodeProcesses   = "too_many_processes" // it had more processes than its limit
	CodeDisk        = "disk_full"          // it wrote more than its limit, or the disk had no room left
	CodeBadOutput   = "bad_output"         // the answer does not fit the agent's output schema, or cannot be read
	CodeArtifact    = "bad_artifact"       // an artifact cannot be kept: its path, its size or its name

	// CodeRejected: people said no further down, and nothing was to go on then. A run that
	// ends with it has not failed: its delegation ends rejected.
	CodeRejected = "rejected"
	// CodeExpired is the same where nobody decided in time.
	CodeExpired = "expired"

	CodeActionRefused = "action_refused" // a rule does not let the agent make a tool's call; the model reads it
)

// Fail returns a Failure with a formatted sentence.
func Fail(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

type stopped struct{}

func (stopped) Error() string { return "the run is over" }

// ErrStopped is returned by a Host after the attempt ended or was lost.
var ErrStopped error = stopped{}

type handedOver struct{}

func (handedOver) Error() string { return "the work was handed over" }

// ErrHandedOver is the cause with which the context of a run ends that has handed its work
// over (Hop.Final). The run may return it; what it returns counts for nothing.
var ErrHandedOver error = handedOver{}

type paused struct{}

func (paused) Error() string { return "the task is paused" }

// ErrPaused is returned by SaveTurn when people paused the task: the turn is stored, and
// the run should return it, so that it goes on later from there.
var ErrPaused error = paused{}
