package approval

import (
	"cmp"
	"context"
	"strings"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// subject is what differs between the kinds of what people are asked: which verdicts there
// are, what they mean for the delegation, which rules hold, and what is said of it.
type subject interface {
	// takes refuses a verdict that cannot be said about it.
	takes(r Request, b Ballot) *orchestrator.Error
	// allow, refuse and expire carry out the end of r; names are those whose yes it was. recall
	// carries out that a yes is taken back which had ended it.
	allow(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, names []string) error
	refuse(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision) error
	expire(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation) error
	recall(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation) error
	// ruleNow is what the rules in force say of r; changed is not set where they are those
	// under which people were asked.
	ruleNow(ctx context.Context, tx Tx, c Config, r *Request) (rule policy.Rule, changed bool, err error)
	// requested adds to the event of the question what others do not have.
	requested(r *Request, said *event.RequestedData)
	asker(r *Request) string  // the agent that asks
	target(r Request) string  // see Request.Target
	unasked(r Request) string // what it means that nobody said yes, within a sentence
	whose(r Request) string   // begins "… approved on the web"
}

// subject is how r is dealt with by what it asks.
func (r *Request) subject() subject {
	switch {
	case r.IsHandover():
		return handover{}
	case r.IsAction():
		return action{}
	case r.IsQuestion():
		return question{}
	}
	return change{}
}

// IsPatch reports whether r asks about a change that would land.
func (r Request) IsPatch() bool { return !r.IsHandover() && !r.IsAction() && !r.IsQuestion() }

// Takes reports whether there is such a verdict on what r asks. An edit of a patch comes with
// files, and is no plain verdict.
func (r Request) Takes(v Verdict) bool {
	switch v {
	case Approve:
		return !r.IsQuestion()
	case RequestChanges, Renew:
		return r.IsPatch()
	case Edit:
		return r.IsAction()
	case Respond:
		return r.IsQuestion()
	}
	return true
}

// Target names what a request is for: the branch on which its patch lands, or what the
// files of its hand-over are compared with, which may be "the tag v1"; no branch has a blank
// in its name. "" where no files travel, and where an older version knew no branch.
func (r Request) Target() string { return r.subject().target(r) }

// Whole is all that is asked, as one text, where that is no change of files; "" else.
func (r Request) Whole() string {
	switch {
	case r.IsHandover():
		return r.Handover.Whole()
	case r.IsAction():
		return r.actionText()
	case r.IsQuestion():
		return r.questionText()
	}
	return ""
}

// change is a patch: a yes lands it.
type change struct{}

func (change) takes(_ Request, b Ballot) *orchestrator.Error { return onlyAboutAsks(b) }

// onlyAboutAsks refuses what is said of calls and questions only.
func onlyAboutAsks(b Ballot) *orchestrator.Error {
	switch {
	case b.Verdict == Respond:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Nobody asks for an answer here. Approve it, or reject it.")
	case b.ForTask || b.Input != nil:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "A scope and an input go with calls of tools only.")
	}
	return nil
}

func (change) allow(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, names []string) error {
	return orchestrator.OrderLanding(ctx, tx, d, r.order(names))
}

func (change) refuse(ctx context.Context, tx Tx, _ *Request, d *orchestrator.Delegation, dec Decision) error {
	return orchestrator.Reject(ctx, tx, d, dec.User, dec.Comment)
}

func (change) expire(ctx context.Context, tx Tx, _ *Request, d *orchestrator.Delegation) error {
	return orchestrator.Expire(ctx, tx, d)
}

func (change) recall(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation) error {
	d.Work.Land, d.Work.Problem = nil, ""
	return orchestrator.AwaitApproval(ctx, tx, d, r.ID)
}

func (change) ruleNow(_ context.Context, _ Tx, c Config, r *Request) (policy.Rule, bool, error) {
	if r.Rule.Version == c.Policy.Version() {
		return r.Rule, false, nil
	}
	return c.rule(r, r.Revision.At).Rule, true, nil
}

func (change) requested(*Request, *event.RequestedData) {}

func (change) asker(r *Request) string { return r.Agent }

func (change) target(r Request) string { return r.Revision.Base.Branch }

func (change) unasked(Request) string { return "nothing landed" }

func (change) whose(r Request) string { return r.Agent + "'s changes are" }

// handover is work that would be handed on: a yes makes its child queued (H18).
type handover struct{}

func (handover) takes(r Request, b Ballot) *orchestrator.Error {
	if b.Files != nil || b.Verdict == RequestChanges || b.Verdict == Edit {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "This asks whether %s may hand work to %s, so there is nothing to change or to choose in it. Approve it, or reject it with a reason.",
			r.Handover.From, r.Handover.To)
	}
	return onlyAboutAsks(b)
}

func (handover) allow(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, names []string) error {
	return orchestrator.AllowHandover(ctx, tx, d, *r.Handover, strings.Join(names, ", "))
}

func (handover) refuse(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision) error {
	if err := orchestrator.RefuseHandover(ctx, tx, d, dec.User, dec.Comment); err != nil || r.Rule.OnNo != policy.EndTask {
		return err
	}
	return orchestrator.EndWith(ctx, tx, d, dec.User)
}

func (handover) expire(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation) error {
	if err := orchestrator.ExpireHandover(ctx, tx, d); err != nil || r.Rule.OnNo != policy.EndTask {
		return err
	}
	return orchestrator.EndWith(ctx, tx, d, "gatehouse")
}

func (handover) recall(ctx context.Context, tx Tx, _ *Request, d *orchestrator.Delegation) error {
	return orchestrator.RecallHandover(ctx, tx, d)
}

func (handover) ruleNow(ctx context.Context, tx Tx, c Config, r *Request) (policy.Rule, bool, error) {
	if c.Handovers == nil || r.Rule.Version == c.Handovers.Version() {
		return r.Rule, false, nil
	}
	child, err := tx.Delegation(ctx, r.DelegationID)
	if err != nil {
		return r.Rule, false, err
	}
	f := handoverFacts(tx.Task(), child, orchestrator.Handed{HandoverQuestion: *r.Handover}, r.Revision.At.In(c.Location))
	f.Files = policy.PatchFactsOf(r.Revision.Files, r.Revision.Added, r.Revision.Removed).Files
	ruling, _ := c.Handovers.Rule(f, true) // it was asked
	ruling.Rule.From, ruling.Rule.OnNo = c.from(ruling.Rule, r.Repository), cmp.Or(ruling.Rule.OnNo, c.OnNo)
	return ruling.Rule, true, nil
}

// requested says what is handed over.
func (handover) requested(r *Request, said *event.RequestedData) {
	q := r.Handover
	if q.Tree != "" {
		said.Tree, said.Base, said.FilesHash = event.Given(q.Tree), event.Given(q.BaseCommit), event.Given(q.FilesHash)
	}
	said.To, said.Title = event.Given(q.To), event.Given(orchestrator.Title(r.Title))
}

func (handover) asker(r *Request) string { return r.Handover.From }

func (handover) target(r Request) string {
	if !r.Travels() {
		return ""
	}
	return r.Handover.Place()
}

func (handover) unasked(r Request) string { return r.Handover.To + " was not asked to work" }

func (handover) whose(r Request) string { return "Work for " + r.Agent + " is" }
