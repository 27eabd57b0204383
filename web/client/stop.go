package client

import (
	"context"
	"net/http"
	"time"
)

// Stop says what is cancelled at once.
type Stop struct {
	Agent  string     `json:"agent,omitempty"` // "" is everybody's work
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"` // what is younger is left
	DryRun bool       `json:"dry_run,omitempty"`
}

// Stopped counts what was cancelled, or would be.
type Stopped struct {
	Agent       string    `json:"agent"`
	Delegations int       `json:"delegations"`
	Tasks       int       `json:"tasks"`
	Landing     int       `json:"landing"`
	Until       time.Time `json:"until"`
	DryRun      bool      `json:"dry_run"`
}

// StopAll cancels everything that runs or waits, or one agent's work.
func (c *Client) StopAll(ctx context.Context, s Stop) (Stopped, error) {
	n, _, err := ask[Stopped](ctx, c, http.MethodPost, path("delegations", "cancel"), nil, s)
	return n, err
}
