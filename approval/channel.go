package approval

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Channel is one place where requests are shown. Deliver sends the card, or edits
// it in place when card.ExternalID is set, so that it shows r, whose Version the
// card has afterwards; it returns the channel's name for the message, "" where
// there is none, and with an error too when the message is there but a part of it is
// missing. It is at-least-once: after a crash the same card comes again, perhaps
// without the ExternalID that was not saved. It is called from several goroutines and
// returns soon after ctx ends.
//
// An error made by RetryAfter says when to try again; one made by Gone says that
// this card can never be delivered; one made by Refused is a no that may not be the
// last. After every other one nobody has answered: it is tried again for ever, ever
// less often, and at once when the channel is told to be connected again.
type Channel interface {
	// Name is what card.Channel and configuration call it: inbox, chat, telegram …
	Name() origin.Channel
	Deliver(ctx context.Context, card Card, r Request, view CardView) (externalID string, err error)
}

// Addresser is a Channel with several cards for each request, one per address.
// Others have one, with the address "".
type Addresser interface {
	// Addresses lists where r is shown. voters are those who could say yes to it now,
	// with their accounts. It is called inside a transaction and only computes.
	Addresses(r Request, voters []people.User) []string
}

// Noticer is a Channel that can say something once, beside its cards.
type Noticer interface {
	// Notify delivers n; like Deliver it is at-least-once, with the same errors.
	Notify(ctx context.Context, n Notice, r Request, view CardView) error
}

// Digester is a Channel that takes one message in place of a flood of cards.
type Digester interface {
	// Digest sends the list, or edits it in place when externalID is set, so that it
	// shows the items as they are now.
	Digest(ctx context.Context, address, externalID string, items []DigestItem) (string, error)
}

type DigestItem struct {
	Request Request
	View    CardView
}

// NoticeKind is what a notice says.
type NoticeKind string

// The kinds of notices.
const (
	Reminder   NoticeKind = "reminder"
	Escalation NoticeKind = "escalation"
)

// Notice is a message that is sent once to one address.
type Notice struct {
	ID        string // ntc_…
	RequestID string
	Revision  int
	Channel   origin.Channel
	Address   string
	Kind      NoticeKind
	To        []string // with Escalation: the groups that may decide now, too
	DueAt     time.Time
	Attempts  int
	Error     string
	Dead      bool
	SentAt    *time.Time
}

// CardView is what a card says beside the request itself.
type CardView struct {
	Needs    Needs
	Risk     Risk
	Turn     string    // who must act next, "" when nobody
	TooFew   string    // the sentence for its first line when too few people can approve
	Verdicts []Verdict // what the card may offer; empty once decided
	Held     string    // why the landing waits for a person, "" when it does not
	LeftOut  []string  // paths that people left out of what lands, of all revisions
}

// view makes the view of r for a channel. A careful request is approved on its page
// only, and none where its agent's mode does not let a yes in.
func (e Electorate) view(r Request, channel origin.Channel) CardView {
	v := CardView{Needs: e.Needs(r), Risk: RiskOf(r), Turn: e.Turn(r, ""), TooFew: e.TooFew(r)}
	if r.State != Pending {
		return v
	}
	if r.IsQuestion() {
		v.Verdicts = []Verdict{Respond, Reject}
		return v
	}
	v.Verdicts = []Verdict{Reject, RequestChanges}
	if v.Risk.Level == Plain && r.shownIn(channel) && r.tooLongFor(channel) == nil {
		v.Verdicts = []Verdict{Approve, Reject, RequestChanges}
	}
	v.Verdicts = r.offers(v.Verdicts)
	if !r.IsPatch() {
		v.Verdicts = slices.DeleteFunc(v.Verdicts, func(v Verdict) bool { return v == RequestChanges })
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

type refused struct{ error }

func (e refused) Unwrap() error { return e.error }

// Refused makes err an error of Deliver that is an answer: the service has read the
// message and does not take it. After some of these the card is given up.
func Refused(err error) error { return refused{err} }

func IsRefused(err error) bool {
	var r refused
	return errors.As(err, &r)
}

func IsGone(err error) bool {
	var g gone
	return errors.As(err, &g)
}

// cardsFor lists the cards that r gets: one in the inbox always, and one for each
// address of each channel that the agent's mode lets in.
func cardsFor(r Request, channels []Channel, voters []people.User) []Card {
	cards := []Card{{Channel: origin.Inbox}}
	for _, ch := range channels {
		if ch.Name() == origin.Inbox || !r.shownIn(ch.Name()) {
			continue
		}
		addresses := []string{""}
		if a, ok := ch.(Addresser); ok {
			addresses = a.Addresses(r, voters)
		}
		for _, to := range addresses {
			cards = append(cards, Card{Channel: ch.Name(), Address: to})
		}
	}
	return cards
}

// shownIn reports whether r has cards in a channel. A mode keeps the other channels
// in which people decide away; one-way notices go out in any case.
func (r Request) shownIn(channel origin.Channel) bool {
	return !channel.HasCards() || r.Mode == "" || r.Mode == "any" || r.Mode == string(channel) || r.Mode == "auto" && !r.IsPatch()
}
