package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/sharedctx"
)

// Store is what the engine needs of the database. Every change happens inside
// InTask or NewTask: one transaction on a task, which comes as a whole before or after any
// other on it, so counters, event numbers and hashes are exact. No transaction spans git, a
// process or the network.
type Store interface {
	// InTask runs fn in a transaction on the task. When fn returns nil the transaction is
	// committed durably, and after that the hub of this node and the other nodes are told
	// of the events. ErrNotFound when there is no such task. fn is called again with
	// another Tx where somebody else has written the task, or the database undid the work:
	// only what its last call left behind counts.
	InTask(ctx context.Context, taskID string, fn func(Tx) error) error
	// NewTask inserts the task and runs fn in the same transaction. If the requester
	// has used t.Key before it runs nothing and returns that first task and false.
	NewTask(ctx context.Context, t Task, fn func(Tx) error) (Task, bool, error)

	// Claimable lists delegations that a worker of node may claim now, longest ready
	// first: queued, checking and landing ones that are due and whose lease nobody
	// holds or ran out, and running ones whose lease ran out. Parked rows are never read.
	Claimable(ctx context.Context, node string, now time.Time, limit int) ([]Ref, error)
	// Unclaimed lists queued delegations that nobody has taken up since before, longest
	// ready first; those of paused tasks are left out.
	Unclaimed(ctx context.Context, before time.Time, limit int) ([]Ref, error)
	// Renew extends the leases of held in one statement and returns those that are
	// no longer held by node at that attempt.
	Renew(ctx context.Context, node string, held []Ref, until time.Time) (lost []Ref, err error)
	// Release ends every lease of node: it has just started and holds nothing. A
	// node has one data folder, which is locked, so its name is its own.
	Release(ctx context.Context, node string, now time.Time) error

	Reader
}

// Ref names one attempt of one delegation.
type Ref struct {
	TaskID       string
	DelegationID string
	Attempt      int
	State        State
}

// Reader reads what is committed, without locks.
type Reader interface {
	Task(ctx context.Context, id string) (Task, error)
	TaskByKey(ctx context.Context, requesterID, key string) (Task, error)
	Delegation(ctx context.Context, id string) (Delegation, error)
	// Tree returns every delegation of a task, oldest first.
	Tree(ctx context.Context, taskID string) ([]Delegation, error)
	List(ctx context.Context, f Filter) (Page, error)
	// Threads lists the threads of a person: what was sent in the chat, and what was gone on
	// with from anywhere. The one that was written to last is first, after the cursor.
	Threads(ctx context.Context, personID, after string, limit int) ([]Thread, error)
	// Clock is the time by the one clock that all nodes share; theirs may be minutes apart.
	Clock(ctx context.Context) (time.Time, error)
	// UnderWay counts by task the delegations of an agent, "" for all, that live and were
	// made by then, by Clock.
	UnderWay(ctx context.Context, agent string, until time.Time) (map[string]int, error)
	// Events returns events of one task with n > after, ascending.
	Events(ctx context.Context, taskID string, after int64, limit int) ([]event.Event, error)
	// Ordered returns events of all tasks with a position > after, ascending, and
	// the position of the last one.
	Ordered(ctx context.Context, after int64, limit int) ([]Positioned, error)
	// LastPosition is the newest position of the order over all tasks.
	LastPosition(ctx context.Context) (int64, error)
	// Loads counts the live delegations of every agent that has any history.
	Loads(ctx context.Context) ([]Load, error)
	Blob(ctx context.Context, id string) ([]byte, error)
	// Turns returns the conversation of one generation of a delegation, oldest first.
	Turns(ctx context.Context, delegationID string, generation int) ([]agent.Turn, error)
	// Children returns the delegations that one generation of parentID has made, oldest
	// first.
	Children(ctx context.Context, parentID string, generation int) ([]Delegation, error)
	// KeptAt returns the commit and tree of the checkout when a turn was stored, "" when
	// nothing had changed in it by then; ErrNotFound when there is no such turn.
	KeptAt(ctx context.Context, delegationID string, generation, n int) (commit, tree string, err error)
	// TurnPage returns turns with n > after of one generation, oldest first, at most limit.
	TurnPage(ctx context.Context, delegationID string, generation, after, limit int) ([]agent.Turn, error)
	// LastTurn is the number of a generation's newest turn, 0 when it has none.
	LastTurn(ctx context.Context, delegationID string, generation int) (int, error)
	// Untaken returns the children of one generation whose outcome no turn has carried:
	// in the order of their ends, then those that live, oldest first.
	Untaken(ctx context.Context, parentID string, generation int) ([]Delegation, error)
	// Resolve returns the ids with one of the prefixes that end in ending (at least 6
	// characters), at most limit.
	Resolve(ctx context.Context, ending string, limit int, prefixes ...string) ([]string, error)
	// BreakerStates returns the breakers of agents that ever failed, by name.
	BreakerStates(ctx context.Context) ([]guard.Breaker, error)
	// RunByToken finds the live delegation whose run token has this hash.
	RunByToken(ctx context.Context, hash string) (Delegation, error)
	// Given returns at most total unexpired entries for a run with these rights: its own
	// first, then what it reads, each newest first (K31, K32).
	Given(ctx context.Context, r sharedctx.Rights, total int) ([]sharedctx.Entry, error)
}

// Positioned is an event with its place in the order over all tasks.
type Positioned struct {
	Pos int64
	event.Event
}

// Filter chooses delegations; zero values choose everything.
type Filter struct {
	States     []State
	Agent      string
	Repository string
	Requester  string
	Query      string // words that the text must contain
	From, To   time.Time
	RootsOnly  bool
	// Line says more, and all of it has to hold as well. With RootsOnly its agents, codes and
	// states are those of roots.
	Line history.Query
	// Conversation is a person's id: the roots of what that person sent in the chat.
	// It goes with After and Limit, and with none of the others.
	Conversation string
	Thread       string // with Conversation: what of it is in the thread that this task began
	After        string // cursor of the page before
	Limit        int    // 0 means 50; 200 is the most
}

// TurnCopy says which turns of another delegation, or of the same in another generation, are
// copied.
type TurnCopy struct {
	From       string
	Generation int
	UpTo       int
	Kept       string // stands for the files of a turn that has none of its own
	Bare       bool   // without any files: whoever has the turns works on others
}

// Thread is a person's conversation with agents, as a list shows it.
type Thread struct {
	ID        string // of the task that began it
	Title     string // the beginning of that task's text
	Agent     string // of the newest task
	State     State  // of its root
	RootID    string // its root, the cursor of a list
	Count     int    // tasks
	UpdatedAt time.Time
}

// Page is one page of a list, newest first; Next is "" on the last one.
type Page struct {
	Items []Delegation
	Next  string
}

// Tx is one transaction that holds a task's row.
type Tx interface {
	// Now is the time of this transaction, in whole microseconds, UTC.
	Now() time.Time
	// OnCommit has fn run right after this transaction is committed and its watchers are
	// told, before InTask returns. A try that the database undid runs nothing of its own.
	OnCommit(fn func())
	// OnRollback has fn run where this try is undone, before it is run again; maybe says that
	// it may be committed all the same, because nobody answered. Either fn or OnCommit's runs.
	OnRollback(fn func(maybe bool))
	// Task is the locked row. Changes to Handoffs, PausedAt and EndedAt are written at commit.
	Task() *Task
	Delegation(ctx context.Context, id string) (*Delegation, error)
	// Kept is a delegation as whoever reads it after the commit finds it.
	Kept(ctx context.Context, id string) (Delegation, error)
	// Tree returns every delegation of the task, oldest first.
	Tree(ctx context.Context) ([]*Delegation, error)
	Children(ctx context.Context, parentID string) ([]*Delegation, error)
	// Insert adds a delegation; ErrExists when its hop key is taken.
	Insert(ctx context.Context, d *Delegation) error
	// Move writes d where the row still has that state and attempt; else ErrLost.
	Move(ctx context.Context, d *Delegation, from State, attempt int) error
	// Append numbers and hashes the event and writes it. TaskID, N, ID, At and the
	// hashes are set by the store.
	Append(ctx context.Context, e event.Event) error
	// PutBlob stores bytes under an id of the caller; the same id again is no error.
	PutBlob(ctx context.Context, id, kind string, data []byte) error
	// CloseRequest moves the newest request of a delegation to an ended state and
	// makes its cards due. No request, or one that has ended, is no error.
	CloseRequest(ctx context.Context, delegationID string, end RequestEnd, commit string) error
	// CloseAsk ends the request of a call or a question that its run does not wait for any
	// more, and makes its cards due. One that was decided stays as it is.
	CloseAsk(ctx context.Context, requestID string) error
	// Overtaken puts onto the newest request of a delegation why a yes to it lands nothing;
	// CloseRequest writes it.
	Overtaken(ctx context.Context, delegationID string, o patch.Overtaken) error
	// ShowLanding makes the cards of the newest request of a delegation due, where it is
	// approved: what they say of its landing has changed.
	ShowLanding(ctx context.Context, delegationID string) error
	// PutEntry upserts one value of the shared context (K28, K29) and returns what is kept.
	// Its event and use are the caller's.
	PutEntry(ctx context.Context, e sharedctx.Entry) (sharedctx.Entry, error)
	// ExtendEntry is PutEntry that moves an expiry only forward (K39).
	ExtendEntry(ctx context.Context, e sharedctx.Entry) (sharedctx.Entry, error)
	// DropEntry and TouchEntry are ErrNotFound where nothing can be read; a ttl of 0 is
	// the extension's (K40).
	DropEntry(ctx context.Context, namespace, key string) error
	TouchEntry(ctx context.Context, namespace, key string, ttl time.Duration) (sharedctx.Entry, error)
	// NoteUses records who used entries and returns what was not recorded before.
	NoteUses(ctx context.Context, uses []sharedctx.Use) ([]sharedctx.Use, error)
	// Prolong pushes the expiry of entries forward to until, where they have one (K43).
	Prolong(ctx context.Context, entries []sharedctx.Entry, until time.Time) error

	// Child finds the child of parentID that was made under this key, ErrNotFound when
	// there is none.
	Child(ctx context.Context, parentID string, generation int, hopKey string) (*Delegation, error)
	// Recent returns the task's last hand-overs, oldest first, at most limit.
	Recent(ctx context.Context, limit int) ([]*Delegation, error)
	// PutTurn stores a turn of a delegation's generation; ErrExists when it is there.
	PutTurn(ctx context.Context, d *Delegation, t agent.Turn) error
	// GivesNone has the write of this transaction look whether Given has nothing for a run with
	// these rights. The answer is there after the commit; false where it did not look.
	GivesNone(ctx context.Context, r sharedctx.Rights) func() bool
	// Breaker reads the breaker of an agent; one that never failed is closed.
	Breaker(ctx context.Context, agent string) (guard.Breaker, error)
	// LockBreaker reads it and keeps others from it until the transaction ends.
	LockBreaker(ctx context.Context, agent string) (guard.Breaker, error)
	// PutBreaker stores one that LockBreaker returned.
	PutBreaker(ctx context.Context, b guard.Breaker) error
	// Take marks children of parentID as carried by a turn.
	Take(ctx context.Context, parentID string, ids []string) error
	// CopyTurns gives to the first turns of another delegation, without their usage and
	// children. It returns how many there were.
	CopyTurns(ctx context.Context, to *Delegation, c TurnCopy) (int, error)
	// Live returns the children of parentID that have not ended, oldest first.
	Live(ctx context.Context, parentID string) ([]*Delegation, error)
	// UnderWay returns the delegations of the task that live and were made by then, by the
	// store's Clock, oldest first.
	UnderWay(ctx context.Context, until time.Time) ([]*Delegation, error)
	// Untold reports whether a spawned child has ended that no turn has carried.
	Untold(ctx context.Context, parentID string, generation int) (bool, error)
	// SpawnedBy counts the live children that all delegations of an agent have spawned, in
	// all tasks, and keeps others from counting hers until the transaction ends.
	SpawnedBy(ctx context.Context, agent string) (int, error)
	// Remembered is the child that was noted under a key of what is done once, ErrNotFound
	// when none is; Remember notes one, ErrExists where there is one; Forget drops it.
	Remembered(ctx context.Context, key string) (childID string, err error)
	Remember(ctx context.Context, key, childID string) error
	Forget(ctx context.Context, key string) error
	// DropBlob removes bytes that nobody refers to any more.
	DropBlob(ctx context.Context, id string) error
}

// Error is an error for people and programs: a code of the contract, a sentence
// that says what happened and what to do, and the cause. web maps codes to HTTP
// statuses in one place.
type Error struct {
	Code    string
	Reason  Reason
	Message string
	Err     error
}

// The codes that are not a guard's or a patch's.
const (
	CodeNotFound       = "not_found"
	CodeAmbiguous      = "ambiguous"
	CodeBadRequest     = "bad_request"
	CodeForbidden      = "forbidden"
	CodeConflict       = "conflict"
	CodeEnded          = "already_ended"
	CodeNotEnded       = "not_ended"
	CodeLanding        = "landing"
	CodeKeyReused      = "key_reused"
	CodeAlreadyDecided = "already_decided"
	CodeSuperseded     = "superseded"
	CodeNotTicked      = "not_ticked"
	CodeStale          = "stale"
	CodeExpired        = "expired"
	CodeFourEyes       = "four_eyes"
	CodeNotAnApprover  = "not_an_approver"
	CodeUnavailable    = "unavailable"
	CodeCannotHear     = "cannot_hear"
	CodeBadRef         = patch.CodeBadRef
)

// Reason tells the cases of one code apart, for who says one of them otherwise: nobody reads
// a sentence for that. It is not published; "" is any case that nobody tells apart.
type Reason string

// The reasons, each with its code.
const (
	ReasonAsked Reason = "asked" // CodeFourEyes: the person asked for the task
	ReasonAway  Reason = "away"  // CodeForbidden: the person is out of office; the cause is the sentence without advice
)

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error; %w keeps the cause.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Because gives e its reason.
func (e *Error) Because(why Reason) *Error {
	e.Reason = why
	return e
}

// CodeOf returns the code of err, or "" when it has none.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// What a Store answers where the caller has to tell cases apart.
var (
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
	// ErrLost: the compare-and-set found another state or attempt. Whoever gets it
	// has lost and must not write again.
	ErrLost = errors.New("lost: the row has moved on")
	// ErrExists: a row with this unique key exists.
	ErrExists = errors.New("exists already")
)
