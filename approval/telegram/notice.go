package telegram

import (
	"context"
	"time"

	"gatehouse/approval"
)

// Notify implements approval.Noticer: an answer to the request's card, or a message of
// its own where there is no card.
func (c *Channel) Notify(ctx context.Context, n approval.Notice, r approval.Request, view approval.CardView) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to, err := ParsePlace(n.Address)
	if err != nil {
		return approval.Gone(err)
	}
	f := c.face(ctx, to, r, view)
	s := f.notice(n)
	m := s.message(c.openRow(f, "Open the "+f.thing())...)
	m.ReplyTo = cardIn(r, n.Address).message
	id, err := c.put(ctx, to, 0, m)
	if err != nil {
		return moved(err)
	}
	if err := c.takeReplies(ctx, to, sent{message: id}, r); err != nil {
		c.log.Warn("a reply to this reminder will answer nothing", "request", r.ID, "err", err)
	}
	return nil
}

// cardIn is what a request has at an address.
func cardIn(r approval.Request, address string) sent {
	for _, c := range r.Cards {
		if c.Channel == Name && c.Address == address {
			return parseSent(c.ExternalID)
		}
	}
	return sent{}
}

// notice is the text of a reminder or an escalation.
func (f face) notice(n approval.Notice) *sheet {
	s := &sheet{}
	switch n.Kind {
	case approval.Escalation:
		s.as(asBold, cut("◆ Now also: "+oneLine(join(n.To, "and")), firstLimit))
	default:
		text := "⏰ Still waiting"
		if f.r.ExpiresAt != nil {
			text += " · expires in " + left(f.r.ExpiresAt.Sub(f.clock.now))
		}
		s.as(asBold, text)
	}
	f.title(s)
	if turn := f.turn(); turn != "" {
		s.line(cut(turn, lineLimit))
	}
	if f.view.TooFew != "" {
		s.line(cut(oneLine(f.view.TooFew), firstLimit))
	}
	if f.r.IsQuestion() {
		s.line("To answer, reply to this message.")
	}
	f.open(s)
	return s
}

// Test sends a card with a button to a place and says how long that took.
func (c *Channel) Test(ctx context.Context, to Place) (time.Duration, error) {
	b, data := c.newButton(to)
	b.Verdict = tested
	if err := c.buttons.AddButtons(ctx, []Bound{b}); err != nil {
		return 0, err
	}
	s := &sheet{}
	s.as(asBold, "✓ It works")
	s.line("Cards of Gatehouse come here. Press the button to see that taps arrive, too.")
	start := c.now()
	_, err := c.sender.Send(ctx, to, s.message([]Button{{Text: "Tap me", Data: data}}))
	c.pace.note(to, start)
	return c.now().Sub(start), moved(err)
}
