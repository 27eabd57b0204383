package api

import (
	"context"
	"crypto/ed25519"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/orchestrator/sharedctx"

	"github.com/labstack/echo/v4"
)

// Audits verifies the history and proves parts of it; the store does.
type Audits interface {
	handlers.Proof
	// Proofs returns the checkpoints that cover tasks, with at most most heads in all.
	Proofs(ctx context.Context, tasks []string, most int) ([]proof.Proof, error)
}

// API has the JSON handlers.
type API struct {
	Engine   handlers.Engine
	Reader   handlers.Reader
	Ids      handlers.Ids
	Requests handlers.Requests
	Gateway  handlers.Gateway
	Reviewer handlers.Reviewer
	// Context is the shared context for the person of that name.
	Context func(actor, userID string) sharedctx.Store
	Audits  Audits
	Holds   handlers.Holds
	History handlers.History
	Exports Exports
	Outbox  handlers.Outbox
	Figures handlers.Insights
	Hooks   handlers.Triggers
	Places  func() []handlers.Place // the channels of the configuration in force
	// Reload loads the configuration again, as actor asked; a bad file changes nothing.
	Reload func(ctx context.Context, actor string) error
	// Seal signs audit bundles; without a key bundles are refused.
	Seal ed25519.PrivateKey
	Now  func() time.Time
	// Patience is how long a reader may take for one part of a long export; 0 means
	// partTime. Then the connection is cut: nobody has a part of the server for ever.
	Patience time.Duration
}

// caller is who asks; web lets nobody through who is unknown.
func caller(c echo.Context) handlers.Caller {
	who, _ := handlers.Who(c)
	return who
}
