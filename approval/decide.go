package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// Decide takes one verdict. The first decision wins: the decision, the state of the
// request, the next state of its delegation, the events and the cards are one
// transaction under the task's row, and whoever comes later is told who decided
// what. It returns the request as it stands afterwards, or an *orchestrator.Error
// and then nothing was stored, except that the refusal is in the history, and that a
// deadline that has passed is carried out.
func (g *Gateway) Decide(ctx context.Context, b Ballot) (Request, error) {
	b = b.renewed()
	if refused := b.check(); refused != nil {
		return Request{}, refused
	}
	for {
		if r, err := g.decide(ctx, b); !errors.Is(err, errDrafts) { // else they are read again
			g.recordRefusal(ctx, b, r, err)
			return r, err
		}
	}
}

// decide is Decide for a ballot that is well formed.
func (g *Gateway) decide(ctx context.Context, b Ballot) (Request, error) {
	r, e, err := g.asked(ctx, b.RequestID)
	if err != nil {
		return Request{}, err
	}
	if err := g.complete(ctx, &b, r); err != nil {
		return r, err
	}
	// What is refused already as committed needs no lock: with many deciders at once
	// most of them end here. The decisions may be newer than the state that was read
	// with them, so what they say of an open question is judged under the lock.
	refused := judge(e, r, b, g.now(), g.Config().Location)
	if refused != nil && !r.overdue(g.now()) && (r.State != Pending || refused.Code != orchestrator.CodeAlreadyDecided) {
		return r, g.changedSince(ctx, r, b, refused)
	}
	if refused := g.stays(ctx, r, b); refused != nil {
		return r, refused
	}
	todo, err := g.prepare(ctx, r, &b)
	if err != nil {
		return r, err
	}
	if todo.remade != nil || todo.feedback != nil { // git took its time, in which somebody may have lost the right
		if e, err = g.Electorate(ctx); err != nil {
			return r, err
		}
	}
	after, refused, err := g.decideNow(ctx, e, r, b, todo)
	var known *orchestrator.Error
	switch {
	case errors.As(err, &known):
		return r, known
	case err != nil:
		return r, err
	case refused != nil:
		return after, g.changedSince(ctx, after, b, refused)
	}
	if todo.remade != nil {
		g.trace("revised")
	}
	if after.IsHandover() && after.State == Approved {
		g.trace("handed on")
	}
	return after, nil
}

// decideNow counts the ballot on the request as it is under the lock, r having been read
// before, or says why it does not count. It returns the request as it stands afterwards.
func (g *Gateway) decideNow(ctx context.Context, e Electorate, r Request, b Ballot, todo prepared) (after Request, refused *orchestrator.Error, err error) {
	zone := g.Config().Location
	err = g.inTask(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil {
			return err
		}
		var denied *orchestrator.Error
		if b.Verdict == Approve && todo.remade == nil { // else the rules look at the tree that it makes
			if denied, err = g.Config().renew(ctx, tx, cur, e.at(tx.Now(), zone)); err != nil {
				return err
			}
		}
		if refused = judge(e, *cur, b, tx.Now(), zone); refused == nil {
			refused = denied
		}
		if refused == nil && (cur.Revision.Digest != r.Revision.Digest || cur.Revision.N != r.Revision.N) {
			refused = notShown(*cur)
		}
		switch {
		case cur.overdue(tx.Now()) && (refused == nil || refused.Code == orchestrator.CodeExpired):
			err = expire(ctx, tx, cur)
		case refused == nil:
			err = cast(ctx, tx, cur, e.at(tx.Now(), zone), b, todo)
		}
		after = *cur
		return err
	})
	return after, refused, err
}

// prepared is what a verdict needs of git. It is made before the transaction, which
// sees whether the digest is still the one that it was made of.
type prepared struct {
	feedback *agent.Feedback // with request_changes
	drafts   []Draft         // that are among the verdict's comments
	remade   *remade         // with edit, or a yes to some files
	config   Config          // in force; what a person makes of a call is judged by its rules
	// With a yes: what the branch does to it, where looked is true.
	overtaken *patch.Overtaken
	looked    bool
}

func (g *Gateway) prepare(ctx context.Context, r Request, b *Ballot) (prepared, error) {
	p := prepared{config: g.Config()}
	comments, drafts, err := g.remarks(ctx, r, *b)
	if err != nil {
		return p, err
	}
	b.Comments, p.drafts = comments, drafts
	if b.Verdict == RequestChanges {
		p.feedback, err = g.feedback(ctx, r, *b)
		return p, err
	}
	if p.remade, err = g.remake(ctx, r, b); err != nil {
		return p, err
	}
	p.overtaken, p.looked = g.overtaken(ctx, r, *b)
	if p.remade == nil {
		return p, nil
	}
	// Its rule is looked up anew, which only a node with the rules in force may do.
	switch refused, err := g.Behind(ctx); {
	case err != nil:
		return p, err
	case refused != nil:
		return p, refused
	}
	return p, nil
}

// feedback makes what the agent is given after "request changes".
func (g *Gateway) feedback(ctx context.Context, r Request, b Ballot) (*agent.Feedback, error) {
	f := &agent.Feedback{Comment: b.Comment, Comments: b.Comments, Revision: r.Revision.N, StartOver: b.StartOver}
	diff, err := g.diff(ctx, r)
	if err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "The diff of this revision could not be read, so the agent would not see what it had done. Nothing was stored. Try again. (%w)", err)
	}
	f.Diff = plain(cutDiff(diff)) + "\n"
	open, left, err := g.stillOpen(ctx, r, MaxComments-len(f.Comments))
	f.Comments = append(slices.Clip(f.Comments), open...)
	if left > 0 {
		f.Note = fmt.Sprintf("%d older open %s not told again here: there are too many, or they are too long.", left, plural(left, "comment is", "comments are"))
	}
	return f, err
}

// maxDiff is how many bytes of the diff an agent is given again. It stands in the row of
// its delegation, and a binary file's may be a hundred times as long.
const maxDiff = 1 << 20

// cutDiff is the diff, or its first lines with a word about the rest.
func cutDiff(diff string) string {
	if len(diff) <= maxDiff {
		return diff
	}
	head := diff[:maxDiff]
	if i := strings.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i+1]
	}
	return fmt.Sprintf("%s… cut here: %d more bytes of the diff are not shown", head, len(diff)-len(head))
}

// cast stores a verdict that counts and does what follows from it.
func cast(ctx context.Context, tx Tx, r *Request, e Electorate, b Ballot, p prepared) error {
	d, err := tx.Delegation(ctx, r.DelegationID)
	if err != nil {
		return err
	}
	dec := Decision{
		ID: orchestrator.NewID(orchestrator.DecisionPrefix, tx.Now()), Revision: r.Revision.N,
		UserID: b.Principal.User.ID, User: b.Principal.Name(), Channel: b.Channel, Verdict: b.Verdict,
		Comment: b.Comment, Digest: r.Revision.Digest, At: r.after(tx.Now()), Seen: b.Seen, Files: b.Files, Comments: b.Comments, StartOver: b.StartOver, ForTask: b.ForTask,
	}
	dec.ForID, dec.For = e.inPlaceOf(b.Principal.User, *r)
	if err := takeDrafts(ctx, tx, dec.UserID, r.ID, b, p.drafts); err != nil {
		return err
	}
	if p.remade != nil {
		return revise(ctx, tx, r, d, dec, *p.remade)
	}
	switch b.Verdict {
	case Respond:
		dec.Comment = b.answered()
		return respond(ctx, tx, r, d, dec)
	case Edit:
		return editAction(ctx, tx, p.config, e, r, d, dec, b.Input)
	case Approve:
		if p.looked && !same(r.Revision.Overtaken, p.overtaken) {
			if err := overtake(ctx, tx, r, p.overtaken); err != nil {
				return err
			}
		}
		return approve(ctx, tx, r, d, dec, e)
	case Reject:
		return reject(ctx, tx, r, d, dec)
	case RequestChanges:
		return requestChanges(ctx, tx, r, d, dec, orchestrator.Again{Feedback: p.feedback, Asked: b.asked(dec.User, r.Revision.N)})
	default:
		return withdraw(ctx, tx, r, d, dec)
	}
}

// after is now, or just after the newest decision where another node's clock is
// ahead: what a withdrawal takes back is told by the order of times.
func (r *Request) after(now time.Time) time.Time {
	for _, d := range r.Decisions {
		if !d.At.Before(now) {
			now = d.At.Add(time.Microsecond)
		}
	}
	return now
}

// approve counts one yes; the last one that is needed orders the landing.
func approve(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision, e Electorate) error {
	if err := endLost(ctx, tx, r, e); err != nil {
		return err
	}
	last := len(e.yes(*r))+1 >= r.Rule.Need
	if last {
		r.end(Approved, tx.Now())
	}
	if err := saveWith(ctx, tx, r, dec); err != nil {
		return err
	}
	if !last {
		return nil
	}
	names := each.Of(e.yes(*r), func(y Decision) string { return y.User })
	return r.subject().allow(ctx, tx, r, d, names)
}

// reject ends the request and its delegation.
func reject(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision) error {
	r.end(Rejected, tx.Now())
	if err := saveWith(ctx, tx, r, dec); err != nil {
		return err
	}
	return r.subject().refuse(ctx, tx, r, d, dec)
}

// requestChanges ends the revision and lets the agent go on from it, or begin anew; the
// request goes on with what it proposes next.
func requestChanges(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision, again orchestrator.Again) error {
	r.end(ChangesRequested, tx.Now())
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	again.Revision, again.StartOver = r.Revision.N+1, again.Feedback.StartOver
	err := record(ctx, tx, r, dec, func(v event.Verdict) event.Payload {
		return event.ChangesRequestedData{Verdict: v, StartOver: again.StartOver}
	})
	if err != nil {
		return err
	}
	return orchestrator.AskAgain(ctx, tx, d, again, dec.User)
}

// withdraw takes one's own yes back. One that had ordered the landing parks the
// delegation again, unless the landing has written its intent.
func withdraw(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision) error {
	landing := r.State == Approved
	if landing && d.Work.Land != nil && d.Work.Land.Intent != nil {
		return orchestrator.Errorf(orchestrator.CodeLanding, "This change is being landed on %s now, so your approval cannot be withdrawn any more. Revert it once it has landed.", r.Revision.Base.Branch)
	}
	if landing {
		r.setState(Pending)
		r.DecidedAt = nil
	}
	if err := saveWith(ctx, tx, r, dec); err != nil {
		return err
	}
	if !landing {
		return nil
	}
	return r.subject().recall(ctx, tx, r, d)
}
