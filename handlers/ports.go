package handlers

import (
	"context"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/trigger"
)

// Engine is what the handlers ask of orchestrator.Engine.
type Engine interface {
	Submit(ctx context.Context, s orchestrator.Submission) (orchestrator.Task, orchestrator.Delegation, bool, error)
	// Say is Submit for what may go on with a thread: an agent that still works there is told.
	Say(ctx context.Context, s orchestrator.Submission, by people.User) (orchestrator.Spoken, error)
	Delegate(ctx context.Context, run people.Run, hop agent.Hop) (orchestrator.Delegation, error)
	// Await waits at most max; true means that the child has ended and the caller runs again.
	Await(ctx context.Context, run people.Run, childID string, max time.Duration) (orchestrator.Delegation, bool, error)
	// Ask waits at most max for what people say of an ask; then it is open still.
	Ask(ctx context.Context, run people.Run, ask agent.Ask, max time.Duration) (agent.Answer, error)
	CancelFor(ctx context.Context, id, actor, reason string) (orchestrator.Delegation, error)
	// Underway counts what StopAll would end; StopAll cancels all work, or one agent's.
	Underway(ctx context.Context, agent string) (orchestrator.Stopped, error)
	StopAll(ctx context.Context, s orchestrator.Stop) (orchestrator.Stopped, error)
	// Retry has a task run again: by is one more who asked for it.
	Retry(ctx context.Context, id string, by people.User) (orchestrator.Delegation, error)
	// Pause holds a task, Unpause lets it go on; the id may be any delegation's.
	Pause(ctx context.Context, id, actor string) (orchestrator.Delegation, error)
	Unpause(ctx context.Context, id, actor string) (orchestrator.Delegation, error)
	// Fork makes a task that goes on from a turn of a conversation.
	Fork(ctx context.Context, f orchestrator.Fork) (orchestrator.Task, orchestrator.Delegation, error)
	// Tell leaves a message for an agent while it works; Hearing says why none can be left.
	Tell(ctx context.Context, id string, w orchestrator.Words) (orchestrator.Message, orchestrator.Delegation, error)
	Hearing(d *orchestrator.Delegation) error
	// LandAgain tries a landing again that is held up, and nothing else.
	LandAgain(ctx context.Context, id, actor string) (orchestrator.Delegation, error)
	// Artifact is the content of an artifact of a delegation's result.
	Artifact(ctx context.Context, d orchestrator.Delegation, a agent.Artifact) ([]byte, error)
	// Attachment is the content of a file that came with a task.
	Attachment(ctx context.Context, t orchestrator.Task, a agent.Attachment) ([]byte, error)
	Check(ctx context.Context, from, to, taskID string) ([]guard.Verdict, *guard.Verdict, error)
	Agents(ctx context.Context) ([]orchestrator.AgentStatus, error)
	Config() *orchestrator.Config
	// Traits are what is to be known of an agent's kind.
	Traits(agent string) agent.Traits
	Hub() *event.Hub
	// Slots is how many delegations this node works on, and how many it may.
	Slots() (used, size int)
	// ContextOf is the shared context as a running agent uses it: with its rights, and
	// with every use on record.
	ContextOf(run people.Run) (sharedctx.Store, error)
}

// Gateway is what the handlers ask of approval.Gateway.
type Gateway interface {
	Decide(ctx context.Context, b approval.Ballot) (approval.Request, error)
	// TurnedAway records a verdict that did not get as far as Decide, which records its own.
	TurnedAway(ctx context.Context, f approval.Refusal)
	// Grants are what people allowed for the rest of a task, oldest first; Revoke ends one.
	Grants(ctx context.Context, taskID string) ([]approval.Grant, error)
	Revoke(ctx context.Context, id string, p people.Principal) (approval.Grant, error)
	Revert(ctx context.Context, requestID string, by people.Principal) (orchestrator.Task, error)
	// Electorate is who may decide now; one serves a whole page.
	Electorate(ctx context.Context) (approval.Electorate, error)
	Config() approval.Config
	// Moved says where the branch of a pending request is now, and whether the change still
	// applies there as it is; Head is "" when it did not move. What that means for a yes is
	// stored, and MissedBy says what became of a person's.
	Moved(ctx context.Context, r approval.Request) (Movement, error)
	MissedBy(ctx context.Context, r approval.Request, userID string) (string, error)
	// Backtest tries rules on the requests made since then, and writes nothing.
	Backtest(ctx context.Context, p *policy.Policy, since time.Time) (approval.Backtest, error)
	// BacktestCalls does so with rules about calls of tools.
	BacktestCalls(ctx context.Context, p *policy.ActionPolicy, since time.Time) (approval.CallTrial, error)
	// SaveDraft keeps a line comment that is not sent yet; an empty text removes it.
	SaveDraft(ctx context.Context, by people.Principal, requestID string, revision int, d approval.Draft) error
	// Drafts are a person's comments that are not sent, placed on the current revision.
	Drafts(ctx context.Context, userID, requestID string) ([]approval.Placed, error)
	// Threads are the comments that were sent, with what was said under them; Answer says
	// or does more.
	Threads(ctx context.Context, r approval.Request) ([]approval.Thread, error)
	Answer(ctx context.Context, s approval.Said) error
	// PlaceThreads finds where comments of earlier revisions stand on the current one.
	PlaceThreads(ctx context.Context, r approval.Request, threads []approval.Thread) error
	// Open says how far a person has read a revision whose page is drawn now, Reading
	// the same of one that is not; MarkViewed marks one of its files.
	Open(ctx context.Context, by people.Principal, requestID string, revision int) (approval.Reading, error)
	Reading(ctx context.Context, by people.Principal, requestID string, revision int) (approval.Reading, error)
	MarkViewed(ctx context.Context, by people.Principal, requestID string, revision, file int, viewed bool) error
	// ReadWhole records that a person was given the whole diff of a revision on a channel.
	ReadWhole(ctx context.Context, by people.Principal, r approval.Request, revision int, channel origin.Channel)
	// WithReaders puts onto requests who read them without a verdict, as far as who asks may know.
	WithReaders(ctx context.Context, who people.Principal, requests []approval.Request) error
	// ReadersOf is one request with them.
	ReadersOf(ctx context.Context, who people.Principal, r approval.Request) (approval.Request, error)
	// MarkOpened records that files were before the person, which is no mark of theirs.
	MarkOpened(ctx context.Context, by people.Principal, requestID string, revision int, files []int) error
}

// Reader reads what is committed.
type Reader = orchestrator.Reader

// Requests reads approval requests; the store has these.
type Requests interface {
	Request(ctx context.Context, id string) (approval.Request, error)
	Requests(ctx context.Context, f approval.Filter) (approval.Page, error)
	// Pending are the newest that wait for people, without their cards, to be read only.
	Pending(ctx context.Context, limit int) ([]approval.Request, error)
	// CountRequests counts requests, up to most; the place of the filter does not matter.
	CountRequests(ctx context.Context, f approval.Filter, most int) (int, error)
	Revisions(ctx context.Context, id string) ([]approval.Revision, error)
	PendingOf(ctx context.Context, taskID string) ([]string, error)
	// Answers returns what was said and done under a request's line comments, oldest first.
	Answers(ctx context.Context, requestID string) ([]approval.Answer, error)
}

// Reviewer shows a revision's change, always from base tree against result tree.
type Reviewer interface {
	// EachHunks yields the hunks of the wanted files of the revision, in their order, with
	// that many lines of context and without marks.
	EachHunks(ctx context.Context, r approval.Revision, repository string, want func(i int) bool, context int, yield func(i int, hunks []patch.Hunk) error) error
	// EachWhole yields all lines of the wanted files as they are in the result, as of
	// added ones.
	EachWhole(ctx context.Context, r approval.Revision, repository string, want func(i int) bool, yield func(i int, hunks []patch.Hunk) error) error
	// LineCounts counts the lines of the wanted files of the result; below 0: too large
	// for that.
	LineCounts(ctx context.Context, r approval.Revision, repository string, want func(i int) bool) (map[int]int, error)
	// Content returns the content of an object of the revision's files; a longer one than
	// max bytes is cut there and comes with patch.ErrCut.
	Content(ctx context.Context, r approval.Revision, repository, id string, max int64) ([]byte, error)
	// File returns a file of the revision's result and whether there is one; a longer
	// one than max bytes is cut there and comes with patch.ErrCut.
	File(ctx context.Context, r approval.Revision, repository, path string, max int64) ([]byte, bool, error)
	// Files returns those of the paths that are plain files of the revision's result, each
	// up to max bytes.
	Files(ctx context.Context, r approval.Revision, repository string, paths []string, max int64) (map[string][]byte, error)
	// Diff returns the whole change as a unified diff.
	Diff(ctx context.Context, r approval.Revision, repository string) ([]byte, error)
	// Between returns what changed from one revision's result to another's.
	Between(ctx context.Context, from, to approval.Revision, repository string) (*patch.Review, error)
}

// Movement is how a branch moved since a change was made on it.
type Movement = approval.Movement

// Insights reads what the log says in sums, and who waits below whom; the store has these.
type Insights interface {
	TaskLog
	// Insight sums the days from first to last, both included, by one dimension.
	Insight(ctx context.Context, first, last int64, by insight.Dimension, only insight.Filter) (insight.Sums, error)
	// InsightState says how far the sums have come.
	InsightState(ctx context.Context) (insight.State, error)
	Breakers(ctx context.Context) ([]insight.Breaker, error)
	// BreakerTurns lists when breakers opened and closed, newest first.
	BreakerTurns(ctx context.Context, from, to time.Time, limit int) ([]insight.Turn, error)
	// LiveBelow lists the live children of some delegations, by parent.
	LiveBelow(ctx context.Context, parents []string) (map[string][]orchestrator.Below, error)
	// LandingQueues lists the repositories in which approved changes wait to land, by name.
	LandingQueues(ctx context.Context) ([]orchestrator.LandingQueue, error)
	// LiveTasks lists at most limit tasks in these states, in their order and newest first, and
	// counts those of each state, up to 500.
	LiveTasks(ctx context.Context, limit int, states ...orchestrator.State) ([]orchestrator.Delegation, map[orchestrator.State]int, error)
	// Today sums what happened since then.
	Today(ctx context.Context, since time.Time) (insight.Today, error)
	// Wrong lists the tasks that failed or expired since then, newest first, and counts all.
	Wrong(ctx context.Context, since time.Time, limit int) ([]orchestrator.Delegation, int, error)
	// Refusals lists the hand-overs that guards refused since then, newest first, and counts all.
	Refusals(ctx context.Context, since time.Time, limit int) ([]insight.Refusal, int, error)
}

// Triggers is what makes tasks by itself; intake.Intake is one.
type Triggers interface {
	// Statuses says how each configured trigger stands, in the order of the configuration.
	Statuses(ctx context.Context) ([]trigger.Status, error)
	Status(ctx context.Context, name string) (trigger.Status, error)
	// Deliveries lists what came, newest first and without bodies; Delivery has its body.
	Deliveries(ctx context.Context, f trigger.Filter) (trigger.Page, error)
	Delivery(ctx context.Context, id string) (trigger.Delivery, error)
	// Redeliver makes of a delivery what the trigger makes of it today, as a delivery of
	// its own; whoever asked for it is who asked for the task.
	Redeliver(ctx context.Context, id string, by people.User) (trigger.Delivery, error)
	// Try says what a trigger would make of a sample, and stores nothing.
	Try(ctx context.Context, name string, s trigger.Sample) (trigger.Trial, error)
}

// People keeps those who may sign in, their sessions and their tokens; the store does.
// Each change is an event of the stream "system"; actor is who made it.
type People interface {
	User(ctx context.Context, id string) (people.User, error)
	UserByName(ctx context.Context, name string) (people.User, error)
	// Users lists everybody with their accounts.
	Users(ctx context.Context) ([]people.User, error)
	CreateUser(ctx context.Context, actor string, u people.User) (people.User, error)
	// SetRoles and SetDisabled refuse to take the last admin away.
	SetRoles(ctx context.Context, actor, id string, roles []people.Role) error
	SetDisabled(ctx context.Context, actor, id string, disabled bool) error
	SetZone(ctx context.Context, actor, id, zone string) error
	SetMuted(ctx context.Context, actor, id string, muted bool) error
	// SetAway says that a person is out of office; nil: they are back.
	SetAway(ctx context.Context, actor, id string, away *people.Away) error
	Sessions(ctx context.Context, userID string) ([]people.Session, error)
	// EndSessions ends all of a person's but the one with the hash keep.
	EndSessions(ctx context.Context, actor, userID, keep string) (int, error)
	// Tokens lists those of a person, or all with userID "", newest first.
	Tokens(ctx context.Context, userID string) ([]people.Token, error)
	RevokeToken(ctx context.Context, actor, id string) error
}

// Proof says how far history is sealed, and verifies it; the store has these.
type Proof interface {
	// SealedUpTo is the newest checkpoint, the zero one where there is none. Its At is the
	// time that "sealed up to" shows.
	SealedUpTo(ctx context.Context) (proof.Checkpoint, error)
	// LastVerified is the newest verification of the whole history; false: there was none.
	LastVerified(ctx context.Context) (proof.Verification, bool, error)
	// Verify runs one, tells how far it is (progress may be nil), and records what it found.
	// When ctx ends it stops and records nothing.
	Verify(ctx context.Context, who string, progress func(proof.Progress)) (proof.Verification, error)
	// SealKeys lists the keys that seal, oldest first.
	SealKeys(ctx context.Context) ([]proof.Key, error)
	// Proofs returns the checkpoints that cover tasks, with at most most heads in all.
	Proofs(ctx context.Context, tasks []string, most int) ([]proof.Proof, error)
	// EachProof gives the checkpoints over positions, newest first, with at most most heads in all.
	EachProof(ctx context.Context, from, to int64, most int, each func(proof.Proof) error) error
}

// Holds keep retention from removing things; the store has these.
type Holds interface {
	// Holds lists holds, newest first: the standing ones, or also those that were lifted.
	Holds(ctx context.Context, lifted bool) ([]retention.Hold, error)
	// SetHold sets one; ErrExists when the same thing is held already. Reason and By are needed.
	SetHold(ctx context.Context, h retention.Hold) (retention.Hold, error)
	LiftHold(ctx context.Context, id, by, reason string) (retention.Hold, error)
	// HoldsOn lists the standing holds that cover a task.
	HoldsOn(ctx context.Context, taskID string) ([]retention.Hold, error)
}

// Figures are what /metrics counts.
type Figures struct {
	Live     map[string]int64 // delegations by state, the live ones
	Pending  int64            // requests that wait for people
	Events   int64            // the newest position of the log
	Stuck    int64            // delegations whose lease ran out and that nobody took up
	Used     int              // slots of this node
	Slots    int
	Watchers int   // subscribers of this node's hub
	Dropped  int64 // notices that a full one of them lost
	Sums     insight.Sums
	Breakers []insight.Breaker
	Agents   []string                      // the configured ones; others are counted together
	Inboxes  map[string]orchestrator.Inbox // of the configured ones
	Models   []string
}

// History answers lines of filters; the store has these. Its errors for people are
// *history.Error from the parser, and CodeBadRequest for a cursor that is none.
type History interface {
	// History lists requests, newest first, after the cursor of the page before.
	History(ctx context.Context, q history.Query, after string, limit int) (history.Page, error)
	HistoryEvents(ctx context.Context, q history.Query, after string, limit int) (history.EventPage, error)
	// HistoryCount counts the rows of any list, up to most; of events, those among the
	// newest 20,000 on the way.
	HistoryCount(ctx context.Context, q history.Query, most int) (history.Count, error)
	// Paths are the delegations of some tasks, by task, with what says where the work is.
	Paths(ctx context.Context, tasks []string) (map[string][]orchestrator.Delegation, error)
	// HistoryTotal counts all of them, however long that lasts.
	HistoryTotal(ctx context.Context, q history.Query) (int64, error)
}

// SavedViews keeps lists under names; the store does.
type SavedViews interface {
	// Views are a person's own views and the shared ones, by name.
	Views(ctx context.Context, userID string) ([]history.View, error)
	SaveView(ctx context.Context, actor string, v history.View, most int) error
	DeleteView(ctx context.Context, actor, userID, id string, shared bool) error
}

// Outbox is what the settings ask of the gateway about deliveries.
type Outbox interface {
	Health(ctx context.Context) ([]approval.Health, error)
	Backlog(ctx context.Context) ([]approval.Backlog, error)
	DeadLetters(ctx context.Context, f approval.DeadFilter) (approval.DeadPage, error)
	Retry(ctx context.Context, actor string, f approval.DeadFilter) (int, error)
}

// Links is what the settings ask about the accounts of a person; the store has it.
type Links interface {
	// CreateLinkCode makes a code that links one account, once, within 10 minutes.
	CreateLinkCode(ctx context.Context, actor string, channel origin.Channel, userID string) (string, error)
	Accounts(ctx context.Context, userID string) ([]people.Account, error)
	Unlink(ctx context.Context, actor string, channel origin.Channel, id int64) error
}

// Place is a channel as the settings know it.
type Place struct {
	Name origin.Channel
	// Bot is the name of the bot with which people link their account, "" while it is
	// not known; nil where there is nothing to link.
	Bot func(ctx context.Context) string
	// Test sends a test card, to the given accounts where the configuration names no
	// other place; nil where there is nothing to test.
	Test func(ctx context.Context, accounts []people.Account) error
}

// Configuration is what is in force, without secrets.
type Configuration struct {
	File     string // "" when there is none
	LoadedAt time.Time
	Settings []Setting
	Warnings []string
	Problem  string   // why the file, as it is now, would not be taken
	Changed  []string // keys that a reload would change
}

// Setting is one value and where it comes from.
type Setting struct {
	Key, Value string
	Line       int      // in the file; 0: it stands nowhere
	Flag       string   // the flag that it was given with
	Env        []string // variables that it reads
	Restart    bool     // read at the start only
	Pending    string   // what it is after a restart, where that differs
}

// Condition is how the house itself does.
type Condition struct {
	Nodes    []NodeSeen // of the last day; one that ended by itself is not among them
	Sealed   time.Time  // when the newest seal was made; zero: none yet
	Unsealed time.Time  // since when an event waits for its seal; zero: none does
	Free     uint64     // bytes of the disk with the data folder
	Behind   string     // why this node counts no yes and lands nothing; "" where it does
}

// NodeSeen is a process of this house, and when it last said that it lives.
type NodeSeen struct {
	Name string
	Seen time.Time
}

// Traces reads a task's tree and log in parts, so that a task of 10,000 delegations opens
// as fast as one of three; the store has these.
type Traces interface {
	TaskLog
	// Hands are what went along with the hand-overs to these delegations, by id.
	Hands(ctx context.Context, ids []string) (map[string]orchestrator.Hand, error)
	Delegations(ctx context.Context, ids []string) (map[string]orchestrator.Delegation, error)
	// FindInTask returns the ids of those that have the words, at most limit.
	FindInTask(ctx context.Context, taskID, words string, limit int) ([]string, error)
	// TaskUses is who used the shared context in the course of a task, newest first.
	TaskUses(ctx context.Context, taskID string, limit int) ([]sharedctx.Use, error)
}
