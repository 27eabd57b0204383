package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// landings is the gate's part in landings at one moment: who has which rights.
type landings struct {
	g *Gateway
	c Config
	e Electorate
}

var _ orchestrator.Landings = landings{}

// Landings reads who may decide now, for the landing that is about to write its intent. On
// a node whose rules are not those in force it is an error: it lands nothing.
func (g *Gateway) Landings(ctx context.Context) (orchestrator.Landings, error) {
	switch refused, err := g.Behind(ctx); {
	case err != nil:
		return nil, err
	case refused != nil:
		return nil, refused
	}
	e, err := g.Electorate(ctx)
	if err != nil {
		return nil, err
	}
	return landings{g, g.Config(), e}, nil
}

// Stand returns whose yeses to the order count now. Where too few do, nothing may land:
// the request is a question again, its delegation waits for people, and an event says
// whose yes no longer counts and why; names is nil then.
func (l landings) Stand(ctx context.Context, tx orchestrator.Tx, d *orchestrator.Delegation, o orchestrator.Order) (names []string, err error) {
	t, ok := tx.(Tx)
	if !ok {
		return nil, errForeignTx
	}
	r, err := t.Request(ctx, o.RequestID)
	if err != nil {
		return nil, err
	}
	if r.State != Approved || r.Revision.Digest != o.Digest {
		return nil, fmt.Errorf("request %s is %s at digest %.12s and not approved at %.12s", r.ID, r.State, r.Revision.Digest, o.Digest)
	}
	e := l.e.at(tx.Now(), l.c.Location)
	if refused, err := l.c.renew(ctx, t, r, e); err != nil {
		return nil, err
	} else if refused != nil {
		return nil, refused // it waits, with the approval standing
	}
	names = []string{}
	for _, y := range e.yes(*r) {
		names = append(names, y.User)
	}
	if len(names) >= r.Rule.Need {
		return names, nil
	}
	return nil, l.askAgain(ctx, t, r, d, e)
}

// askAgain takes an approval back whose yeses have become too few.
func (l landings) askAgain(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, e Electorate) error {
	if err := reopen(ctx, tx, l.c, r, e); err != nil {
		return err
	}
	d.Work.Land, d.Work.Problem = nil, ""
	tx.OnCommit(l.g.look)
	return orchestrator.AwaitApproval(ctx, tx, d, r.ID)
}

// reopen makes a question again of a request whose yeses have become too few.
func reopen(ctx context.Context, tx Tx, c Config, r *Request, e Electorate) error {
	lost := e.lostRights(*r)
	r.setState(Pending)
	r.DecidedAt = nil
	if r.overdue(tx.Now()) { // it was decided in time; there is as long again for the next yes
		r.ExpiresAt = nil
		if c.Expires > 0 {
			r.ExpiresAt = new(tx.Now().Add(c.Expires))
		}
	}
	if err := endLost(ctx, tx, r, e); err != nil {
		return err
	}
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	for _, card := range cardsFor(*r, c.Channels, e.voters(*r)) {
		card.RequestID, card.DueAt = r.ID, tx.Now()
		if err := tx.EnsureCard(ctx, card); err != nil {
			return err
		}
	}
	said := event.WithdrawnRightData{About: r.about(), Lost: lost, Have: len(e.yes(*r)), Need: r.Rule.Need, Message: lostWords(lost, r.subject().unasked(*r))}
	return tx.Append(ctx, r.event("gatehouse", said))
}

// endedBy is who ends a yes whose person has lost the right.
const endedBy = "gatehouse"

// Ends reports whether d ends yes, whose person had lost the right by then. It is no verdict
// of theirs.
func (d Decision) Ends(yes Decision) bool {
	return d.Verdict == Withdraw && d.UserID == "" && d.ForID != "" && d.ForID == yes.UserID
}

// endLost ends for good the yeses that do not count now. Whoever is given the right back has
// not said yes again, and may: else a request had all its yeses and landed on none of them.
func endLost(ctx context.Context, tx Tx, r *Request, e Electorate) error {
	counts := e.yes(*r)
	for _, d := range r.yes() {
		if d.UserID == "" || slices.ContainsFunc(counts, func(o Decision) bool { return o.ID == d.ID }) {
			continue
		}
		end := Decision{ID: orchestrator.NewID(orchestrator.DecisionPrefix, tx.Now()), Revision: r.Revision.N, User: endedBy, Channel: origin.Rule, Verdict: Withdraw,
			Comment: d.By().String() + " " + e.whyLost(d, *r), Digest: r.Revision.Digest, ForID: d.UserID, For: d.User, At: r.after(tx.Now())}
		if err := tx.InsertDecision(ctx, r.ID, end); err != nil {
			return err
		}
		if !slices.ContainsFunc(r.Decisions, func(o Decision) bool { return o.ID == end.ID }) { // r may be the store's own
			r.Decisions = append(r.Decisions, end)
		}
	}
	return nil
}

// LostRight is a yes that no longer counts.
type LostRight struct {
	User string `json:"user"` // with whom they stood in for
	Why  string `json:"why"`  // "is disabled"
}

// lostRights lists the yeses to the current revision that do not count now.
func (e Electorate) lostRights(r Request) []LostRight {
	lost := []LostRight{}
	counts := e.yes(r)
	for _, d := range r.yes() {
		if slices.ContainsFunc(counts, func(o Decision) bool { return o.ID == d.ID }) {
			continue
		}
		lost = append(lost, LostRight{User: d.By().String(), Why: e.whyLost(d, r)})
	}
	return lost
}

// whyLost says why a yes does not count now, after the name of who gave it.
func (e Electorate) whyLost(d Decision, r Request) string {
	u, seat := e.known(d.UserID), e.known(d.seat())
	bar := e.barred(u, r)
	if bar == nil {
		bar = e.barred(seat, r)
	}
	switch {
	case d.UserID == "":
		return "passes this no more"
	case u.ID == "":
		return "is no user any more"
	case u.Disabled:
		return "is disabled"
	case !Approves(u):
		return "has no role approver any more"
	case seat.ID == "" || !Approves(seat):
		return "stood in for " + d.For + ", who may not decide any more"
	case !e.votes(seat, r):
		return "is not in " + policy.Join(r.Rule.From, "or") + " any more"
	case bar != nil:
		return bar.did(false) + ", so somebody else must approve it"
	default:
		return "has a yes that counts with another one only once"
	}
}

// known is the person with this id; without id where there is none.
func (e Electorate) known(id string) people.User {
	for _, u := range e.users {
		if id != "" && u.ID == id {
			return u
		}
	}
	return people.User{}
}

// lostWords is the sentence for people; unasked is what did not happen.
func lostWords(lost []LostRight, unasked string) string {
	if len(lost) == 0 {
		return "The approvals no longer suffice, so " + unasked + ". Another approver must say yes."
	}
	who := each.Of(lost, func(l LostRight) string { return l.User + " " + l.Why })
	does := "approval of it does"
	if len(lost) > 1 {
		does = "approvals of it do"
	}
	return fmt.Sprintf("%s, so that %s not count any more. %s; another approver must say yes.", strings.Join(who, "; "), does, strings.ToUpper(unasked[:1])+unasked[1:])
}
