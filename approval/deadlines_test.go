package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// hall is a board that also says things once and takes digests.
type hall struct {
	*board
	mu      sync.Mutex
	said    []approval.Notice
	digests map[string][]approval.DigestItem // as shown now, by external id
	edits   []time.Time                      // of digests
	now     func() time.Time
	fail    func(what string) error // what goes wrong now; nil: nothing
}

func newHall(now func() time.Time) *hall {
	return &hall{board: newBoard(), digests: map[string][]approval.DigestItem{}, now: now}
}

func (h *hall) broken(what string) error {
	h.mu.Lock()
	fail := h.fail
	h.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(what)
}

func (h *hall) Deliver(ctx context.Context, c approval.Card, r approval.Request, view approval.CardView) (string, error) {
	if err := h.broken("card"); err != nil {
		return "", err
	}
	return h.board.Deliver(ctx, c, r, view)
}

func (h *hall) Notify(_ context.Context, n approval.Notice, _ approval.Request, _ approval.CardView) error {
	if err := h.broken("notice"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, n)
	return nil
}

func (h *hall) Digest(_ context.Context, address, externalID string, items []approval.DigestItem) (string, error) {
	if err := h.broken("digest"); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if externalID == "" {
		externalID = fmt.Sprintf("%s/list %d", address, len(h.digests))
	} else {
		h.edits = append(h.edits, h.now())
	}
	h.digests[externalID] = slices.Clone(items)
	return externalID, nil
}

// told are the notices that were sent, as "kind address" in order of their arrival.
func (h *hall) told() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, n := range h.said {
		all = append(all, strings.TrimSpace(string(n.Kind)+" "+n.Address+" "+strings.Join(n.To, ",")))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// hallWorld is a world with a hall whose questions wait for a day, are reminded of 8
// hours and one hour before that, and shown to the leads after 4 hours.
func hallWorld(t *testing.T, change ...func(*approval.Config)) (*world, *hall) {
	h := newHall(nil)
	c := approval.Config{Expires: 24 * time.Hour, Remind: []time.Duration{8 * time.Hour, time.Hour}, Channels: []approval.Channel{h}}
	for _, f := range change {
		f(&c)
	}
	w := newWorld(t, c)
	h.now = w.clock.now
	return w, h
}

// pass lets time go by and does what is due then.
func (w *world) pass(d time.Duration, h *hall) {
	w.Helper()
	w.clock.step(d)
	w.must(w.g.Sweep(w.ctx))
	w.must(w.g.Act(w.ctx))
	w.must(w.g.Deliver(w.ctx, h))
}

func TestPeopleAreRemindedBeforeTheDeadline(t *testing.T) {
	w, h := hallWorld(t)
	r := w.asked()
	if r.NextAt == nil || !r.NextAt.Equal(r.ExpiresAt.Add(-8*time.Hour)) {
		t.Fatalf("next at %v, deadline %v", r.NextAt, r.ExpiresAt)
	}
	w.pass(15*time.Hour, h)
	if h.told() != "" {
		t.Fatalf("told %q before the time", h.told())
	}
	w.pass(61*time.Minute, h)
	w.pass(time.Minute, h)
	if got := h.told(); got != "reminder north; reminder south" {
		t.Fatalf("told %q", got)
	}
	w.expectShown(h.board, r, "north", "south")
	w.pass(7*time.Hour, h)
	if now := w.request(r.ID); now.Reminded != 2 || now.NextAt != nil || now.State != approval.Pending || len(h.said) != 4 {
		t.Fatalf("reminded %d times, next %v, %s, %d said", now.Reminded, now.NextAt, now.State, len(h.said))
	}
	all := w.events(r.TaskID, event.Reminded)
	var data struct {
		Reminder int
		Missing  []string
		Expires  string `json:"expires_at"`
	}
	if err := json.Unmarshal(all[len(all)-1].Data, &data); err != nil || len(all) != 2 || data.Reminder != 2 || len(data.Missing) != 3 || data.Expires == "" {
		t.Errorf("%d events, the last one %s", len(all), all[len(all)-1].Data)
	}
	w.pass(time.Hour, h)
	w.expectStates(r.ID, approval.Expired, orchestrator.Expired)
}

func TestMissedRemindersAreOne(t *testing.T) {
	w, h := hallWorld(t)
	r := w.asked()
	w.pass(23*time.Hour+30*time.Minute, h) // the server was down for both
	w.pass(time.Minute, h)
	if now := w.request(r.ID); now.Reminded != 1 || now.NextAt != nil || h.told() != "reminder north; reminder south" {
		t.Fatalf("reminded %d times, next %v, told %q", now.Reminded, now.NextAt, h.told())
	}
	// After the deadline nobody is reminded.
	late := w.asked()
	w.pass(25*time.Hour, h)
	if now := w.request(late.ID); now.Reminded != 0 || now.State != approval.Expired || len(h.said) != 2 {
		t.Errorf("%s, reminded %d times, %d said", now.State, now.Reminded, len(h.said))
	}
}

func TestWithoutADeadlineNobodyIsReminded(t *testing.T) {
	w, h := hallWorld(t, func(c *approval.Config) { c.Expires = 0 })
	r := w.asked()
	w.pass(1000*time.Hour, h)
	if now := w.request(r.ID); r.NextAt != nil || now.Reminded != 0 || now.State != approval.Pending {
		t.Errorf("next %v, reminded %d times, %s", r.NextAt, now.Reminded, now.State)
	}
	short, h2 := hallWorld(t, func(c *approval.Config) { c.Expires = 2 * time.Hour })
	r = short.asked()
	short.pass(61*time.Minute, h2)
	if now := short.request(r.ID); now.Reminded != 1 {
		t.Errorf("a reminder whose time was past from the start makes %d reminders of 1", now.Reminded)
	}
}

func TestANewRevisionIsRemindedOfAnew(t *testing.T) {
	w, h := hallWorld(t)
	r := w.asked()
	w.pass(17*time.Hour, h)
	w.decide(ballot(w.request(r.ID), "bob", approval.RequestChanges))
	if now := w.request(r.ID); now.NextAt != nil || now.Reminded != 1 {
		t.Fatalf("an ended revision has next %v, reminded %d", now.NextAt, now.Reminded)
	}
	w.must(w.g.Ask(w.ctx, w.rework(r.DelegationID), proposal("2")))
	now := w.request(r.ID)
	if now.Reminded != 0 || now.NextAt == nil || !now.NextAt.Equal(now.ExpiresAt.Add(-8*time.Hour)) {
		t.Errorf("the new revision has next %v, reminded %d, deadline %v", now.NextAt, now.Reminded, now.ExpiresAt)
	}
}

func TestNobodyIsRemindedOfWhatIsDecided(t *testing.T) {
	w, h := hallWorld(t)
	r := w.asked()
	w.pass(time.Minute, h)
	h.fail = func(string) error { return errors.New("connection refused") }
	w.pass(15*time.Hour+time.Hour, h) // the reminder is due, and its channel is away
	w.decide(ballot(r, "bob", approval.Reject))
	h.fail = nil
	w.pass(time.Hour, h)
	if now := w.request(r.ID); h.told() != "" || now.NextAt != nil {
		t.Errorf("told %q, next %v", h.told(), now.NextAt)
	}
	notices, err := w.db.DueNotices(w.ctx, "board", w.clock.now().Add(time.Hour), w.clock.now(), 10)
	if err != nil || len(notices) != 0 {
		t.Errorf("%d notices are still to be sent, %v", len(notices), err)
	}
}

// A withdrawn yes makes it a question again; what was due on it still is.
func TestAWithdrawnYesIsRemindedOf(t *testing.T) {
	w, h := hallWorld(t)
	r := w.asked()
	w.decide(ballot(r, "bob", approval.Approve))
	w.pass(17*time.Hour, h)
	if got := w.request(r.ID); got.Reminded != 0 {
		t.Fatal("reminded of what was approved")
	}
	w.decide(ballot(r, "bob", approval.Withdraw))
	w.pass(time.Minute, h)
	if now := w.request(r.ID); now.Reminded != 1 || now.State != approval.Pending {
		t.Errorf("%s, reminded %d times", now.State, now.Reminded)
	}
}

func TestNobodyDecidedSoOthersMay(t *testing.T) {
	w, h := hallWorld(t, func(c *approval.Config) {
		c.Policy = compiled(t, policy.RuleConfig{Name: "core", When: "true", Need: need(2), From: []string{"maintainers"}})
		c.Groups = map[string][]string{"maintainers": {"ann", "bob"}, "leads": {"cleo"}, "board": {"dora"}}
		c.Escalate = []approval.Step{{After: 4 * time.Hour, To: []string{"leads"}}, {After: 6 * time.Hour, To: []string{"maintainers", "board"}}}
	})
	r := w.asked()
	if !r.NextAt.Equal(r.Revision.At.Add(4 * time.Hour)) {
		t.Fatalf("next at %v, asked at %v", r.NextAt, r.Revision.At)
	}
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeNotAnApprover, "maintainers")
	w.pass(4*time.Hour+time.Minute, h)
	now := w.request(r.ID)
	if fmt.Sprint(now.Rule.From) != "[maintainers leads]" || now.Rule.Widened != 1 || now.Rule.Need != 2 || now.Escalated != 1 {
		t.Fatalf("rule %+v, escalated %d", now.Rule, now.Escalated)
	}
	if h.told() != "escalation north leads; escalation south leads" || len(w.events(r.TaskID, event.Escalated)) != 1 {
		t.Fatalf("told %q, %d events", h.told(), len(w.events(r.TaskID, event.Escalated)))
	}
	w.decide(ballot(now, "cleo", approval.Approve))
	w.pass(2*time.Hour, h)
	now = w.request(r.ID)
	if fmt.Sprint(now.Rule.From) != "[maintainers leads board]" || now.Rule.Widened != 2 || now.Escalated != 2 {
		t.Fatalf("rule %+v, escalated %d", now.Rule, now.Escalated)
	}
	if !now.NextAt.Equal(now.ExpiresAt.Add(-8 * time.Hour)) {
		t.Errorf("next at %v: the reminder comes after the last step", now.NextAt)
	}
	w.decide(ballot(now, "bob", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

func TestWhereEverybodyMayAnEscalationOnlyTells(t *testing.T) {
	w, h := hallWorld(t, func(c *approval.Config) {
		c.Escalate = []approval.Step{{After: time.Hour, To: []string{"leads"}}, {After: 2 * time.Hour, To: []string{"board"}}}
	})
	r := w.asked()
	w.pass(3*time.Hour, h) // both steps were missed: one notice for each address
	now := w.request(r.ID)
	if len(now.Rule.From) != 0 || now.Rule.Widened != 0 || now.Escalated != 2 || h.told() != "escalation north leads,board; escalation south leads,board" {
		t.Errorf("rule %+v, escalated %d, told %q", now.Rule, now.Escalated, h.told())
	}
}

// private is a hall with one address for each person who could say yes.
type private struct{ *hall }

func (private) Addresses(_ approval.Request, voters []people.User) []string {
	var all []string
	for _, u := range voters {
		all = append(all, u.Name)
	}
	return all
}

func TestThoseWhoMayDecideNowGetACard(t *testing.T) {
	h := private{newHall(nil)}
	w := newWorld(t, approval.Config{Expires: 24 * time.Hour, Remind: []time.Duration{time.Hour}, Channels: []approval.Channel{h},
		Groups:   map[string][]string{"maintainers": {"ann", "bob"}, "leads": {"cleo"}},
		Policy:   compiled(t, policy.RuleConfig{Name: "core", When: "true", Need: need(2), From: []string{"maintainers"}}),
		Escalate: []approval.Step{{After: time.Hour, To: []string{"leads"}}}})
	r := w.asked()
	deliver := func(d time.Duration) {
		w.clock.step(d)
		w.must(w.g.Act(w.ctx))
		w.must(w.g.Deliver(w.ctx, h))
	}
	deliver(0)
	w.decide(ballot(r, "bob", approval.Approve))
	deliver(61 * time.Minute)
	w.expectShown(h.board, r, "ann", "bob", "cleo")
	if h.told() != "escalation ann leads" { // bob has said yes, and cleo has the card itself
		t.Errorf("told %q", h.told())
	}
	deliver(22 * time.Hour)
	if h.told() != "escalation ann leads; reminder ann; reminder cleo" {
		t.Errorf("told %q", h.told())
	}
}

// Expiry goes by the stored deadline, whatever the clock does around it.
func TestTheClockStepsAroundTheDeadline(t *testing.T) {
	w, h := hallWorld(t)
	r := w.asked()
	w.pass(23*time.Hour+30*time.Minute, h)
	w.clock.step(-time.Hour) // back: the question is open an hour longer, and nobody is reminded again
	w.pass(45*time.Minute, h)
	if now := w.request(r.ID); now.State != approval.Pending || now.Reminded != 1 || !now.ExpiresAt.Equal(*r.ExpiresAt) {
		t.Fatalf("%s, reminded %d times, deadline %v", now.State, now.Reminded, now.ExpiresAt)
	}
	w.clock.step(time.Hour) // forward over the deadline: expired, though the sweep has not run
	w.refused(ballot(r, "bob", approval.Approve), orchestrator.CodeExpired, "expired")
	w.expectStates(r.ID, approval.Expired, orchestrator.Expired)
	w.clock.step(-time.Hour) // back before it: what expired stays so
	w.refused(ballot(r, "bob", approval.Approve), orchestrator.CodeExpired, "expired")
	w.pass(time.Minute, h)
	w.expectStates(r.ID, approval.Expired, orchestrator.Expired)
	if w.request(r.ID).NextAt != nil {
		t.Error("something is still due on what expired")
	}
}

func TestANoticeIsTriedAgainAndGivenUp(t *testing.T) {
	w, h := hallWorld(t, func(c *approval.Config) { c.Expires = 240 * time.Hour; c.Remind = []time.Duration{200 * time.Hour} })
	r := w.asked()
	w.pass(time.Minute, h)
	tries := 0
	h.fail = func(what string) error {
		if what != "notice" {
			return nil
		}
		switch tries++; tries {
		case 1:
			return approval.RetryAfter(errors.New("too many requests"), time.Hour)
		case 2:
			return approval.Gone(errors.New("chat not found"))
		default:
			return nil
		}
	}
	w.pass(40*time.Hour, h) // one address is asked to wait, the other one is gone
	w.pass(time.Minute, h)
	if h.told() != "" || tries != 2 {
		t.Fatalf("told %q after %d tries", h.told(), tries)
	}
	page, err := w.db.DeadLetters(w.ctx, approval.DeadFilter{Channel: "board"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Kind != approval.DeadNotice || page.Items[0].Error != "chat not found" || page.Items[0].RequestID != r.ID {
		t.Fatalf("dead letters %+v %v", page.Items, err)
	}
	w.pass(time.Hour, h)
	if len(h.said) != 1 {
		t.Fatalf("told %q", h.told())
	}
	if n, err := w.g.Retry(w.ctx, "ann", approval.DeadFilter{Key: page.Items[0].Key}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	w.pass(0, h)
	if h.told() != "reminder north; reminder south" {
		t.Errorf("told %q", h.told())
	}
	if _, err := w.g.Retry(w.ctx, "ann", approval.DeadFilter{Key: page.Items[0].Key}); orchestrator.CodeOf(err) != orchestrator.CodeNotFound {
		t.Errorf("retried twice: %v", err)
	}
}
