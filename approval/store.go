package approval

import (
	"context"
	"time"

	"gatehouse/orchestrator"
)

// Store is what the gateway needs of the database.
type Store interface {
	// InTask runs fn in one transaction that holds the task's row.
	InTask(ctx context.Context, taskID string, fn func(Tx) error) error
	Request(ctx context.Context, id string) (Request, error)
	Requests(ctx context.Context, f Filter) (Page, error)
	// Revisions returns all revisions of a request, oldest first.
	Revisions(ctx context.Context, id string) ([]Revision, error)
	// PendingOf returns the ids of the pending requests of a task.
	PendingOf(ctx context.Context, taskID string) ([]string, error)
	// Overdue returns pending requests whose deadline is not after now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]Request, error)
	// DueCards leases cards that are due and show an older version than their
	// request's; nobody else gets them before until.
	DueCards(ctx context.Context, channels []string, now, until time.Time, limit int) ([]Card, error)
	// SaveCard records a delivery: what the card shows now, or when to try again.
	SaveCard(ctx context.Context, c Card) error
	Blob(ctx context.Context, id string) ([]byte, error)
}

// Tx is one transaction of the gateway; it is also the engine's, so that the
// decision, the state, the events and the cards are one.
type Tx interface {
	orchestrator.Tx
	// Request reads the request with its current revision and decisions.
	Request(ctx context.Context, id string) (*Request, error)
	// InsertRequest adds a request with its first revision.
	InsertRequest(ctx context.Context, r *Request) error
	// SaveRequest writes the request's own fields and its current revision's (a new
	// Revision.N adds a revision), raises Version, and makes its cards due.
	SaveRequest(ctx context.Context, r *Request) error
	InsertDecision(ctx context.Context, requestID string, d Decision) error
	// EnsureCard adds the card unless it exists, due at once.
	EnsureCard(ctx context.Context, c Card) error
}

// Filter chooses requests; zero values choose everything.
type Filter struct {
	States       []State
	TaskID       string
	DelegationID string
	Repository   string
	Agent        string
	After        string
	Limit        int // 0 means 50; 200 is the most
}

// Page is one page of requests, newest first; Next is "" on the last one.
type Page struct {
	Items []Request
	Next  string
}
