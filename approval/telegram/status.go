package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/people"
)

const (
	pendingLines = 20
	pendingPages = 10   // of 200 requests, that are looked through
	idLength     = 26   // without the prefix
	answerUnits  = 1000 // of an agent's answer: nothing else shows it in a chat
)

// mine are the requests that somebody can approve, newest first.
func (d *Desk) mine(ctx context.Context, u people.User) ([]approval.Request, error) {
	e, err := d.Gateway.Electorate(ctx)
	if err != nil {
		return nil, err
	}
	p := people.As(u, nil)
	var mine []approval.Request
	f := approval.Filter{States: []approval.State{approval.Pending}, Limit: 200}
	for range pendingPages {
		page, err := d.Gateway.Requests(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Items {
			said := slices.ContainsFunc(standing(r), func(y approval.Decision) bool { return y.UserID == u.ID })
			if !said && e.May(p, r, saidYes(r)) == nil {
				mine = append(mine, r)
			}
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	return mine, nil
}

// pending lists what somebody can approve.
func (d *Desk) pending(ctx context.Context, o order) error {
	e, err := d.Gateway.Electorate(ctx)
	if err != nil {
		return err
	}
	if text, ok := absence(e.May(people.As(*o.user, nil), approval.Request{State: approval.Pending}, approval.Reject)); ok {
		return d.tell(ctx, o.m, text)
	}
	mine, err := d.mine(ctx, *o.user)
	if err != nil {
		return err
	}
	s := &sheet{}
	if len(mine) == 0 {
		s.put("Nothing needs you.")
		return d.say(ctx, o.m, s)
	}
	s.as(asBold, needYou(len(mine)))
	slices.Reverse(mine) // who waits longest comes first
	for _, r := range mine[:min(len(mine), pendingLines)] {
		s.line()
		headline(s, r)
		s.put(" · /status_", shortID(r.ID))
	}
	if more := len(mine) - pendingLines; more > 0 {
		s.line(fmt.Sprintf("and %d more", more))
	}
	return d.say(ctx, o.m, s)
}

// status says how a request or a task stands. A request that can be decided by who
// asks comes as a card, which is kept up to date like any other.
func (d *Desk) status(ctx context.Context, o order) error {
	if o.rest == "" {
		return d.tell(ctx, o.m, "Write of what, as in: /status 7f3k9q. The last 6 characters of an id do; /pending lists what you can decide.")
	}
	id, err := d.find(ctx, o.rest, orchestrator.RequestPrefix, orchestrator.TaskPrefix, orchestrator.DelegationPrefix)
	if err != nil {
		return d.sorry(ctx, o, err)
	}
	if strings.HasPrefix(id, orchestrator.RequestPrefix) {
		return d.requestStatus(ctx, o, id)
	}
	return d.taskStatus(ctx, o, id)
}

// saidYes is the verdict that r waits for.
func saidYes(r approval.Request) approval.Verdict {
	if r.IsQuestion() {
		return approval.Respond
	}
	return approval.Approve
}

func (d *Desk) requestStatus(ctx context.Context, o order, id string) error {
	r, err := d.Gateway.Request(ctx, id)
	if own := err == nil && r.MayAnswer(o.user.ID); !own && !d.may(o, people.ApprovalsRead) {
		return d.tell(ctx, o.m, "Reading requests needs the role approver or auditor. Ask an admin.")
	}
	if err != nil {
		return d.sorry(ctx, o, err)
	}
	e, err := d.Gateway.Electorate(ctx)
	if err != nil {
		return err
	}
	s := &sheet{}
	headline(s, r)
	state := strings.ReplaceAll(string(r.State), "_", " ")
	if r.State == approval.Landed && r.IsPatch() {
		state = r.Revision.Delivery().As(name).Done() + " as " + first(r.Landed, 7)
	}
	if r.State == approval.Pending {
		state = "awaiting approval"
		if r.IsQuestion() {
			state = "awaiting an answer"
		}
	}
	s.line(state)
	if turn := e.Turn(r, o.user.ID); turn != "" {
		s.put(" · ", oneLine(turn))
	}
	to := o.m.place()
	own := cardIn(r, to.String())
	out := s.message()
	switch {
	case r.State == approval.Pending && own.message == 0 && e.May(people.As(*o.user, nil), r, approval.Reject) == nil:
		return d.sorryOr(ctx, o, d.Gateway.Show(ctx, r.ID, Name, to.String()))
	case own.message != 0:
		out.Text += "\nIts card is the one that this answers."
		out.ReplyTo = own.message
	}
	return d.send(ctx, to, out)
}

// sorryOr is sorry where there is an error.
func (d *Desk) sorryOr(ctx context.Context, o order, err error) error {
	if err == nil {
		return nil
	}
	return d.sorry(ctx, o, err)
}

func (d *Desk) taskStatus(ctx context.Context, o order, id string) error {
	if !d.may(o, people.DelegationsRead) {
		return d.tell(ctx, o.m, "Reading tasks needs a role. Ask an admin.")
	}
	if strings.HasPrefix(id, orchestrator.TaskPrefix) {
		t, err := d.Reader.Task(ctx, id)
		if err != nil {
			return d.absent(ctx, o, err)
		}
		id = t.RootID
	}
	got, err := d.Reader.Delegation(ctx, id)
	if err != nil {
		return d.absent(ctx, o, err)
	}
	s := &sheet{}
	s.put(badge.Of(got.State).Mark, " ", badge.Of(got.State).Word, " · ", name(got.To), "\n")
	s.as(asCode, title(got.Text))
	if chain := got.Chain.String(); chain != "" {
		s.line(cut(oneLine(chain), lineLimit))
	}
	s.line("since ", d.Channel.clock(o.m.place()).at(got.Since))
	came(s, got)
	if got.State == orchestrator.AwaitingApproval && got.ApprovalID != "" {
		s.line("its request: /status_", shortID(got.ApprovalID))
	}
	return d.say(ctx, o.m, s)
}

// came writes what came of a delegation: why it failed, what it waits for, what landed
// and what its agent answered.
func came(s *sheet, d orchestrator.Delegation) {
	code := func(text string) {
		s.line()
		s.as(asCode, cut(oneLine(text), answerUnits))
	}
	res := d.Result
	switch {
	case d.Error != nil:
		code(d.Error.Message)
		return
	case d.State == orchestrator.Landing && d.Work.Problem != "":
		code(d.Work.Problem)
	}
	landed(s, d)
	switch {
	case res != nil && strings.TrimSpace(res.Text) != "":
		code(res.Text)
	case d.State == orchestrator.Completed:
		s.line(name(d.To), " gave no answer in words.")
	}
}

// landed says where what was approved has landed.
func landed(s *sheet, d orchestrator.Delegation) {
	res := d.Result
	if res == nil || res.Commit == "" {
		return
	}
	if res.Pushed != "" {
		s.line("pushed to ")
		s.as(asCode, cut(oneLine(res.Pushed), lineLimit))
		s.put(" as ")
	} else {
		s.line("landed as ")
	}
	s.as(asCode, first(res.Commit, 7))
	if n := len(res.Declined); n > 0 {
		s.put(" without ", plural(n, "file", "files"), " that people left out")
	}
}

// absent is sorry for what was there a moment ago.
func (d *Desk) absent(ctx context.Context, o order, err error) error {
	if errors.Is(err, orchestrator.ErrNotFound) {
		return d.tell(ctx, o.m, nothingEnds(o.rest))
	}
	return d.sorry(ctx, o, err)
}

func nothingEnds(id string) string {
	return "Nothing ends in " + name(id) + ". Write at least the last 6 characters of an id."
}

// find returns the one id with one of the prefixes that somebody means: whole, or by
// an ending of at least 6 characters.
func (d *Desk) find(ctx context.Context, text string, prefixes ...string) (string, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	ending := word
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(word, p); ok {
			ending, prefixes = strings.TrimLeft(rest, "…"), []string{p}
			break
		}
	}
	foreign := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if len(ending) < 6 || len(ending) > idLength || strings.ContainsFunc(ending, foreign) {
		return "", orchestrator.Errorf(orchestrator.CodeNotFound, "%s", nothingEnds(text))
	}
	found, err := d.Reader.Resolve(ctx, ending, 5, prefixes...)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", orchestrator.Errorf(orchestrator.CodeNotFound, "%s", nothingEnds(text))
	case len(found) > 1:
		return "", orchestrator.Errorf(orchestrator.CodeAmbiguous, "%s fits more than one: %s. Write more of it.", ending, strings.Join(found, ", "))
	}
	return found[0], nil
}
