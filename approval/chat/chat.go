// Package chat is the channel of the dashboard's chat. Its page reads requests as they
// are and shows their cards between the messages, so there is nothing to send: the
// channel says which requests have a card there, and that the page shows it.
//
// It imports approval only.
package chat

import (
	"context"

	"gatehouse/approval"
)

// Name is what cards, decisions and the mode of an agent call this channel.
const Name = "chat"

// Channel is the chat. Its zero value is ready to use.
type Channel struct{}

var _ approval.Channel = Channel{}

// Name is "chat".
func (Channel) Name() string { return Name }

// Deliver has nothing to send; the page shows every version from the moment that it
// is committed.
func (Channel) Deliver(ctx context.Context, _ approval.Card, _ approval.Request, _ approval.CardView) (string, error) {
	return "", ctx.Err()
}
