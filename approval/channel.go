package approval

import (
	"context"
	"errors"
	"time"
)

// Channel is one place where requests are shown. Deliver sends the card, or edits
// it in place when card.ExternalID is set, so that it shows r, whose Version the
// card has afterwards; it returns the channel's name for the message, "" where
// there is none. It is at-least-once: after a crash the same card comes again,
// perhaps without the ExternalID that was not saved. It is called from several
// goroutines and returns soon after ctx ends.
//
// An error made by RetryAfter says when to try again; one made by Gone says that
// this card can never be delivered; every other one is tried again, ever less often.
type Channel interface {
	// Name is what card.Channel and configuration call it: inbox, chat, telegram …
	Name() string
	Deliver(ctx context.Context, card Card, r Request, view CardView) (externalID string, err error)
}

// Addresser is a Channel with several cards for each request, one per address.
// Others have one, with the address "".
type Addresser interface {
	Addresses(ctx context.Context) ([]string, error)
}

// CardView is what a card says beside the request itself.
type CardView struct {
	Needs    Needs
	Risk     Risk
	Turn     string    // who must act next, "" when nobody
	TooFew   string    // the sentence for its first line when too few people can approve
	Verdicts []Verdict // what the card may offer; empty once decided
}

// view makes the view of r. A careful request is approved on its page only.
func (e Electorate) view(r Request) CardView {
	v := CardView{Needs: e.Needs(r), Risk: RiskOf(r), Turn: e.Turn(r, ""), TooFew: e.TooFew(r)}
	if r.State != Pending {
		return v
	}
	v.Verdicts = []Verdict{Reject, RequestChanges}
	if v.Risk.Level == Plain {
		v.Verdicts = []Verdict{Approve, Reject, RequestChanges}
	}
	return v
}

type retryAfter struct {
	error
	wait time.Duration
}

func (e retryAfter) Unwrap() error { return e.error }

// RetryAfter makes err an error of Deliver after which the channel wants to be left
// alone for that long.
func RetryAfter(err error, wait time.Duration) error { return retryAfter{error: err, wait: wait} }

type gone struct{ error }

func (e gone) Unwrap() error { return e.error }

// Gone makes err an error of Deliver that no further attempt can mend: the chat
// does not exist, or the bot was thrown out.
func Gone(err error) error { return gone{err} }

// IsGone reports whether err was made by Gone.
func IsGone(err error) bool {
	var g gone
	return errors.As(err, &g)
}

// cardsFor lists the cards that each new request gets: one in the inbox always, and
// one for each address of each channel.
func cardsFor(ctx context.Context, channels []Channel) ([]Card, error) {
	cards := []Card{{Channel: InboxName}}
	for _, ch := range channels {
		if ch.Name() == InboxName {
			continue
		}
		addresses := []string{""}
		if a, ok := ch.(Addresser); ok {
			var err error
			if addresses, err = a.Addresses(ctx); err != nil {
				return nil, err
			}
		}
		for _, to := range addresses {
			cards = append(cards, Card{Channel: ch.Name(), Address: to})
		}
	}
	return cards, nil
}
