package telegram

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// What a report shows at most.
const (
	reportLive     = 4    // agents at work
	reportAsked    = 4    // requests, the newest
	reportUnits    = 2500 // of the answer
	reportLines    = 60   // of the answer
	reportMissing  = "-"  // the external id of a message that people have deleted
	reportHashSize = 6    // bytes
)

// Report implements approval.Reporter: one message about a task that somebody sent from
// here, edited as the task goes on. One that people deleted is not sent again.
func (c *Channel) Report(ctx context.Context, r approval.Report, p approval.Progress) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	to, err := ParsePlace(r.Address)
	if err != nil {
		return "", approval.Gone(err)
	}
	if r.ExternalID == reportMissing || !c.mayHear(to, p) {
		return r.ExternalID, nil
	}
	m := c.report(to, p)
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("write a message for Telegram: %w", err)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:reportHashSize])
	number, shown, _ := strings.Cut(r.ExternalID, "#")
	message, _ := strconv.Atoi(number) // 0 for none
	switch {
	case message == 0:
		m.ReplyTo = int(r.Answers)
		message, err = c.sender.Send(ctx, to, m)
		c.pace.note(to, c.now()) // somebody asked for it
	case shown == hash:
		return r.ExternalID, nil
	default:
		err = c.sender.Edit(ctx, to.Chat, message, m)
	}
	if errors.Is(err, ErrMessageGone) {
		return reportMissing, nil
	}
	if err != nil {
		return "", moved(err)
	}
	return strconv.Itoa(message) + "#" + hash, nil
}

// mayHear reports whether a place may still read of a task: whoever sent it may have lost
// the right or the account since, and a group may be none of ours any more.
func (c *Channel) mayHear(to Place, p approval.Progress) bool {
	if p.Asker == nil || p.Asker.Disabled || !people.As(*p.Asker, nil).Has(people.DelegationsRead) {
		return false
	}
	if to.Chat < 0 {
		return slices.ContainsFunc(c.settings.Load().Chats, func(o Place) bool { return o.Chat == to.Chat })
	}
	return slices.ContainsFunc(p.Asker.Accounts, func(a people.Account) bool {
		return a.Channel == Name && a.ID == to.Chat
	})
}

// report is the message about a task as it stands.
func (c *Channel) report(to Place, p approval.Progress) Message {
	s := &sheet{}
	state := badge.Of(p.Root.State)
	s.as(asBold, cut(state.Mark+" "+sentence(state.Word)+" · "+name(p.Root.To), firstLimit))
	s.line()
	s.as(asCode, title(p.Task.Text))
	asked := p.Requests[:min(len(p.Requests), reportAsked)]
	slices.Reverse(asked)
	for _, r := range asked {
		c.askedOf(s, to, r)
	}
	rest := false
	if p.Ended() {
		rest = c.end(s, to, p)
	} else {
		atWork(s, p)
		s.line()
		s.as(asCode, p.Task.ID)
		s.put(" sent to ", name(p.Task.Agent), " · /status_", shortID(p.Task.ID))
	}
	rows := c.reportRows(p, rest)
	if rest && len(rows) == 0 {
		s.line("The whole answer: gatehouse status ", shortID(p.Task.ID))
	}
	return s.message(rows...)
}

// atWork says who works now, where that is not the task's own agent alone.
func atWork(s *sheet, p approval.Progress) {
	if len(p.Live) < 2 {
		return
	}
	var all []string
	for _, w := range p.Live {
		if w.State != orchestrator.Waiting {
			all = append(all, name(w.Agent)+" is "+badge.Of(w.State).Word)
		}
	}
	if len(all) == 0 {
		return
	}
	text := strings.Join(all[:min(len(all), reportLive)], ", ")
	if more := len(all) - reportLive; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	s.line(cut(text, lineLimit))
}

// askedOf is one request of the task in a line: what is asked, or what came of it.
func (c *Channel) askedOf(s *sheet, to Place, r approval.Request) {
	f := face{r: r, clock: c.clock(to)}
	if r.State == approval.Pending {
		s.line(iconOf(r.State), " ", f.subject(), " waiting for approval · /status_", shortID(r.ID))
		return
	}
	s.line(cut(iconOf(r.State)+" "+f.outcome(), lineLimit))
	if yes := standing(r); len(yes) > 0 && r.State != approval.Rejected {
		var names []string
		for _, d := range yes {
			names = append(names, someone(d))
		}
		s.put(" · ", cut(join(names, "and"), pathLimit))
	}
}

// end is what came of the task, and what to do where it failed. It reports whether the
// answer goes on elsewhere.
func (c *Channel) end(s *sheet, to Place, p approval.Progress) (rest bool) {
	d := p.Root
	if d.Error != nil {
		s.line()
		s.as(asCode, cut(oneLine(d.Error.Message), answerUnits))
	} else {
		landed(s, d)
		rest = answer(s, d)
	}
	if d.EndedAt != nil {
		s.line(c.clock(to).at(*d.EndedAt), " · after ", long(d.EndedAt.Sub(p.Task.CreatedAt)))
	}
	may := people.As(*p.Asker, nil).Has(people.DelegationsControl)
	if d.State != orchestrator.Completed && d.Work.Reverts == "" && may {
		s.line("To run it again: /retry_", shortID(p.Task.ID))
	}
	return rest
}

// answer is the agent's answer with its lines, cut where it is too long.
func answer(s *sheet, d orchestrator.Delegation) (rest bool) {
	if d.Result == nil || strings.TrimSpace(d.Result.Text) == "" {
		if d.State == orchestrator.Completed {
			s.line(name(d.To), " gave no answer in words.")
		}
		return false
	}
	whole := strings.TrimSpace(mask.Text(d.Result.Text))
	lines := strings.Split(head(whole, reportUnits), "\n")
	rest = len(lines) > reportLines || len(head(whole, reportUnits)) < len(whole)
	lines = lines[:min(len(lines), reportLines)]
	for i, l := range lines {
		lines[i] = patch.Shown(strings.TrimRight(l, "\r"))
	}
	text := cut(strings.Join(lines, "\n"), reportUnits)
	if rest && !strings.HasSuffix(text, ellipsis) {
		text = strings.TrimRight(text, " \n") + ellipsis
	}
	s.line()
	s.as(asPre, text)
	return rest
}

// reportRows are the buttons that open the task's page and, where one waits, its request.
func (c *Channel) reportRows(p approval.Progress, rest bool) [][]Button {
	public := c.settings.Load().PublicURL
	if !openable(public) {
		return nil
	}
	words := "Open the task"
	if rest {
		words = "Read the whole answer"
	}
	rows := [][]Button{{{Text: words, URL: public + "/delegations/" + p.Task.ID}}}
	for _, r := range p.Requests {
		if r.State == approval.Pending && people.As(*p.Asker, nil).Has(people.ApprovalsRead) {
			return append(rows, []Button{{Text: "Open the request", URL: public + "/approvals/" + r.ID}})
		}
	}
	return rows
}
