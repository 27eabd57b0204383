package approval

import (
	"context"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
)

// Store is what the gateway needs of the database.
type Store interface {
	// InGate runs fn in one transaction on the task, as the engine's InTask does, with the
	// gate's rows.
	InGate(ctx context.Context, taskID string, fn func(Tx) error) error
	Request(ctx context.Context, id string) (Request, error)
	Requests(ctx context.Context, f Filter) (Page, error)
	// Revisions returns all revisions of a request, oldest first.
	Revisions(ctx context.Context, id string) ([]Revision, error)
	// Standing lists all that wait for people and stand on a branch, oldest first.
	Standing(ctx context.Context) ([]Standing, error)
	// Overdue returns pending requests whose deadline is not after now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]Request, error)
	// DueCards leases cards that are due and show an older version than their
	// request's; nobody else gets them before until.
	DueCards(ctx context.Context, channels []origin.Channel, now, until time.Time, limit int) ([]Card, error)
	// DueEdits is DueCards for those that were delivered before: what people look at
	// and may act on is brought up to date first.
	DueEdits(ctx context.Context, channels []origin.Channel, now, until time.Time, limit int) ([]Card, error)
	// Returned ends the leases that this node had before it was killed.
	Returned(ctx context.Context) error
	// SaveCard records a delivery: what the card shows now, or when to try again.
	SaveCard(ctx context.Context, c Card) error
	// IntoDigest makes a card that was never delivered a line of its address's digest,
	// if f says that there were too many messages; false: it gets a message of its own.
	IntoDigest(ctx context.Context, c Card, f Flood) (bool, error)
	// DueDigests leases digests of a channel of which a line is behind its request:
	// those that were sent before, or those that were not.
	DueDigests(ctx context.Context, channel origin.Channel, sent bool, now, until time.Time, limit int) ([]Digest, error)
	// DigestLines returns the cards that are lines of a digest, oldest request first.
	DigestLines(ctx context.Context, id string) ([]Card, error)
	// SaveDigest records a delivery: which Version of which request the digest shows
	// now, or when to try again. It returns the requests that were delivered for the
	// first time.
	SaveDigest(ctx context.Context, d Digest, shown map[string]int64) ([]string, error)
	// DueNotices leases notices of a channel that were not sent.
	DueNotices(ctx context.Context, channel origin.Channel, now, until time.Time, limit int) ([]Notice, error)
	// SaveNotice records that a notice was sent, or when to try again.
	SaveNotice(ctx context.Context, n Notice) error
	// TellEnds has every task that ends from now on reported to these addresses, by a row that
	// is written with its end.
	TellEnds(to []Told)
	// Follow adds the report unless there is one of its task and address, due at once.
	Follow(ctx context.Context, r Report) error
	// Reported is the task that a message at an address is about, or with "" the newest one that
	// is told of there; ErrNotFound where there is none. The message is the beginning of an
	// external id, up to a "#".
	Reported(ctx context.Context, channel origin.Channel, address, message string) (taskID string, err error)
	// DueReports leases reports of a channel whose task has gone on since: those that were
	// sent before, or those that were not.
	DueReports(ctx context.Context, channel origin.Channel, sent bool, now, until time.Time, limit int) ([]Report, error)
	// SaveReport records a delivery, and with done that nothing more is to be told unless the
	// task has gone on since what r shows.
	SaveReport(ctx context.Context, r Report, done bool) error
	// LiveWork lists what of a task has not ended, oldest first.
	LiveWork(ctx context.Context, taskID string) ([]Work, error)
	// DueActs returns pending requests whose NextAt is not after now.
	DueActs(ctx context.Context, now time.Time, limit int) ([]Request, error)
	// DeadLetters returns what was given up, in the order of DeadLetter.Key.
	DeadLetters(ctx context.Context, f DeadFilter) (DeadPage, error)
	// Health is what every channel last told of its other side.
	Health(ctx context.Context) ([]Health, error)
	// Backlog counts what waits and what was given up, by channel.
	Backlog(ctx context.Context) ([]Backlog, error)
	// Revive makes what was given up due again, with an event of actor's.
	Revive(ctx context.Context, actor string, f DeadFilter) (int, error)
	// SaveDraft writes a draft, in place of the one on the same line; ErrExists when the
	// person has that many others on the request.
	SaveDraft(ctx context.Context, d Draft, most int) error
	// DeleteDraft removes the draft on the same line, if there is one.
	DeleteDraft(ctx context.Context, d Draft) error
	// Grants returns those of a task, oldest first, also those that were revoked.
	Grants(ctx context.Context, taskID string) ([]Grant, error)
	// Grant reads one; ErrNotFound where there is none.
	Grant(ctx context.Context, id string) (Grant, error)
	// Drafts returns a person's drafts on a request, by path, side and line.
	Drafts(ctx context.Context, userID, requestID string) ([]Draft, error)
	// Answers returns what was said and done under a request's line comments, oldest first.
	Answers(ctx context.Context, requestID string) ([]Answer, error)
	// OpenReading records when a revision was first drawn for a person.
	OpenReading(ctx context.Context, userID, requestID string, revision int, at time.Time) error
	// Reading returns how far a person has read a revision, zero values for not at all.
	Reading(ctx context.Context, userID, requestID string, revision int) (Reading, error)
	// MarkViewed sets or removes a mark on a file of a revision that was opened.
	MarkViewed(ctx context.Context, userID, requestID string, revision, file int, viewed bool) error
	// MarkOpened records that files of a revision that was opened were before the person.
	MarkOpened(ctx context.Context, userID, requestID string, revision int, files []int) error
	// MarkWhole records that the person was given the whole diff of a revision in a place.
	MarkWhole(ctx context.Context, userID, requestID string, revision int, surface string, at time.Time) error
	// Looks returns who had something of the requests' revisions before them and gave no
	// verdict on that revision, in the order of request and time.
	Looks(ctx context.Context, requestIDs []string) ([]Look, error)
	// Configuration is what some node took last.
	Configuration(ctx context.Context) (Taken, error)
	Delegation(ctx context.Context, id string) (orchestrator.Delegation, error)
	Task(ctx context.Context, id string) (orchestrator.Task, error)
}

// Tx is one transaction of the gateway; it is also the engine's, so that the
// decision, the state, the events and the cards are one.
type Tx interface {
	orchestrator.Tx
	// Request reads the request with its current revision and decisions.
	Request(ctx context.Context, id string) (*Request, error)
	// NewestRequest reads the newest request about a delegation's work, or about handing it
	// on, nil when it has none.
	NewestRequest(ctx context.Context, delegationID string) (*Request, error)
	// InsertRequest adds a request with its first revision.
	InsertRequest(ctx context.Context, r *Request) error
	// SaveRequest writes the request's own fields and its current revision's (a new
	// Revision.N adds a revision), raises Version, and makes its cards due.
	SaveRequest(ctx context.Context, r *Request) error
	InsertDecision(ctx context.Context, requestID string, d Decision) error
	// Configuration is the same as the store's.
	Configuration(ctx context.Context) (Taken, error)
	// Approved returns those of the contents that a person has approved at their path of a
	// repository.
	Approved(ctx context.Context, repository string, contents []Content) (map[Content]bool, error)
	// KeepApproved remembers contents that people approved in a repository.
	KeepApproved(ctx context.Context, repository string, contents []Content) error
	// TakeDrafts removes a person's drafts on a request and returns them, as Drafts does.
	TakeDrafts(ctx context.Context, userID, requestID string) ([]Draft, error)
	// Answers is the same as the store's.
	Answers(ctx context.Context, requestID string) ([]Answer, error)
	InsertAnswer(ctx context.Context, requestID string, a Answer) error
	// Grants returns those of this task, oldest first, also those that were revoked.
	Grants(ctx context.Context) ([]Grant, error)
	// SaveGrant adds a grant, or writes what became of it.
	SaveGrant(ctx context.Context, g Grant) error
	// EnsureCard adds the card unless it exists, due at once.
	EnsureCard(ctx context.Context, c Card) error
	// OwnCard makes sure that the card exists and is no line of a digest.
	OwnCard(ctx context.Context, c Card) error
	// Cards returns the cards of a request of this task.
	Cards(ctx context.Context, requestID string) ([]Card, error)
	// InsertNotice adds a notice, due at once.
	InsertNotice(ctx context.Context, n Notice) error
}

// Filter chooses requests; zero values choose everything.
type Filter struct {
	States       []State
	TaskID       string
	DelegationID string
	Repository   string
	Agent        string
	Rule         string // the name of the rule that matched
	After        string
	Oldest       bool // oldest first; After is then the newest of the page before
	Limit        int  // 0 means 50; 200 is the most
}

// Page is one page of requests, newest first unless asked for otherwise; Next is "" on the last one.
type Page struct {
	Items []Request
	Next  string
}
