package approval

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Users lists the people there are, for groups, four eyes and the names in answers.
type Users interface {
	Users(ctx context.Context) ([]people.User, error)
}

// Config is what may change while the gateway runs; it is replaced as a whole.
type Config struct {
	FourEyes bool           // nobody approves what they asked for
	Expires  time.Duration  // how long a request waits; 0 is for ever
	Location *time.Location // of hour and weekday in rules, and of times in answers; nil is UTC
	Policy   *policy.Policy // nil asks one approver for everything
	// Handovers are the rules about hand-overs; nil: people are asked only where the
	// agent wants that.
	Handovers *policy.HandoverPolicy
	// Actions are the rules about calls of tools; nil: nobody is asked but where that is so in
	// any case.
	Actions  *policy.ActionPolicy
	OnNo     string              // what a no to a hand-over does where its rule does not say: EndTask or TellCaller
	Groups   map[string][]string // names of users by group
	Channels []Channel
	Agents   map[string]AgentRule // by name; absent: any, owned by nobody
	// Approvers are the groups whose yes counts in a repository where the rule names
	// none; absent: every approver.
	Approvers map[string][]string
	Careful   []string          // what makes a request careful besides warnings: no_checks, no_sandbox, need_two
	Remind    []time.Duration   // before the deadline
	Escalate  []Step            // when nobody has decided; in order
	Triggers  map[string]string // names of the triggers' owners; what a trigger asked for they asked for
	// OtherRules names the keys of the rules in which the settings that some node took last are
	// not those of this configuration; nil: nobody else takes one.
	OtherRules func(taken []event.Configured) []string
	// SameHandovers reports whether what says before which hand-overs people are asked is the
	// same in both.
	SameHandovers func(taken []event.Configured) bool
	// SameActions is the same of the rules about calls of tools.
	SameActions func(taken []event.Configured) bool
}

// AgentRule is what the gateway knows of an agent.
type AgentRule struct {
	Mode  string // any, web, chat or telegram
	Owner string // name of a user, "" nobody
	// AnalysisOnly: it changes nothing.
	AnalysisOnly bool
}

// Step is one step of an escalation: once a request has waited for After, the groups
// To may decide, too.
type Step struct {
	After time.Duration
	To    []string
}

// Options is what a Gateway is made of. Store, Users and Diff are needed.
type Options struct {
	Store  Store
	Users  Users
	Now    func() time.Time // time.Now when nil
	Logger *slog.Logger     // slog.Default when nil
	// Diff renders the unified diff of a request's current revision. It runs git, so
	// it is called outside transactions.
	Diff func(ctx context.Context, r Request) (string, error)
	// Trace, when set, is told of steps right after they are durable, as the engine's is.
	Trace func(point string)
}

// Gateway takes every decision. Its methods may be called from many goroutines and
// on many nodes at once: the task's row orders them. Run sweeps deadlines and
// drives the outbox until its context ends.
type Gateway struct {
	store    Store
	users    Users
	now      func() time.Time
	log      *slog.Logger
	diff     func(ctx context.Context, r Request) (string, error)
	trace    func(point string)
	config   atomic.Pointer[Config]
	reverter atomic.Pointer[Reverter]
	reviser  atomic.Pointer[Reviser]
	branches atomic.Pointer[Branches]
	looked   looks // of the last round of LookAtBranches
	wake     chan struct{}
	changed  atomic.Bool // people or the configuration have, so that Reach has work
	reached  reached
	refusals refusals
}

var _ orchestrator.Gate = (*Gateway)(nil)

// New makes a gateway. Reverts need SetReverter as well.
func New(o Options, c Config) *Gateway {
	g := &Gateway{store: o.Store, users: o.Users, now: o.Now, log: o.Logger, diff: o.Diff, trace: o.Trace, wake: make(chan struct{}, 1)}
	if g.now == nil {
		g.now = time.Now
	}
	if g.trace == nil {
		g.trace = func(string) {}
	}
	g.log = cmp.Or(g.log, slog.Default())
	g.SetConfig(c)
	return g
}

// Config is the configuration in force.
func (g *Gateway) Config() Config { return *g.config.Load() }

// SetConfig replaces the configuration. Requests that wait keep the rule that they
// were asked under; who is in a group is looked up anew for each decision.
func (g *Gateway) SetConfig(c Config) {
	c.Location = cmp.Or(c.Location, time.UTC)
	g.config.Store(&c)
	g.store.TellEnds(c.told())
	g.PeopleChanged()
}

// inTask runs fn in a transaction that holds the task's row. Cards that it makes due are
// looked for once it is committed.
func (g *Gateway) inTask(ctx context.Context, taskID string, fn func(Tx) error) error {
	return g.store.InGate(ctx, taskID, func(tx Tx) error {
		tx.OnCommit(g.look)
		return fn(tx)
	})
}

// look makes the outbox look for due cards soon.
func (g *Gateway) look() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Request reads a request by its whole id.
func (g *Gateway) Request(ctx context.Context, id string) (Request, error) {
	r, err := g.store.Request(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return Request{}, orchestrator.Errorf(orchestrator.CodeNotFound, "There is no approval request %q. It may be in another database. (%w)", id, err)
	}
	return r, err
}

// asked reads a request, and who may decide on it now.
func (g *Gateway) asked(ctx context.Context, id string) (Request, Electorate, error) {
	r, err := g.Request(ctx, id)
	if err != nil {
		return r, Electorate{}, err
	}
	e, err := g.Electorate(ctx)
	return r, e, err
}

// Requests reads a page of requests, newest first.
func (g *Gateway) Requests(ctx context.Context, f Filter) (Page, error) {
	return g.store.Requests(ctx, f)
}
