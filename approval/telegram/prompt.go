package telegram

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// Prompt is a message that takes a reply: a question for a reason, which only the account
// that pressed the button answers, or the card of an agent's question, which has no account.
type Prompt struct {
	Chat      int64
	Message   int   // the question
	Account   int64 // 0: everybody who may answer
	RequestID string
	Revision  int
	Digest    string
	Verdict   approval.Verdict
	At        time.Time
	Used      *time.Time // answered then; nil: open
}

// bound is what the question is about, as a button has it.
func (p Prompt) bound() Bound {
	return Bound{RequestID: p.RequestID, Revision: p.Revision, Digest: p.Digest, Chat: p.Chat, Verdict: p.Verdict, At: p.At}
}

const (
	// promptLife is how long a question takes an answer.
	promptLife = 24 * time.Hour
	// promptAgain is how long a question is not asked again for the same button: an
	// update may come twice, and so may a finger.
	promptAgain = time.Minute

	whyWords  = "Why? Reply to this message. /skip to send none (reject only)."
	skipWords = "/skip"
)

// ask asks whoever pressed Reject or Changes why, if they may do that now.
func (d *Desk) ask(ctx context.Context, q tap, u people.User, b Bound) error {
	r, err := d.Gateway.Consider(ctx, ballot(u, b, ""))
	if err != nil {
		return d.lost(ctx, q, u, b, r, err)
	}
	open, err := d.Memory.OpenPrompt(ctx, b.Chat, q.From.ID, d.Now().Add(-promptAgain))
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return fmt.Errorf("looking for an open question: %w", err)
	}
	d.answer(ctx, q, "Why? Reply to the question below.", false)
	if err == nil && open.RequestID == b.RequestID && open.Revision == b.Revision && open.Verdict == b.Verdict {
		return nil
	}
	s := &sheet{}
	if !q.Message.private() {
		s.mention(u.Name, q.From.ID)
		s.put(": ")
	}
	s.put(whyWords)
	m := s.message()
	m.ForceReply, m.ReplyTo = true, q.Message.ID
	m.Placeholder = "Why it should not land"
	switch {
	case !r.IsPatch():
		m.Placeholder = "Why not"
	case b.Verdict == approval.RequestChanges:
		m.Placeholder = "What should be different"
	}
	to := q.Message.place()
	d.mend(ctx, q, b, r)
	id, err := d.sender.Send(ctx, to, m)
	d.Channel.pace.note(to, d.Now())
	if err != nil {
		return err
	}
	return d.Memory.AddPrompt(ctx, Prompt{Chat: b.Chat, Message: id, Account: q.From.ID, RequestID: b.RequestID, Revision: b.Revision, Digest: b.Digest, Verdict: b.Verdict, At: d.Now()})
}

// answered takes the reply to a question as the reason of the verdict.
func (d *Desk) answered(ctx context.Context, p Prompt, m *message) error {
	text := strings.TrimSpace(m.Text)
	word, _, _ := strings.Cut(text, "@")
	skip := word == skipWords
	switch {
	case m.From.ID != p.Account:
		if err := d.audit(ctx, *m.From, nil, p.bound(), codeNotYours, "A reply to somebody else's question."); err != nil {
			return err
		}
		return d.tellStranger(ctx, m, "This question is for somebody else. Nothing was decided.")
	case p.Used != nil:
		return nil
	case d.Now().Sub(p.At) > promptLife:
		return d.tell(ctx, m, "This question is older than 24 h. Press the button again.")
	case text == "":
		return d.tell(ctx, m, "Send the reason as text, as a reply to the question.")
	case skip && p.Verdict != approval.Reject:
		return d.tell(ctx, m, "Changes need words. Reply to the question with what should be different.")
	case skip:
		text = ""
	}
	u, err := d.who(ctx, m.From.ID)
	if err != nil {
		return err
	}
	if u == nil {
		if err := d.audit(ctx, *m.From, nil, p.bound(), codeNotLinked, notLinked); err != nil {
			return err
		}
		return d.tellStranger(ctx, m, notLinked)
	}
	return d.reasoned(ctx, *u, p, m, text)
}

// reasoned casts the verdict and says once what became of it.
func (d *Desk) reasoned(ctx context.Context, u people.User, p Prompt, m *message, why string) error {
	b := p.bound()
	vote := ballot(u, b, why)
	r, err := d.Gateway.Request(ctx, b.RequestID)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return err
	}
	vote.Whole = inChat(r, b)
	r, err = d.Gateway.Decide(ctx, vote)
	say := ""
	if err != nil {
		e, ok := known(err)
		switch {
		case !ok:
			return err
		case e.Code == orchestrator.CodeUnavailable:
			return d.tell(ctx, m, oneLine(e.Message)) // the question stays open
		case own(r, u, b):
		default:
			say = d.Channel.clock(m.place()).refusal(r, b, e)
			if err := d.audit(ctx, *m.From, &u, b, e.Code, say); err != nil {
				return err
			}
		}
	}
	if say == "" {
		say = counted(r, b.Verdict, "", false)
	}
	first, err := d.Memory.UsePrompt(ctx, p.Chat, p.Message, d.Now())
	if err != nil || !first {
		return err
	}
	return d.tell(ctx, m, say)
}
