// Package inbox is the channel of the web's own list and pages. They read requests
// as they are, so there is nothing to send: a delivery says that they show it.
//
// It imports approval only.
package inbox

import (
	"context"

	"gatehouse/approval"
)

// Channel is the inbox. Its zero value is ready to use.
type Channel struct{}

var _ approval.Channel = Channel{}

// Name is "inbox".
func (Channel) Name() string { return approval.InboxName }

// Deliver has nothing to send; the page shows every version from the moment that it
// is committed.
func (Channel) Deliver(ctx context.Context, _ approval.Card, _ approval.Request, _ approval.CardView) (string, error) {
	return "", ctx.Err()
}
