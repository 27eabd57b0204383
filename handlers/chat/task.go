package chat

import (
	"cmp"
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
	view "gatehouse/views/chat"
)

// How much one message shows; the task's own page has all of it.
const (
	chatTurns  = 20
	chatSteps  = 40  // of each turn
	chatEvents = 500 // the newest ones that are read
)

// chatTask is one message with what came of it.
func (p *Pages) chatTask(f *handlers.Frame, root orchestrator.Delegation) (view.ChatTask, error) {
	t, err := p.Reader.Task(f.Ctx, root.TaskID)
	if err != nil {
		return view.ChatTask{}, err
	}
	tree, err := p.Reader.Tree(f.Ctx, root.TaskID)
	if err != nil {
		return view.ChatTask{}, err
	}
	story, err := p.Reader.Events(f.Ctx, root.TaskID, max(0, t.LastN-chatEvents), chatEvents)
	if err != nil {
		return view.ChatTask{}, err
	}
	cards, err := p.cardsOf(f, tree)
	if err != nil {
		return view.ChatTask{}, err
	}
	asks, err := p.asksOf(f, story)
	if err != nil {
		return view.ChatTask{}, err
	}
	out := view.ChatTask{ID: t.ID, Thread: t.ThreadID(), Text: t.Text, Files: views.AttachedFiles(t), At: t.CreatedAt, Agent: t.Agent, Repository: t.Repository, State: string(root.State),
		Since: root.Since, EndedAt: handlers.At(root.EndedAt), Whose: f.TaskTurn(root, tree), LastN: t.LastN}
	for i, d := range depthFirst(tree) {
		if i >= chatTurns {
			out.Hidden = len(tree) - chatTurns
			break
		}
		turn := chatTurn(d, story)
		if card, ok := cards[d.ApprovalID]; ok {
			turn.Cards = []view.ChatCard{p.chatCard(f, card)}
			if card.State == approval.Approved {
				turn.Cards[0].LandProblem = d.Work.Problem
			}
			if turn.Says == "" && card.IsPatch() {
				turn.Says = card.Revision.Text
			}
		}
		for _, r := range asks[d.ID] {
			turn.Cards = append(turn.Cards, p.chatCard(f, r))
		}
		out.Turns = append(out.Turns, turn)
	}
	sayOnce(out.Turns)
	if root.Error != nil && (root.State == orchestrator.Failed || root.State == orchestrator.Expired) { // of the others the cards and the state say it
		out.Failure = &views.Failure{Where: root.To, Code: root.Error.Code, What: root.Error.Message}
	}
	return out, nil
}

// cardsOf reads the requests of a tree, by id.
func (p *Pages) cardsOf(f *handlers.Frame, tree []orchestrator.Delegation) (map[string]approval.Request, error) {
	cards := map[string]approval.Request{}
	if !f.Who.Has(people.ApprovalsRead) && !f.Who.Has(people.TasksWrite) {
		return cards, nil
	}
	for _, d := range tree {
		if d.ApprovalID == "" || len(cards) >= chatTurns {
			continue
		}
		r, err := p.Requests.Request(f.Ctx, d.ApprovalID)
		if err != nil {
			return nil, err
		}
		cards[r.ID] = r
	}
	return cards, nil
}

// chatAsks is how many calls and questions of a task its message shows, the newest ones.
const chatAsks = 12

// asksOf reads the calls and questions that a story tells of, by delegation and oldest first,
// as far as the reader may know of them.
func (p *Pages) asksOf(f *handlers.Frame, story []event.Event) (map[string][]approval.Request, error) {
	var ids []string
	for _, e := range story {
		if said, ok := e.Payload().(event.RequestedData); ok && handlers.AsksPeople(e) && !slices.Contains(ids, said.ApprovalID) {
			ids = append(ids, said.ApprovalID)
		}
	}
	asks := map[string][]approval.Request{}
	for _, id := range ids[max(0, len(ids)-chatAsks):] {
		r, err := p.Requests.Request(f.Ctx, id)
		if err != nil {
			return nil, err
		}
		if f.Who.Has(people.ApprovalsRead) || handlers.OwnQuestion(f.Who, r) {
			asks[r.DelegationID] = append(asks[r.DelegationID], r)
		}
	}
	return asks, nil
}

// depthFirst orders a tree as a conversation reads: each agent before those it handed to.
func depthFirst(tree []orchestrator.Delegation) []orchestrator.Delegation {
	below := map[string][]orchestrator.Delegation{}
	for _, d := range tree {
		below[d.ParentID] = append(below[d.ParentID], d)
	}
	var out []orchestrator.Delegation
	var walk func(parent string)
	walk = func(parent string) {
		for _, d := range below[parent] {
			out = append(out, d)
			walk(d.ID)
		}
	}
	walk("")
	return out
}

// chatTurn is what one delegation did, by the events that name it.
func chatTurn(d orchestrator.Delegation, story []event.Event) view.ChatTurn {
	turn := view.ChatTurn{ID: d.ID, Agent: d.To, At: handlers.At(d.StartedAt), Until: handlers.At(d.EndedAt), State: string(d.State)}
	if d.Result != nil {
		turn.Says = strings.TrimSpace(d.Result.Text)
	}
	for _, e := range story {
		if e.DelegationID != d.ID {
			continue
		}
		switch p := e.Payload().(type) {
		case event.DelegatedData:
			turn.Hops = append(turn.Hops, view.ChatHop{To: p.To, ID: p.Child})
		case event.DelegationRefusedData:
			turn.Hops = append(turn.Hops, view.ChatHop{To: p.To, Refused: p.Message})
		case event.ProgressData, event.PatchRejectedData, event.StaleData, event.WithdrawnRightData, event.OvertakenData:
			for line := range strings.Lines(handlers.ChatText(e)) { // one event may carry several
				if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
					turn.Steps = append(turn.Steps, view.ChatStep{Text: line, At: e.At})
				}
			}
		case event.MessageCompletedData:
			if turn.Says == "" || strings.TrimSpace(p.Text) != turn.Says { // the answer is shown whole
				turn.Steps = append(turn.Steps, view.ChatStep{Text: handlers.EventLine(e), At: e.At})
			}
		case event.ToolCompletedData:
			if turn.Says == "" || strings.TrimSpace(p.Text) != turn.Says {
				turn.Steps = append(turn.Steps, view.ChatStep{Text: handlers.EventLine(e), At: e.At})
			}
		case event.MessageSentData:
			turn.Told = append(turn.Told, view.ChatTold{From: e.Actor, ChatStep: view.ChatStep{Text: p.Text, At: e.At}})
		case event.ChangesRequestedData:
			turn.Changes = append(turn.Changes, view.ChatStep{Text: handlers.ChatText(e), At: e.At})
		case event.RequestedData:
			if turn.Until.IsZero() { // the agent's part is over; people take theirs
				turn.Until = e.At
			}
		case event.AcknowledgedData:
			if p.Attempt > 1 && d.EndedAt == nil {
				turn.Until = handlers.At(nil)
			}
		}
	}
	if n := len(turn.Steps) - chatSteps; n > 0 {
		turn.Before, turn.Steps = n, turn.Steps[n:]
	}
	return turn
}

// sayOnce leaves an answer out where a caller only passes on what one below has said.
func sayOnce(turns []view.ChatTurn) {
	said := map[string]bool{}
	for i := len(turns) - 1; i >= 0; i-- { // those below come later
		if said[turns[i].Says] {
			turns[i].Says = ""
		}
		said[turns[i].Says] = true
	}
}

// chatCard is a request as a card of the chat, without its change.
func chatCard(f *handlers.Frame, r approval.Request) view.ChatCard {
	card := view.ChatCard{ApprovalRow: f.ApprovalRow(r), TaskID: r.TaskID, Digest: r.Revision.Digest, Revision: r.Revision.N, By: r.Requester, Says: r.Revision.Text}
	if !r.IsPatch() {
		card.Asks, card.Says = handlers.AsksInCard(r), ""
	}
	card.Call, card.ForTask = r.IsAction(), grantedBy(r)
	card.RevokedBy, _ = r.Revoked()
	if r.State != approval.Pending {
		card.DecidedAt = handlers.At(r.DecidedAt)
		if d, verb := decisive(r); verb != "" {
			card.DecidedBy, card.Verb, card.Channel, card.Reason, card.DecidedAt = d.User+event.Prefixed(" for ", d.For), verb, d.Channel, d.Comment, d.At
		}
		return card
	}
	if r.IsQuestion() {
		question(f, r, &card)
		return card
	}
	if scope, ok := r.Scope(); ok {
		card.Scope = scope.String()
	}
	card.TooFew = f.Voters.TooFew(r)
	card.CanReject = f.Voters.May(f.Who.Principal, r, approval.Reject) == nil
	may := f.Voters.May(f.Who.Principal, r, approval.Approve)
	if card.WhyNot = whyNotOnCard(r); may != nil {
		card.WhyNot = may.Message
	}
	if o := r.Overtaken(); o != "" {
		card.WhyNot = cmp.Or(card.WhyNot, o)
		card.Renews = views.BranchName(r.Revision.Base.Branch)
		if may == nil {
			card.WhyNot = o
		}
	}
	card.CanApprove = card.WhyNot == ""
	return card
}

// question is what a card of a question offers: it is answered where it is read.
func question(f *handlers.Frame, r approval.Request, card *view.ChatCard) {
	card.Asks, card.Choices = r.Question.Text, r.Question.Choices
	card.CanReject = f.Voters.May(f.Who.Principal, r, approval.Reject) == nil
	refused := f.Voters.May(f.Who.Principal, r, approval.Respond)
	if card.CanAnswer = refused == nil; refused != nil {
		card.WhyNot = refused.Message
	}
}

// grantedBy reports whether every yes to a call is for the rest of its task.
func grantedBy(r approval.Request) bool {
	yes := r.Yes()
	return len(yes) > 0 && !slices.ContainsFunc(yes, func(d approval.Decision) bool { return !d.ForTask })
}

func reasonWords(codes []string) string {
	var words []string
	for _, code := range codes {
		if code == approval.ReasonCut {
			words = append(words, "it is too long for a card")
			continue
		}
		words = append(words, views.WarningName(code))
	}
	return strings.Join(words, ", ")
}

// decisive is the decision that a request's state comes from, with what the person
// did; the word is "" where nobody decided.
func decisive(r approval.Request) (approval.Decision, string) {
	verdict, verb := approval.Approve, "approved"
	switch r.State {
	case approval.Rejected:
		verdict, verb = approval.Reject, "rejected"
	case approval.Answered:
		verdict, verb = approval.Respond, "answered"
	case approval.ChangesRequested, approval.Superseded:
		verdict, verb = approval.RequestChanges, "requested changes"
	case approval.Cancelled, approval.Expired:
		return approval.Decision{}, ""
	}
	for i := len(r.Decisions) - 1; i >= 0; i-- {
		if d := r.Decisions[i]; d.Verdict == verdict {
			return d, verb + d.Anew()
		}
	}
	return approval.Decision{}, ""
}
