package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
)

// Needs is how far a request is on its way to a yes.
type Needs struct {
	Count   int      // yeses that the rule asks for
	Have    int      // people who have said yes to this revision
	From    []string // groups; empty: every approver
	Missing []Voter  // those who could still say yes; empty once decided
}

// Electorate is who may decide, as it stands at one moment. It is a value: one
// serves a whole page of requests.
type Electorate struct {
	users    []people.User
	groups   map[string][]string
	fourEyes bool
	now      time.Time
}

// NewElectorate makes an electorate of these people at that time, which says who is out
// of office; its zone is that of times in answers.
func NewElectorate(users []people.User, groups map[string][]string, fourEyes bool, now time.Time) Electorate {
	return Electorate{users: users, groups: groups, fourEyes: fourEyes, now: now}
}

// at is the same people at another time.
func (e Electorate) at(now time.Time, zone *time.Location) Electorate {
	e.now = now.In(zone)
	return e
}

// Electorate reads who may decide now.
func (g *Gateway) Electorate(ctx context.Context) (Electorate, error) {
	users, err := g.users.Users(ctx)
	if err != nil {
		return Electorate{}, fmt.Errorf("reading who may decide: %w", err)
	}
	c := g.Config()
	return NewElectorate(users, c.Groups, c.FourEyes, g.now().In(c.Location)), nil
}

// Needs says how far r is on its way to a yes.
func (g *Gateway) Needs(ctx context.Context, r Request) (Needs, error) {
	e, err := g.Electorate(ctx)
	if err != nil {
		return Needs{}, err
	}
	return e.Needs(r), nil
}

// Needs says how far r is on its way to a yes.
func (e Electorate) Needs(r Request) Needs {
	n := Needs{Count: r.Rule.Need, Have: len(e.yes(r)), From: append([]string{}, r.Rule.From...), Missing: []Voter{}}
	if r.State == Pending {
		n.Missing = append(n.Missing, e.missing(r)...)
	}
	return n
}

// missing are those who could still say yes to the current revision, in order.
func (e Electorate) missing(r Request) []Voter {
	return each.Of(e.open(r), seat.voter)
}

// voters are those who could say yes to the current revision, with their accounts.
func (e Electorate) voters(r Request) []people.User {
	open := e.open(r)
	return slices.DeleteFunc(slices.Clone(e.users), func(u people.User) bool {
		return !slices.ContainsFunc(open, func(s seat) bool { return s.holder.ID == u.ID })
	})
}

// votes reports whether u is an approver of whom r's rule wants to hear.
func (e Electorate) votes(u people.User, r Request) bool {
	return Approves(u) && e.member(u, r.Rule.From)
}

func (e Electorate) member(u people.User, groups []string) bool {
	if len(groups) == 0 {
		return true
	}
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.groups[g], u.Name) })
}

// May returns nil when p has the right to give this verdict on r, whatever state r
// is in; else why not and who has it. Who has said yes may take it back as long as they
// are an approver.
func (e Electorate) May(p people.Principal, r Request, v Verdict) *orchestrator.Error {
	switch {
	case p.Run != nil:
		return orchestrator.Errorf(orchestrator.CodeForbidden, "An agent cannot decide. People do: %s.", e.who(r))
	case v == Respond && r.MayAnswer(p.User.ID) && !e.current(p.User).Disabled && (p.Has(people.TasksWrite) || p.Has(people.ApprovalsDecide)):
		return nil
	case p.User.ID == "" || !Approves(e.current(p.User)):
		return orchestrator.Errorf(orchestrator.CodeNotAnApprover, "You can read this request. Deciding needs the role approver: %s.", e.who(r))
	case !p.Has(people.ApprovalsDecide):
		return orchestrator.Errorf(orchestrator.CodeForbidden, "This token may not decide: it has no scope approvals:decide. Use another token, or decide on the page.")
	}
	if refused := e.absent(p.User); refused != nil {
		return refused
	}
	if v == Withdraw && slices.ContainsFunc(r.yes(), func(d Decision) bool { return d.UserID == p.User.ID }) {
		return nil
	}
	mine, bar := e.seatOf(p.User, r)
	switch {
	case mine.owner.ID == "":
		return orchestrator.Errorf(orchestrator.CodeNotAnApprover, "You can read this request. Deciding needs: %s (%s).", policy.Join(r.Rule.From, "or"), e.who(r))
	case bar != nil:
		return e.fourEyesError(r, *bar, mine.owner.Name)
	}
	if bar = e.barred(p.User, r); v == Approve && bar != nil {
		return e.fourEyesError(r, *bar, "")
	}
	return nil
}

// who names those who could say yes, for a sentence.
func (e Electorate) who(r Request) string {
	names := Names(e.missing(r))
	if len(names) == 0 {
		return "nobody has it now"
	}
	return strings.Join(names, ", ")
}

// Stuck reports whether r waits for a yes that nobody can give.
func (e Electorate) Stuck(r Request) bool { return r.State == Pending && len(e.open(r)) == 0 }

// Turn says who must act next on r in words such as "you, ann or bob"; viewerID is
// the reader's user. It is "" when r waits for nobody, "nobody" when nobody can act.
func (e Electorate) Turn(r Request, viewerID string) string {
	if r.State != Pending {
		return ""
	}
	var names []string
	for _, s := range e.open(r) {
		if s.holder.ID != viewerID {
			names = append(names, s.voter().String())
			continue
		}
		s.holder.Name = "you"
		if s.owner.ID == viewerID {
			s.owner.Name = "you"
		}
		names = slices.Insert(names, 0, s.voter().String())
	}
	const shown = 4
	if len(names) == 0 {
		return "nobody"
	}
	if len(names) > shown {
		names = append(names[:shown-1:shown-1], fmt.Sprintf("%d others", len(names)-shown+1))
	}
	return policy.Join(names, "or")
}

// TooFew is the sentence for a request that cannot get enough yeses, or "".
func (e Electorate) TooFew(r Request) string {
	if r.State != Pending {
		return ""
	}
	missing := e.missing(r)
	if len(missing)+len(e.yes(r)) >= r.Rule.Need {
		return ""
	}
	need := fmt.Sprintf("This needs %d of %s", r.Rule.Need, policy.Join(r.Rule.From, "or"))
	switch {
	case r.IsQuestion():
		need = "This needs an answer"
	case len(r.Rule.From) == 0:
		need = fmt.Sprintf("This needs %d %s", r.Rule.Need, plural(r.Rule.Need, "approver", "approvers"))
	}
	can := each.Of(e.yes(r), func(d Decision) string { return d.By().String() })
	can = append(can, Names(missing)...)
	only := "but nobody can"
	if len(can) > 0 {
		only = "but only " + policy.Join(can, "and") + " can"
	}
	if why := e.lacking(r); len(why) > 0 {
		only += ": " + policy.Join(why, "and")
	}
	return need + ", " + only + ". " + r.remedy()
}

// lacking says of each seat that cannot say yes why not.
func (e Electorate) lacking(r Request) []string {
	yes := e.yes(r)
	var why []string
	for _, s := range e.seats(r) {
		bar := e.barred(s.owner, r)
		spoken := slices.ContainsFunc(yes, func(d Decision) bool { return d.seat() == s.owner.ID })
		switch {
		case bar != nil:
			why = append(why, s.owner.Name+" "+bar.Why())
		case spoken:
		case s.holder.ID == "":
			why = append(why, s.owner.Name+" is out of office")
		default:
			if bar = e.barred(s.holder, r); bar != nil {
				why = append(why, s.voter().String()+" "+bar.Why())
			}
		}
	}
	return why
}

// remedy is what to do about too few people.
func (r Request) remedy() string {
	if r.IsQuestion() { // which no rule of the configuration is about
		return fmt.Sprintf("Give %s the role operator again, or another person the role approver.", r.Requester)
	}
	if len(r.Rule.From) == 0 {
		return fmt.Sprintf("Give another person the role approver, or change the rule %q.", r.Rule.Name)
	}
	return fmt.Sprintf("Add a person to %s, or change the rule %q.", policy.Join(r.Rule.From, "or"), r.Rule.Name)
}

// yes returns each yes to the current revision that still stands: one of each person, and
// one from each seat.
func (r Request) yes() []Decision { return r.yesOf(func(Decision) bool { return true }) }

// Yes are the approvals of the current revision that were not taken back.
func (r Request) Yes() []Decision { return r.yes() }

// yesOf is yes without the decisions that do not count, which take nobody's seat.
func (r Request) yesOf(counts func(Decision) bool) []Decision {
	var out []Decision
	for _, d := range r.Decisions {
		if d.Revision != r.Revision.N {
			continue
		}
		mine := func(o Decision) bool { return o.UserID == d.UserID && o.User == d.User }
		switch d.Verdict {
		case Approve:
			same := func(o Decision) bool { return mine(o) || (d.seat() != "" && o.seat() == d.seat()) }
			if counts(d) && !slices.ContainsFunc(out, same) {
				out = append(out, d)
			}
		case Withdraw, Reject, RequestChanges:
			out = slices.DeleteFunc(out, func(o Decision) bool { return mine(o) || d.Ends(o) })
		}
	}
	return out
}

// yes are those that count now: not that of somebody who was disabled, lost the role
// approver, or has left the groups of the rule, since, nor of whom four eyes would bar now.
// What is left out when somebody decides, or at a landing, is ended for good: see endLost. A
// rule's yes counts while no person is needed.
func (e Electorate) yes(r Request) []Decision {
	is := func(id string, holds func(people.User) bool) bool {
		return slices.ContainsFunc(e.users, func(u people.User) bool { return u.ID == id && holds(u) })
	}
	return r.yesOf(func(d Decision) bool {
		open := func(u people.User) bool { return e.barred(u, r) == nil }
		return d.UserID == "" && r.Rule.Need == 0 || is(d.UserID, func(u people.User) bool { return Approves(u) && open(u) }) &&
			is(d.seat(), func(u people.User) bool { return e.votes(u, r) && open(u) })
	})
}

// current is u as they are now: who asks was read earlier.
func (e Electorate) current(u people.User) people.User {
	for _, known := range e.users {
		if known.ID == u.ID {
			return known
		}
	}
	return u
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
