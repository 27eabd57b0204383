package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// Ask puts a checked tree before people, or lets a rule decide, in one transaction
// with the delegation's next state. A delegation whose request was asked to change,
// or went stale, gets the next revision of that request; the digests of earlier
// revisions are dead from then on. Asked again with the same digest it makes
// nothing new. ErrLost means that d has moved on since it was read.
func (g *Gateway) Ask(ctx context.Context, d orchestrator.Delegation, p orchestrator.Proposal) error {
	c := g.Config()
	e, err := g.Electorate(ctx)
	if err != nil {
		return err
	}
	undone, err := g.undone(ctx, d)
	if err != nil {
		return err
	}
	return g.inTask(ctx, d.TaskID, func(tx Tx) error {
		return ask(ctx, tx, c, e, d, p, undone)
	})
}

// undone are the owners that the request knew of which d undoes. The engine has them, too,
// but not of work of before it recorded them.
func (g *Gateway) undone(ctx context.Context, d orchestrator.Delegation) ([]Party, error) {
	if d.Work.Reverts == "" {
		return nil, nil
	}
	r, err := g.store.Request(ctx, d.Work.Reverts)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(r.Lineage), func(p Party) bool { return p.Agent == "" && p.Trigger == "" }), err
}

// ask is Ask inside its transaction.
func ask(ctx context.Context, tx Tx, c Config, e Electorate, d orchestrator.Delegation, p orchestrator.Proposal, undone []Party) error {
	cur, err := tx.Delegation(ctx, d.ID)
	if err != nil {
		return err
	}
	r, err := requestOf(ctx, tx, cur)
	if err != nil {
		return err
	}
	if cur.State != orchestrator.Checking || cur.Attempt != d.Attempt {
		if r != nil && r.Revision.Digest == p.Digest && (cur.State == orchestrator.AwaitingApproval || cur.State == orchestrator.Landing) {
			return nil
		}
		return fmt.Errorf("asking for %s: %w", d.ID, orchestrator.ErrLost)
	}
	if r != nil && r.State == Pending && r.Revision.Digest == p.Digest {
		return orchestrator.AwaitApproval(ctx, tx, cur, r.ID)
	}
	r, was, err := nextRevision(ctx, tx, r, cur, p)
	if err != nil {
		return err
	}
	if err := markUnseen(ctx, tx, r); err != nil {
		return err
	}
	r.Mode = c.strictestMode(r.Revision.agents(r.Agent))
	r.Lineage = c.lineage(e, r, cur.Lineage().With(p.Lineage), undone...)
	r.Revision.promote(c.Careful)
	taken, err := tx.Configuration(ctx)
	if err != nil {
		return err
	}
	// A pass by rule is a decision, and so is a yes that is carried here from the revision
	// before: a node with older rules, or older checks, makes none.
	older, made := c.behind(taken, tx.Now()) != nil, cur.Work.Made
	if older {
		made = nil
	}
	ruling := c.ruleOf(r, tx.Now(), older)
	r.open(ruling, c.Expires, tx.Now())
	r.begin(c, tx.Now())
	cur.ApprovalID = r.ID
	if ruling.Deny || ruling.Pass() {
		return decideByRule(ctx, tx, r, cur, ruling)
	}
	yes := carried(e, r, was, made, tx.Now(), c.Location)
	if err := put(ctx, tx, r, cardsFor(*r, c.Channels, e.voters(*r))); err != nil {
		return err
	}
	if yes != nil {
		return count(ctx, tx, r, cur, *yes, e.at(tx.Now(), c.Location))
	}
	return orchestrator.AwaitApproval(ctx, tx, cur, r.ID)
}

// nextRevision makes p the next revision of r, or a request of its own where r takes no more;
// was is the revision before.
func nextRevision(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, p orchestrator.Proposal) (next *Request, was Revision, err error) {
	if r == nil || !r.revisable() {
		return newRequest(d, tx.Task(), p, tx.Now()), was, nil
	}
	if err := supersede(ctx, tx, r); err != nil {
		return nil, was, err
	}
	was = r.Revision
	r.Revision = revisionOf(p, was.N+1, was.Tree, tx.Now())
	r.Revision.madeBy(d.Work.Made)
	if was.Tree == p.Tree && r.Revision.Editor == nil {
		r.Revision.Editor = was.Editor // an agent that was told to make what they wrote
	}
	return r, was, nil
}

// ruleOf is what holds for r, with the warnings that come of it; a node with older rules
// lets nothing pass.
func (c Config) ruleOf(r *Request, now time.Time, older bool) policy.Ruling {
	ruling := c.rule(r, now)
	if older && ruling.Pass() {
		ruling = c.byPeople(ruling, fmt.Sprintf("Rule %q of a node that has not the rules in force passes no change, so people decide.", ruling.Rule.Name))
		ruling.Rule.From = c.from(ruling.Rule, r.Repository)
	}
	r.Revision.warnOfRules(ruling.Notes)
	if ruling.Rule.Need > 1 && slices.Contains(c.Careful, CarefulNeedTwo) {
		r.Revision.Warnings = append(r.Revision.Warnings, needsTwo(ruling.Rule))
	}
	return ruling
}

// requestOf reads the newest request of a delegation, nil when it has none.
func requestOf(ctx context.Context, tx Tx, d *orchestrator.Delegation) (*Request, error) {
	if d.ApprovalID == "" {
		return nil, nil
	}
	r, err := tx.Request(ctx, d.ApprovalID)
	if errors.Is(err, orchestrator.ErrNotFound) || err == nil && !r.IsPatch() { // the patch is another question
		return nil, nil
	}
	return r, err
}

// revisable reports whether the next tree of the same delegation is a revision of
// r, so that the delegation's end ends r, too. After any other end, such as a no that was
// followed by a retry, it is a new request.
func (r *Request) revisable() bool {
	return slices.Contains([]State{Pending, Approved, ChangesRequested, Superseded, Stale}, r.State)
}

// supersede says that a further revision follows the current one of r.
func supersede(ctx context.Context, tx Tx, r *Request) error {
	if r.State == Superseded {
		return nil // told when a person made the next one
	}
	if r.State == Pending || r.State == Approved {
		r.Revision.State = Superseded
		if err := tx.SaveRequest(ctx, r); err != nil {
			return err
		}
	}
	return tx.Append(ctx, r.event(r.Agent, event.SupersededData{About: r.about(), By: r.Revision.N + 1}))
}

// newRequest makes the request for a delegation's first patch.
func newRequest(d *orchestrator.Delegation, t *orchestrator.Task, p orchestrator.Proposal, now time.Time) *Request {
	r := &Request{
		ID: orchestrator.NewID(orchestrator.RequestPrefix, now), TaskID: d.TaskID, DelegationID: d.ID,
		Kind: Patch, Agent: p.Agent, Title: orchestrator.Title(t.Text), Repository: p.Repository,
		RequesterID: t.RequesterID, Requester: t.Requester, Via: t.Via, Chain: d.Chain.Names(),
		CreatedAt: now, Revision: revisionOf(p, 1, "", now),
	}
	if len(r.Chain) == 0 {
		r.Chain = chain.Names{d.To}
	}
	if d.ParentID == "" {
		r.RevertOf = t.RevertOf
	}
	return r
}

func revisionOf(p orchestrator.Proposal, n int, previous string, now time.Time) Revision {
	v := Revision{
		N: n, Digest: p.Digest, Deliver: p.Deliver, Base: p.Base, Tree: p.Tree, Branch: p.Branch, Commit: p.Commit,
		Bundle: p.Bundle, Previous: previous, Text: p.Text, Checks: p.Checks, Sandbox: p.Sandbox, Authors: p.Lineage.Authors, At: now,
	}
	if p.Review != nil {
		v.Files, v.Added, v.Removed, v.Warnings = p.Review.Files, p.Review.Added, p.Review.Removed, p.Review.Warnings
		v.Notes = policy.AddNotes(v.Notes, p.Review.Notes)
	}
	v.Notes = policy.AddNotes(v.Notes, p.Notes)
	return v
}

// open makes r a question under the ruling.
func (r *Request) open(ruling policy.Ruling, expires time.Duration, now time.Time) {
	r.setState(Pending)
	r.Rule, r.DecidedAt, r.ExpiresAt, r.Landed = ruling.Rule, nil, nil, ""
	r.Revision.Notes, r.Revision.Shadow = policy.AddNotes(r.Revision.Notes, ruling.Notes), ruling.Shadow
	if ruling.Expires > 0 {
		expires = ruling.Expires
	}
	if expires > 0 {
		r.ExpiresAt = new(now.Add(expires))
	}
}

func (r *Request) setState(s State) { r.State, r.Revision.State = s, s }

// end sets a state in which no verdict is taken any more.
func (r *Request) end(s State, now time.Time) {
	r.setState(s)
	r.DecidedAt = &now
	if s != Approved { // a withdrawal makes it a question again, with what was due on it
		r.NextAt = nil
	}
}

// put writes a question that is new, or whose revision is, with its cards.
func put(ctx context.Context, tx Tx, r *Request, cards []Card) error {
	write := tx.SaveRequest
	if r.Revision.N == 1 {
		write = tx.InsertRequest
	}
	if err := write(ctx, r); err != nil {
		return err
	}
	for _, c := range cards {
		c.RequestID, c.DueAt = r.ID, tx.Now()
		if err := tx.EnsureCard(ctx, c); err != nil {
			return err
		}
	}
	said := event.RequestedData{About: r.about(), Rule: r.Rule.Name, Need: r.Rule.Need, From: r.Rule.From, Repository: r.Repository,
		Warnings: warningCodes(r.Revision)}
	if r.ExpiresAt != nil {
		said.ExpiresAt = r.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if r.IsPatch() || r.Travels() {
		said.Branch, said.Files = event.Given(r.Revision.Base.Branch), event.Given(len(r.Revision.Files))
		said.Added, said.Removed = event.Given(r.Revision.Added), event.Given(r.Revision.Removed)
	}
	r.subject().requested(r, &said)
	return tx.Append(ctx, r.event(r.subject().asker(r), said))
}

// decideByRule stores a request together with the rule's verdict on it. It shows
// in the inbox only: nobody has to act.
func decideByRule(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, ruling policy.Ruling) error {
	verdict, state := Approve, Approved
	if ruling.Deny {
		verdict, state = Reject, Rejected
	}
	r.end(state, tx.Now())
	r.ExpiresAt = nil
	if err := put(ctx, tx, r, []Card{{Channel: origin.Inbox}}); err != nil {
		return err
	}
	dec := Decision{ID: orchestrator.NewID(orchestrator.DecisionPrefix, tx.Now()), Revision: r.Revision.N,
		User: RuleActor + ruling.Rule.Name, Channel: "rule", Verdict: verdict, Digest: r.Revision.Digest, At: tx.Now()}
	if err := record(ctx, tx, r, dec, decided); err != nil {
		return err
	}
	if ruling.Deny {
		return orchestrator.Reject(ctx, tx, d, dec.User, "")
	}
	return orchestrator.OrderLanding(ctx, tx, d, r.order([]string{dec.User}))
}

// decided is the event of a verdict of which there is no more to say.
func decided(v event.Verdict) event.Payload { return event.DecidedData{Verdict: v} }

// saveWith writes r with a decision on it.
func saveWith(ctx context.Context, tx Tx, r *Request, d Decision) error {
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	return record(ctx, tx, r, d, decided)
}

// record writes a decision and its event.
func record(ctx context.Context, tx Tx, r *Request, d Decision, as func(event.Verdict) event.Payload) error {
	if err := tx.InsertDecision(ctx, r.ID, d); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Decisions, func(o Decision) bool { return o.ID == d.ID }) {
		r.Decisions = append(r.Decisions, d)
	}
	said := event.Verdict{About: r.about(), DecisionID: d.ID, Verdict: string(d.Verdict), Channel: d.Channel, State: string(r.State),
		Have: event.Given(len(r.yes())), Need: event.Given(r.Rule.Need), Seen: d.Seen, Comment: d.Comment, Files: d.Files, For: d.For}
	if len(d.Comments) > 0 {
		said.Comments = d.Comments
	}
	return tx.Append(ctx, r.event(d.User, as(said)))
}

func (r *Request) event(actor string, said event.Payload) event.Event {
	return event.Of(r.DelegationID, actor, said)
}

// about is the current revision of r in an event.
func (r *Request) about() event.About {
	a := event.About{ApprovalID: r.ID, Revision: r.Revision.N, Digest: r.Revision.Digest}
	if !r.IsPatch() {
		a.Kind = string(r.Kind)
	}
	return a
}

// order is what the yes orders to be landed.
func (r *Request) order(approvers []string) orchestrator.Order {
	v := r.Revision
	return orchestrator.Order{RequestID: r.ID, Revision: v.N, Digest: v.Digest, Base: v.Base, Tree: v.Tree, Commit: v.Commit,
		Bundle: v.Bundle, Deliver: v.Deliver, Approvers: approvers}
}

// factsOf collects the facts of the current revision of r, asked at the given local
// time. They come from what is stored, so that a rule tried on a past request sees what
// it would have seen.
func factsOf(r *Request, at time.Time) policy.Facts {
	v := r.Revision
	f := policy.Facts{
		Patch:    policy.PatchFactsOf(v.Files, v.Added, v.Removed),
		Unseen:   []string{},
		Warnings: warningCodes(v), Notes: []string{}, Checks: []policy.CheckFacts{},
		Agent: r.Agent, Chain: r.Chain, Requester: r.Requester, Repository: r.Repository, Branch: v.Base.Branch,
		Hour: at.Hour(), Weekday: strings.ToLower(at.Weekday().String()), Depth: max(len(r.Chain)-1, 0),
	}
	for _, x := range v.Files {
		if x.Unseen {
			f.Unseen = append(f.Unseen, x.Path)
		}
	}
	f.Agents, f.Owners, f.Sandboxes = v.agents(r.Agent), r.owners(), v.sandboxes()
	for _, n := range v.Notes {
		f.Notes = appendOnce(f.Notes, n.Code)
	}
	for _, c := range v.Checks {
		f.Checks = append(f.Checks, policy.CheckFacts{Command: c.Command, OK: c.OK})
	}
	return f
}
