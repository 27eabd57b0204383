package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// What a tap is answered with, besides sentences about the request.
const (
	answerLimit   = 120
	notLinked     = "You are not linked. Open Settings → Channels."
	unknownButton = "This button is not known any more."
	botsDecide    = "Bots decide nothing here."
	tooMany       = "Too many presses that cannot count: more by this account are neither answered nor recorded for now."
	answerTime    = 5 * time.Second
)

// The codes of refusals that no gateway gives.
const (
	codeNotLinked     = "not_linked"
	codeUnknownButton = "unknown_button"
	codeNotYours      = "not_yours"
	codeBot           = "bot"
	codeTooMany       = "too_many_presses"
	codeNotWhole      = "not_whole"
)

// notWhole is why a yes does not count whose card has not all of what is asked.
func notWhole(r approval.Request) string {
	what := "the change"
	if !r.IsPatch() {
		what = "it"
	}
	return "Not counted: nothing says that all of " + what + " is in this card. To approve, open the page."
}

// seenIn is what events say was looked at.
const seenIn = "telegram"

// tapped acts on a pressed button. What a button stands for is known by the hash of its
// text alone, and holds under its own message only.
func (d *Desk) tapped(ctx context.Context, q tap) error {
	if q.From.Bot {
		return d.refuse(ctx, q, nil, Bound{}, codeBot, botsDecide)
	}
	u, err := d.who(ctx, q.From.ID)
	if err != nil {
		return err
	}
	b, err := d.Memory.Button(ctx, buttonHash(q.Data))
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return d.refuse(ctx, q, u, Bound{}, codeUnknownButton, unknownButton)
	case err != nil:
		return fmt.Errorf("reading what a button stands for: %w", err)
	case !b.under(q):
		return d.refuse(ctx, q, u, b, codeUnknownButton, unknownButton)
	case u == nil:
		return d.refuse(ctx, q, u, b, codeNotLinked, notLinked)
	case b.Verdict == tested:
		d.answer(ctx, q, "It works: "+tenths(d.Now().Sub(b.At)), false)
		return nil
	case b.Verdict == approval.Approve, b.Verdict == approval.Renew, b.Verdict == approval.Respond:
		return d.approve(ctx, q, *u, b)
	default:
		return d.ask(ctx, q, *u, b)
	}
}

// tenths is a length of time as "1.2 s".
func tenths(t time.Duration) string { return fmt.Sprintf("%.1f s", max(t, 0).Seconds()) }

// approve casts the yes or the answer, or has the change made again where that is offered in
// place of a yes.
func (d *Desk) approve(ctx context.Context, q tap, u people.User, b Bound) error {
	r, err := d.Gateway.Request(ctx, b.RequestID)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return err
	}
	if b.Verdict == approval.Approve && lacking(r, q, b) {
		return d.refuse(ctx, q, &u, b, codeNotWhole, notWhole(r))
	}
	vote := ballot(u, b, "")
	vote.Choice = choiceOf(r, b.Choice)
	vote.Whole = b.Verdict == approval.Approve || inChat(r, b) // of the first, lacking has said so
	if r, err = d.Gateway.Decide(ctx, vote); err != nil {
		return d.lost(ctx, q, u, b, r, err)
	}
	turn, stuck := d.turn(ctx, r)
	d.answer(ctx, q, counted(r, b.Verdict, turn, stuck), r.Missed() != "")
	d.mend(ctx, q, b, r)
	return nil
}

// lacking reports whether the card of the current question, under which a button was
// pressed, is stored as one that does not have all of the change. What is no question any
// more is refused in the gateway's words. A card that was sent just before a crash is stored
// nowhere; it got its Approve when all was there, as every card does.
func lacking(r approval.Request, q tap, b Bound) bool {
	if r.State != approval.Pending || r.Revision.N != b.Revision || q.Message == nil {
		return false
	}
	for _, c := range r.Cards {
		p, err := ParsePlace(c.Address)
		if s := parseSent(c.ExternalID); c.Channel == Name && err == nil && p.Chat == b.Chat && s.message == q.Message.ID {
			return s.revision != b.Revision || !s.document.whole()
		}
	}
	return false
}

// inChat reports whether the chat of a button has all of the change that it is about.
func inChat(r approval.Request, b Bound) bool {
	return slices.ContainsFunc(r.Cards, func(c approval.Card) bool {
		p, err := ParsePlace(c.Address)
		s := parseSent(c.ExternalID)
		return c.Channel == Name && err == nil && p.Chat == b.Chat && s.revision == b.Revision && s.document.whole()
	})
}

// ballot is a verdict on what a button or a question is bound to.
func ballot(u people.User, b Bound, comment string) approval.Ballot {
	return approval.Ballot{RequestID: b.RequestID, Principal: people.As(u, nil), Channel: Name, Verdict: b.Verdict, Digest: b.Digest,
		Revision: b.Revision, Comment: comment, ForTask: b.ForTask, Seen: approval.Seen{Surface: seenIn}}
}

// lost answers a verdict that did not count, unless it is the same person's that does:
// an update may come twice, and so may a finger.
func (d *Desk) lost(ctx context.Context, q tap, u people.User, b Bound, r approval.Request, err error) error {
	e, ok := known(err)
	if !ok {
		return err
	}
	if own(r, u, b) {
		turn, stuck := d.turn(ctx, r)
		d.answer(ctx, q, counted(r, b.Verdict, turn, stuck), false)
		return nil
	}
	text := d.Channel.clock(q.Message.place()).refusal(r, b, e)
	if err := d.refuse(ctx, q, &u, b, e.Code, text); err != nil {
		return err
	}
	d.mend(ctx, q, b, r)
	return nil
}

// refuse answers a tap that does not count, and records it.
func (d *Desk) refuse(ctx context.Context, q tap, u *people.User, b Bound, code, text string) error {
	shown := text
	if u == nil { // who is not linked learns nothing, whatever they press
		shown = notLinked
	}
	last := false
	if u == nil || code == codeUnknownButton { // what anybody can send as often as they like
		var ok bool
		if ok, last = d.presses.take(q.From.ID, d.Now()); ok && u == nil {
			ok, _ = d.presses.take(crowd, d.Now())
		}
		if !ok {
			return nil
		}
	}
	d.answer(ctx, q, shown, true)
	if err := d.audit(ctx, q.From, u, b, code, text); err != nil || !last {
		return err
	}
	return d.audit(ctx, q.From, u, Bound{}, codeTooMany, tooMany) // for all that follow
}

// audit records a verdict that did not count.
func (d *Desk) audit(ctx context.Context, from account, u *people.User, b Bound, code, text string) error {
	actor := fmt.Sprintf("%s:%d", Name, from.ID)
	if u != nil {
		actor = u.Name
	}
	err := d.Gateway.Refused(ctx, approval.Refusal{RequestID: b.RequestID, Actor: actor, Channel: Name, Verdict: b.Verdict, Code: code, Message: text})
	if err != nil {
		return fmt.Errorf("recording a verdict that did not count: %w", err)
	}
	return nil
}

// answer ends the waiting in the app. The verdict is stored by then, so that nobody
// heard it is only logged.
func (d *Desk) answer(ctx context.Context, q tap, text string, alert bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := d.sender.Answer(ctx, q.ID, cut(text, answerLimit), alert); err != nil {
		d.Log.Info("a tap got no answer", "err", err)
	}
}

// turn is who must act next, "" when that cannot be read now, and whether nobody can.
func (d *Desk) turn(ctx context.Context, r approval.Request) (who string, stuck bool) {
	if r.State != approval.Pending {
		return "", false
	}
	e, err := d.Gateway.Electorate(ctx)
	if err != nil {
		d.Log.Warn("who is next could not be read", "err", err)
		return "", false
	}
	return e.Turn(r, ""), e.Stuck(r)
}

// mend brings a message up to date that no card knows: one that was sent just before a
// crash, or that a later revision has left behind. The outbox edits the others. Of a card
// that was sent twice, the first goes on as text alone while the request is pending.
func (d *Desk) mend(ctx context.Context, q tap, b Bound, r approval.Request) {
	if r.ID == "" || q.Message == nil {
		return
	}
	current := r.State == approval.Pending && b.Revision == r.Revision.N
	r, err := d.Gateway.Request(ctx, r.ID) // with its cards
	if err != nil {
		d.Log.Info("an old card could not be brought up to date", "request", b.RequestID, "err", err)
		return
	}
	to := q.Message.place()
	twin := 0 // the card of this chat that is known
	for _, c := range r.Cards {
		if p, err := ParsePlace(c.Address); c.Channel == Name && err == nil && p.Chat == to.Chat {
			s := parseSent(c.ExternalID)
			if s.message == q.Message.ID {
				return
			}
			if s.revision == r.Revision.N {
				twin = s.message
			}
		}
	}
	f := d.Channel.face(ctx, to, r, approval.CardView{})
	if current && twin == 0 {
		return // it is being sent: its number is recorded after it can be pressed
	}
	if current {
		if err := d.sender.Edit(ctx, to.Chat, q.Message.ID, f.double().message(d.Channel.openRow(f, "Open")...)); err != nil && !errors.Is(err, ErrMessageGone) {
			d.Log.Info("a card that was sent twice could not be ended", "request", r.ID, "err", err)
		}
		return
	}
	m := f.ended().message(d.Channel.openRow(f, "Open")...)
	if b.Revision < r.Revision.N {
		m = f.retired(b.Revision).message(d.Channel.openRow(f, fmt.Sprintf("Open revision %d", r.Revision.N))...)
	}
	if err := d.sender.Edit(ctx, to.Chat, q.Message.ID, m); err != nil && !errors.Is(err, ErrMessageGone) {
		d.Log.Info("an old card could not be brought up to date", "request", r.ID, "err", err)
	}
}

// own reports whether the verdict that stands is this person's, and the same one.
func own(r approval.Request, u people.User, b Bound) bool {
	d := deciding(r)
	if b.Verdict == approval.Approve {
		for _, y := range standing(r) {
			if y.UserID == u.ID {
				d = &y
			}
		}
	}
	verdict := b.Verdict
	if verdict == approval.Renew {
		verdict = approval.RequestChanges // as it is stored
	}
	if verdict == approval.Respond && (d == nil || d.Comment != choiceOf(r, b.Choice)) {
		return false
	}
	return d != nil && d.UserID == u.ID && d.Verdict == verdict && d.ForTask == b.ForTask && d.Revision == b.Revision && b.Revision == r.Revision.N
}

// deciding is the verdict that ended the current revision: the newest no or answer, or else
// the newest yes; nil without one.
func deciding(r approval.Request) *approval.Decision {
	for i := len(r.Decisions) - 1; i >= 0; i-- {
		d := r.Decisions[i]
		if d.Revision == r.Revision.N && slices.Contains([]approval.Verdict{approval.Reject, approval.RequestChanges, approval.Respond}, d.Verdict) {
			return &d
		}
	}
	if yes := standing(r); len(yes) > 0 {
		return &yes[len(yes)-1]
	}
	return nil
}
