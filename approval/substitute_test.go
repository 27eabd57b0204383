package approval_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// noon is when the electorates of these tables stand.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// away lets people of staff be out of office from an hour before until an hour after
// noon: "ann>cleo" hands ann's seat to cleo.
func away(pairs ...string) []people.User {
	users := staff()
	for _, p := range pairs {
		name, to, _ := strings.Cut(p, ">")
		i := slices.IndexFunc(users, func(u people.User) bool { return u.Name == name })
		users[i].Away = &people.Away{To: "usr_" + to, From: noon.Add(-time.Hour), Until: noon.Add(time.Hour)}
	}
	return users
}

// saidFor is a yes to revision 2 in somebody else's seat.
func saidFor(name, absent string) approval.Decision {
	d := said(name, approval.Approve, 2)
	d.ForID, d.For = "usr_"+absent, absent
	return d
}

func TestWhoSpeaksForTheAbsent(t *testing.T) {
	const outOf = "You are out of office until 13:00 UTC; "
	const tooFew = `This needs 1 of maintainers, but nobody can: `
	const remedy = `. Add a person to maintainers, or change the rule "core".`
	for name, c := range map[string]struct {
		users    []people.User
		at       time.Time // noon when zero
		fourEyes bool
		r        approval.Request
		said     []approval.Decision
		missing  string
		who      string // who tries to approve
		code     string
		says     string
		tooFew   string
	}{
		"the deputy has the seat":              {users: away("ann>cleo"), r: asks(1, "maintainers"), missing: "bob, cleo (for ann)", who: "cleo"},
		"and the absent one has not":           {users: away("ann>cleo"), r: asks(1, "maintainers"), missing: "bob, cleo (for ann)", who: "ann", code: orchestrator.CodeForbidden, says: outOf + "cleo decides in your place. End it first: gatehouse user away ann --back"},
		"not before it begins":                 {users: away("ann>cleo"), at: noon.Add(-time.Hour - time.Second), r: asks(1, "maintainers"), missing: "ann, bob", who: "cleo", code: orchestrator.CodeNotAnApprover, says: "maintainers (ann, bob)"},
		"from the moment it begins":            {users: away("ann>cleo"), at: noon.Add(-time.Hour), r: asks(1, "maintainers"), missing: "bob, cleo (for ann)", who: "cleo"},
		"not from the moment it ends":          {users: away("ann>cleo"), at: noon.Add(time.Hour), r: asks(1, "maintainers"), missing: "ann, bob", who: "cleo", code: orchestrator.CodeNotAnApprover, says: "maintainers (ann, bob)"},
		"the absent one after the end":         {users: away("ann>cleo"), at: noon.Add(time.Hour), r: asks(1, "maintainers"), missing: "ann, bob", who: "ann"},
		"who has a seat has only that":         {users: away("ann>bob"), r: asks(1, "maintainers"), missing: "bob", who: "bob"},
		"one voice for two absent ones":        {users: away("ann>cleo", "bob>cleo"), r: asks(2, "maintainers"), missing: "cleo (for ann)", who: "cleo", tooFew: `This needs 2 of maintainers, but only cleo (for ann) can` + remedy},
		"no chain of deputies":                 {users: away("ann>cleo", "cleo>bob"), r: asks(1, "maintainers"), missing: "bob", who: "cleo", code: orchestrator.CodeForbidden, says: outOf + "bob decides in your place"},
		"a deputy who is away helps nobody":    {users: away("ann>cleo", "cleo>finn", "bob>cleo"), r: asks(1, "maintainers"), who: "ann", code: orchestrator.CodeForbidden, says: outOf + "nobody decides in your place", tooFew: tooFew + "ann is out of office and bob is out of office" + remedy},
		"nor one who is no approver":           {users: away("ann>dora"), r: asks(1, "maintainers"), missing: "bob", who: "dora", code: orchestrator.CodeNotAnApprover, says: "role approver: bob"},
		"nor one who has left":                 {users: away("ann>gil"), r: asks(1, "maintainers"), missing: "bob", who: "gil", code: orchestrator.CodeNotAnApprover, says: "role approver: bob"},
		"nor oneself":                          {users: away("ann>ann"), r: asks(1, "maintainers"), missing: "bob", who: "ann", code: orchestrator.CodeForbidden, says: "nobody decides in your place"},
		"a seat that four eyes bar":            {users: away("ann>cleo"), fourEyes: true, r: asks(1, "maintainers"), missing: "bob", who: "cleo", code: orchestrator.CodeFourEyes, says: "ann, for whom you decide, asked for this task, so another person must approve it. Ask one of: bob."},
		"the other of two seats is free":       {users: away("ann>cleo", "bob>cleo"), fourEyes: true, r: asks(1, "maintainers"), missing: "cleo (for bob)", who: "cleo"},
		"a deputy whom four eyes bar":          {users: away("bob>ann"), fourEyes: true, r: asks(1, "maintainers"), who: "ann", code: orchestrator.CodeFourEyes, says: "You asked for this task, so another person must approve it, and there is nobody else who can.", tooFew: tooFew + "ann asked for it and bob is out of office" + remedy},
		"a seat speaks once":                   {users: away(), r: asks(2, "maintainers"), said: []approval.Decision{saidFor("cleo", "ann")}, missing: "bob", who: "ann"},
		"also when its owner spoke before":     {users: away("ann>cleo"), r: asks(2, "maintainers"), said: []approval.Decision{said("ann", approval.Approve, 2)}, missing: "bob", who: "cleo"},
		"a yes of an earlier revision is dead": {users: away("ann>cleo"), r: asks(2, "maintainers"), said: []approval.Decision{said("ann", approval.Approve, 1)}, missing: "bob, cleo (for ann)", who: "cleo"},
	} {
		if c.at.IsZero() {
			c.at = noon
		}
		c.r.Decisions = c.said
		e := approval.NewElectorate(c.users, groups, c.fourEyes, c.at)
		if got := strings.Join(approval.Names(e.Needs(c.r).Missing), ", "); got != c.missing {
			t.Errorf("%s: missing %q, want %q", name, got, c.missing)
		}
		if got := e.TooFew(c.r); got != c.tooFew {
			t.Errorf("%s: too few %q, want %q", name, got, c.tooFew)
		}
		i := slices.IndexFunc(c.users, func(u people.User) bool { return u.Name == c.who })
		refused := e.May(people.As(c.users[i], nil), c.r, approval.Approve)
		if (refused == nil) != (c.code == "") || (refused != nil && (refused.Code != c.code || !strings.Contains(refused.Message, c.says))) {
			t.Errorf("%s: %v, want %s %q", name, refused, c.code, c.says)
		}
	}
	e := approval.NewElectorate(away("ann>cleo"), groups, false, noon)
	if got := e.Turn(asks(1, "maintainers"), "usr_cleo"); got != "you (for ann) or bob" {
		t.Errorf("cleo sees %q", got)
	}
}

// staffed gives the world other people.
func (w *world) staffed(users []people.User) {
	w.g = approval.New(approval.Options{Store: w.db, Users: team(users), Now: w.clock.now, Logger: slog.New(slog.DiscardHandler),
		Diff: func(context.Context, approval.Request) (string, error) { return "diff\n", nil }}, w.g.Config())
}

// Ann is out of office, comes back in the middle, and her seat still has one voice.
func TestOutOfOffice(t *testing.T) {
	need := 2
	rules := compiled(t, policy.RuleConfig{Name: "core", When: "true", Need: &need, From: []string{"maintainers"}})
	w := newWorld(t, approval.Config{Policy: rules})
	w.staffed(away("ann>cleo"))
	r := w.asked()
	w.refused(ballot(r, "ann", approval.Reject), orchestrator.CodeForbidden, "You are out of office until 13:00 UTC; cleo decides in your place.")
	r = w.decide(ballot(r, "cleo", approval.Approve))
	if d := w.request(r.ID).Decisions[0]; d.User != "cleo" || d.For != "ann" || d.ForID != "usr_ann" {
		t.Fatalf("decision %+v", d)
	}
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeAlreadyDecided, "You (cleo (for ann)) approved this at")

	w.clock.step(time.Hour)
	w.refused(ballot(r, "ann", approval.Approve), orchestrator.CodeAlreadyDecided, "cleo approved this for you at 12:00 UTC on the web; a seat counts once. It needs 1 more: bob.")
	// Her time is over, but her own yes she can take back; then it is ann's turn.
	w.refused(ballot(r, "cleo", approval.Reject), orchestrator.CodeNotAnApprover, "Deciding needs: maintainers (bob).")
	r = w.decide(ballot(r, "cleo", approval.Withdraw))
	w.decide(ballot(r, "ann", approval.Approve))
	w.decide(ballot(r, "bob", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

// An absence ends between the reading of a request and the verdict on it: what counts is
// the moment of the verdict.
func TestAnAbsenceEndsInTheMiddle(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "core", When: "true", From: []string{"maintainers"}})})
	w.staffed(away("ann>cleo"))
	r := w.asked()
	early := ballot(r, "cleo", approval.Approve)
	e, err := w.g.Electorate(w.ctx)
	w.must(err)
	if refused := e.May(early.Principal, r, approval.Approve); refused != nil {
		t.Fatal("cleo may not decide for ann")
	}
	w.clock.step(time.Hour)
	w.refused(early, orchestrator.CodeNotAnApprover, "Deciding needs: maintainers (ann, bob).")
	w.decide(ballot(r, "ann", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

// watched is Telegram, as far as it notes who it may ask and what it may offer.
type watched struct {
	voters   []string
	verdicts []approval.Verdict
	view     approval.CardView
}

func (*watched) Name() origin.Channel { return "telegram" }

func (c *watched) Addresses(_ approval.Request, voters []people.User) []string {
	c.voters = nil
	for _, u := range voters {
		c.voters = append(c.voters, u.Name)
	}
	return []string{"1"}
}

func (c *watched) Deliver(_ context.Context, _ approval.Card, r approval.Request, view approval.CardView) (string, error) {
	c.verdicts, c.view = view.Verdicts, view
	return r.ID, nil
}

// Deputies get the cards, too. A card of before the agent's mode left its channel out
// loses its yes with the next revision.
func TestCardsReachTheDeputyAndFollowTheMode(t *testing.T) {
	ch := &watched{}
	c := approval.Config{Channels: []approval.Channel{ch}, Groups: groups, Policy: compiled(t, policy.RuleConfig{Name: "core", When: "true", From: []string{"maintainers"}})}
	w := newWorld(t, c)
	w.staffed(away("ann>cleo"))
	r := w.asked()
	w.must(w.g.Deliver(w.ctx, ch))
	if !slices.Equal(ch.voters, []string{"bob", "cleo"}) {
		t.Errorf("voters %v", ch.voters)
	}
	if want := []approval.Verdict{approval.Approve, approval.Reject, approval.RequestChanges}; !slices.Equal(ch.verdicts, want) {
		t.Errorf("verdicts %v, want %v", ch.verdicts, want)
	}
	w.decide(ballot(r, "bob", approval.RequestChanges))
	c.Agents = map[string]approval.AgentRule{"coder": {Mode: "web"}}
	w.g.SetConfig(c)
	w.must(w.g.Ask(w.ctx, w.rework(r.DelegationID), proposal("2")))
	w.must(w.g.Deliver(w.ctx, ch))
	if want := []approval.Verdict{approval.Reject, approval.RequestChanges}; !slices.Equal(ch.verdicts, want) {
		t.Errorf("verdicts with mode web %v, want %v", ch.verdicts, want)
	}
}
