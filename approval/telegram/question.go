package telegram

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// How a question's choices stand on buttons, in units.
const (
	choiceLimit = 40
	shortChoice = 12 // that several fit beside each other
	besideEach  = 3
)

// numbered is a question with its choices by number, as the buttons have them.
func numbered(r approval.Request) string {
	q := r.Question
	text := strings.TrimSpace(q.Text)
	if len(q.Choices) > 0 {
		text += "\n\nChoices:"
	}
	for i, c := range q.Choices {
		text += fmt.Sprintf("\n%d. %s", i+1, patch.Shown(c)) // in one line, so that none passes for two
	}
	return text
}

// replies are the buttons of a question: its choices, where all of it is in the card, and
// that there is no answer.
func (f face) replies(inline bool) [][]offer {
	var rows [][]offer
	if inline && slices.Contains(f.view.Verdicts, approval.Respond) {
		choices, beside := make([]offer, len(f.r.Question.Choices)), besideEach
		for i, c := range f.r.Question.Choices {
			words := cut(fmt.Sprintf("%d. %s", i+1, oneLine(c)), choiceLimit)
			choices[i] = offer{words: words, verdict: approval.Respond, choice: i + 1}
			if units(words) > shortChoice {
				beside = 1
			}
		}
		rows = slices.Collect(slices.Chunk(choices, beside))
	}
	if slices.Contains(f.view.Verdicts, approval.Reject) && !f.only {
		rows = append(rows, []offer{{words: silenceButton, verdict: approval.Reject}})
	}
	return rows
}

// choiceOf is the answer that a button stands for, "" for none.
func choiceOf(r approval.Request, n int) string {
	if !r.IsQuestion() || n < 1 || n > len(r.Question.Choices) {
		return ""
	}
	return r.Question.Choices[n-1]
}

// howToAnswer says how a question takes its answer.
func (f face) howToAnswer(inline bool) string {
	switch {
	case !slices.Contains(f.view.Verdicts, approval.Respond):
		return ""
	case !inline:
		return "To answer, open the page: " + f.diff.why + "."
	case len(f.r.Question.Choices) > 0:
		return "To answer, press a choice, or reply to this message."
	}
	return "To answer, reply to this message."
}

// heard is the first line of a card about a question that takes no answer any more.
func (f face) heard() string {
	told := " · " + name(f.r.Agent) + " was told so"
	switch f.r.State {
	case approval.Answered:
		return "Answered · " + name(f.r.Agent) + " goes on with it"
	case approval.Rejected:
		return "No answer" + told
	case approval.Expired:
		return "Nobody answered" + told
	case approval.Cancelled:
		return "Cancelled · no answer is needed"
	}
	return f.unasked()
}

// reply is the answer, and whose it is.
func (f face) reply(s *sheet) {
	d := deciding(f.r)
	if d == nil || d.Verdict != approval.Respond {
		return
	}
	s.line(cut(f.decided(*d), lineLimit))
	s.line()
	s.as(asCode, `"`+cut(oneLine(d.Comment), textLimit)+`"`)
}

// takeReplies makes replies to the card of a question answers to it. Whoever may answer does;
// what a reply stands for is bound as a button is.
func (c *Channel) takeReplies(ctx context.Context, to Place, at sent, r approval.Request) error {
	if !r.IsQuestion() || r.State != approval.Pending || at.message == 0 {
		return nil
	}
	err := c.buttons.AddPrompt(ctx, Prompt{Chat: to.Chat, Message: at.message, RequestID: r.ID, Revision: r.Revision.N,
		Digest: r.Revision.Digest, Verdict: approval.Respond, At: c.now()})
	if err != nil {
		return fmt.Errorf("storing that replies answer %s: %w", r.ID, err)
	}
	return nil
}

// isCommand reports whether a reply to a question is a command all the same.
func isCommand(text string) bool {
	word, ok := strings.CutPrefix(text, "/")
	if i := strings.IndexFunc(word, func(c rune) bool { return c == '@' || c == '_' || unicode.IsSpace(c) }); i >= 0 {
		word = word[:i]
	}
	return ok && slices.Contains([]string{"start", "help", "link", "pending", "status", "send", "cancel", "skip"}, strings.ToLower(word))
}

// replied takes a reply to the card of a question as its answer.
func (d *Desk) replied(ctx context.Context, p Prompt, m *message) error {
	u, err := d.who(ctx, m.From.ID)
	b, text := p.bound(), strings.TrimSpace(m.Text)
	switch {
	case err != nil:
		return err
	case u == nil && !d.strangers.answer(m.From.ID, d.Now()):
		return nil // neither told nor recorded: anybody can do it as often as they like
	case u == nil:
		if err := d.audit(ctx, *m.From, nil, b, codeNotLinked, notLinked); err != nil {
			return err
		}
		return d.tell(ctx, m, notLinked)
	case text == "":
		return d.tell(ctx, m, "Send the answer as text, as a reply to the question. Nothing was answered.")
	}
	r, err := d.Gateway.Decide(ctx, ballot(*u, b, text))
	if err == nil {
		return d.tell(ctx, m, counted(r, b.Verdict, "", false))
	}
	e, ok := known(err)
	switch said := deciding(r); {
	case !ok:
		return err
	case e.Code == orchestrator.CodeUnavailable:
		return d.tell(ctx, m, oneLine(e.Message))
	case said != nil && said.Verdict == approval.Respond && said.UserID == u.ID && said.Comment == text: // the same update again
		return d.tell(ctx, m, counted(r, b.Verdict, "", false))
	}
	say := d.Channel.clock(m.place()).refusal(r, b, e)
	if err := d.audit(ctx, *m.From, u, b, e.Code, say); err != nil {
		return err
	}
	return d.tell(ctx, m, say)
}

// asksHere reports whether a question that was asked in a chat still takes an answer there.
func (d *Desk) asksHere(ctx context.Context, chat int64) bool {
	p, err := d.Memory.OpenPrompt(ctx, chat, 0, d.Now().Add(-promptLife))
	if err != nil {
		return false
	}
	r, err := d.Gateway.Request(ctx, p.RequestID)
	return err == nil && r.IsQuestion() && r.State == approval.Pending
}
