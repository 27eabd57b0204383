package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// Needs is how far a request is on its way to a yes.
type Needs struct {
	Count   int      `json:"count"`   // yeses that the rule asks for
	Have    int      `json:"have"`    // people who have said yes to this revision
	From    []string `json:"from"`    // groups; empty: every approver
	Missing []string `json:"missing"` // names of those who could still say yes; empty once decided
}

// Electorate is who may decide, as it stands at one moment. It is a value: one
// serves a whole page of requests.
type Electorate struct {
	users    []people.User
	groups   map[string][]string
	fourEyes bool
}

// NewElectorate makes an electorate of these people.
func NewElectorate(users []people.User, groups map[string][]string, fourEyes bool) Electorate {
	return Electorate{users: users, groups: groups, fourEyes: fourEyes}
}

// Electorate reads who may decide now.
func (g *Gateway) Electorate(ctx context.Context) (Electorate, error) {
	users, err := g.users.Users(ctx)
	if err != nil {
		return Electorate{}, fmt.Errorf("reading who may decide: %w", err)
	}
	c := g.Config()
	return NewElectorate(users, c.Groups, c.FourEyes), nil
}

// Needs says how far r is on its way to a yes.
func (g *Gateway) Needs(ctx context.Context, r Request) (Needs, error) {
	e, err := g.Electorate(ctx)
	if err != nil {
		return Needs{}, err
	}
	return e.Needs(r), nil
}

// MayDecide reports whether p may approve r, with the reason where not. Who asked
// for the task may still reject it: see Electorate.May.
func (g *Gateway) MayDecide(ctx context.Context, p people.Principal, r Request) (bool, *orchestrator.Error) {
	e, err := g.Electorate(ctx)
	if err != nil {
		return false, orchestrator.Errorf(orchestrator.CodeUnavailable, "Who may decide could not be read, so nobody may now. Try again. (%w)", err)
	}
	refused := e.May(p, r, Approve)
	return refused == nil, refused
}

// Needs says how far r is on its way to a yes.
func (e Electorate) Needs(r Request) Needs {
	n := Needs{Count: r.Rule.Need, Have: len(r.yes()), From: append([]string{}, r.Rule.From...), Missing: []string{}}
	if r.State == Pending {
		n.Missing = append(n.Missing, e.missing(r)...)
	}
	return n
}

// missing names who could still say yes to the current revision, in order.
func (e Electorate) missing(r Request) []string {
	yes := r.yes()
	var names []string
	for _, u := range e.users {
		said := slices.ContainsFunc(yes, func(d Decision) bool { return d.UserID == u.ID })
		if !said && e.votes(u, r) && !e.asked(u, r) {
			names = append(names, u.Name)
		}
	}
	slices.Sort(names)
	return names
}

// voters are those who could say yes to the current revision, with their accounts.
func (e Electorate) voters(r Request) []people.User {
	names := e.missing(r)
	return slices.DeleteFunc(slices.Clone(e.users), func(u people.User) bool { return !slices.Contains(names, u.Name) })
}

// votes reports whether u is an approver of whom r's rule wants to hear.
func (e Electorate) votes(u people.User, r Request) bool {
	return !u.Disabled && slices.Contains(u.Roles, people.Approver) && e.member(u, r.Rule.From)
}

func (e Electorate) member(u people.User, groups []string) bool {
	if len(groups) == 0 {
		return true
	}
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.groups[g], u.Name) })
}

// asked reports whether four eyes keep u from approving r.
func (e Electorate) asked(u people.User, r Request) bool {
	return e.fourEyes && r.RequesterID != "" && u.ID == r.RequesterID
}

// May returns nil when p has the right to give this verdict on r, whatever state r
// is in; else why not and who has it.
func (e Electorate) May(p people.Principal, r Request, v Verdict) *orchestrator.Error {
	switch {
	case p.Run != nil:
		return orchestrator.Errorf(orchestrator.CodeForbidden, "An agent cannot decide. People do: %s.", e.who(r))
	case p.User.ID == "" || p.User.Disabled || !slices.Contains(p.User.Roles, people.Approver):
		return orchestrator.Errorf(orchestrator.CodeNotAnApprover, "You can read this request. Deciding needs the role approver: %s.", e.who(r))
	case !p.Has(people.ApprovalsDecide):
		return orchestrator.Errorf(orchestrator.CodeForbidden, "This token may not decide: it has no scope approvals:decide. Use another token, or decide on the page.")
	case !e.member(p.User, r.Rule.From):
		return orchestrator.Errorf(orchestrator.CodeNotAnApprover, "You can read this request. Deciding needs: %s (%s).", join(r.Rule.From, "or"), e.who(r))
	case v == Approve && e.asked(p.User, r):
		return e.fourEyesError(r)
	}
	return nil
}

func (e Electorate) fourEyesError(r Request) *orchestrator.Error {
	others := e.missing(r)
	if len(others) == 0 {
		return orchestrator.Errorf(orchestrator.CodeFourEyes, "You asked for this task, so another person must approve it, and there is nobody else who can. %s", r.remedy())
	}
	return orchestrator.Errorf(orchestrator.CodeFourEyes, "You asked for this task, so another person must approve it. Ask one of: %s.", strings.Join(others, ", "))
}

// who names those who could say yes, for a sentence.
func (e Electorate) who(r Request) string {
	names := e.missing(r)
	if len(names) == 0 {
		return "nobody has it now"
	}
	return strings.Join(names, ", ")
}

// Turn says who must act next on r in words such as "you, ann or bob"; viewerID is
// the reader's user. It is "" when r waits for nobody, "nobody" when nobody can act.
func (e Electorate) Turn(r Request, viewerID string) string {
	if r.State != Pending {
		return ""
	}
	names := e.missing(r)
	for _, u := range e.users {
		if i := slices.Index(names, u.Name); i >= 0 && u.ID == viewerID {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, "you")
		}
	}
	const shown = 4
	if len(names) == 0 {
		return "nobody"
	}
	if len(names) > shown {
		names = append(names[:shown-1:shown-1], fmt.Sprintf("%d others", len(names)-shown+1))
	}
	return join(names, "or")
}

// TooFew is the sentence for a request that cannot get enough yeses, or "".
func (e Electorate) TooFew(r Request) string {
	if r.State != Pending {
		return ""
	}
	missing := e.missing(r)
	if len(missing)+len(r.yes()) >= r.Rule.Need {
		return ""
	}
	need := fmt.Sprintf("This needs %d of %s", r.Rule.Need, join(r.Rule.From, "or"))
	if len(r.Rule.From) == 0 {
		need = fmt.Sprintf("This needs %d %s", r.Rule.Need, plural(r.Rule.Need, "approver", "approvers"))
	}
	var can []string
	for _, d := range r.yes() {
		can = append(can, d.User)
	}
	can = append(can, missing...)
	only := "but nobody can"
	if len(can) > 0 {
		only = "but only " + join(can, "and") + " can"
	}
	for _, u := range e.users {
		if e.asked(u, r) && e.votes(u, r) {
			only += ": " + u.Name + " asked for it"
		}
	}
	return need + ", " + only + ". " + r.remedy()
}

// remedy is what to do about too few people.
func (r Request) remedy() string {
	if len(r.Rule.From) == 0 {
		return fmt.Sprintf("Give another person the role approver, or change the rule %q.", r.Rule.Name)
	}
	return fmt.Sprintf("Add a person to %s, or change the rule %q.", join(r.Rule.From, "or"), r.Rule.Name)
}

// yes returns the yes of each person to the current revision that still stands.
func (r Request) yes() []Decision {
	var out []Decision
	for _, d := range r.Decisions {
		if d.Revision != r.Revision.N {
			continue
		}
		mine := func(o Decision) bool { return o.UserID == d.UserID && o.User == d.User }
		switch d.Verdict {
		case Approve:
			if !slices.ContainsFunc(out, mine) {
				out = append(out, d)
			}
		case Withdraw, Reject, RequestChanges:
			out = slices.DeleteFunc(out, mine)
		}
	}
	return out
}

// join lists names as a person would: "ann, bob or cleo".
func join(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
