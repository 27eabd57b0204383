// Package passive has the channels with nothing to send: the web's own list and pages, and
// the chat of the dashboard. They read requests as they are, so a delivery only says that
// they show it, and the channel which requests have a card there.
//
// It imports approval and the table of channels.
package passive

import (
	"context"

	"gatehouse/approval"
	"gatehouse/orchestrator/origin"
)

// Channel is one of them by its name.
type Channel origin.Channel

// The channels: the inbox has a card of every request.
const (
	Inbox Channel = "inbox"
	Chat  Channel = "chat"
)

var _ approval.Channel = Inbox

func (c Channel) Name() origin.Channel { return origin.Channel(c) }

// Deliver has nothing to send; the page shows every version from the moment that it
// is committed.
func (Channel) Deliver(ctx context.Context, _ approval.Card, _ approval.Request, _ approval.CardView) (string, error) {
	return "", ctx.Err()
}
