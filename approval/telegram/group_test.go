package telegram_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/orchestrator/people"
)

// The configuration needs a group's number, and no app shows it.
func TestAGroupIsToldItsNumber(t *testing.T) {
	const other = -100999
	w := newWorld(t, approval.Config{}, group)
	w.tg.AddChat(other, "supergroup", "Others")
	w.tg.Member(other, bob, "left")
	w.handle()
	if all := w.tg.FromBot(other); len(all) > 0 {
		t.Errorf("thrown out, it says %+v", all)
	}
	w.tg.Member(other, bob, "member")
	w.handle()
	const add = "This chat is -100999. For requests to come here, add it to channels.telegram.chats."
	w.want("added", w.tg.Last(other).Text, add)
	w.tg.Member(other, bob, "administrator")
	w.handle()
	if all := w.tg.FromBot(other); len(all) != 1 {
		t.Errorf("it says more: %+v", all)
	}
	w.wantIn("start", w.say(other, bob, "/start@gatehouse_test_bot", 0).Text, "in a private chat", add)
	w.wantIn("help of a stranger", w.say(other, nobody, "/help@gatehouse_test_bot", 0).Text, "You are not linked.", add)
	w.wantIn("help in our group", w.say(room, bob, "/help", 0).Text, "/pending", "This chat is -100123. Requests come here.")
	if text := w.say(bob.ID, bob, "/help", 0).Text; strings.Contains(text, "This chat is") {
		t.Errorf("in private: %s", text)
	}
}

// link makes a code for somebody and sends it from the account.
func (w *world) link(name string, a bottest.Account) bottest.Message {
	w.Helper()
	w.tg.AddChat(a.ID, "private", a.Name)
	code, err := w.db.CreateLinkCode(w.ctx, "test", telegram.Name, w.users[name].ID)
	w.must(err)
	return w.say(a.ID, a, "/start "+code, 0)
}

var cleo = bottest.Account{ID: 1005, Name: "Cleo"}

// Who links late gets the cards of what waits, and is told how much that is.
func TestWhoLinksLateGetsTheCards(t *testing.T) {
	w := newWorld(t, approval.Config{})
	w.asked("dora")
	w.asked("dora")
	w.must(w.gateway.Reach(w.ctx))
	w.wantIn("linked", w.link("cleo", cleo).Text, "You are linked as cleo. Requests that need you come here. 2 wait: /pending")
	w.must(w.gateway.Reach(w.ctx))
	w.deliver()
	card := w.card(cleo.ID)
	w.wantIn("card", card.Text, "you, ann or bob")
	w.want("tap", w.press(cleo.ID, card.ID, "Approve", cleo), "Approved. Landing on main.")
	before := len(w.tg.FromBot(cleo.ID))
	w.must(w.gateway.Reach(w.ctx))
	w.deliver()
	if n := len(w.tg.FromBot(cleo.ID)); n != before {
		t.Errorf("%d messages, then %d though nothing has changed", before, n)
	}
}

func TestLinkingSaysWhereRequestsCome(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.asked("dora")
	w.wantIn("approver", w.link("cleo", cleo).Text, "You are linked as cleo. Requests go to the chats of the configuration. 1 waits: /pending")
	w.wantIn("operator", w.say(dora.ID, dora, "/start", 0).Text, "You do not have the role approver, so no requests come to you.")
}

// Cleo decides for bob while he is away: her card says so, and his does not ask him.
func TestADeputysCardSaysForWhom(t *testing.T) {
	rules, problems := policy.CompileRules([]policy.RuleConfig{{Name: "core", When: "true", From: []string{"core"}}}, map[string][]string{"core": {"bob", "ann"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := newWorld(t, approval.Config{Policy: rules, Groups: map[string][]string{"core": {"bob", "ann"}}})
	w.link("cleo", cleo)
	r := w.asked("dora")
	w.must(w.gateway.Reach(w.ctx))
	w.must(w.db.SetAway(w.ctx, "test", w.users["bob"].ID, &people.Away{To: w.users["cleo"].ID, Until: w.clock.now().Add(time.Hour)}))
	w.must(w.gateway.Reach(w.ctx))
	w.deliver()
	w.wantIn("cleo's card", w.card(cleo.ID).Text, "Rule core: 1 yes, you (for bob) or ann")
	w.wantIn("ann's card", w.card(ann.ID).Text, "Rule core: 1 yes, you or cleo (for bob)")
	w.want("bob's list", w.say(bob.ID, bob, "/pending", 0).Text, "You are out of office until 13:00 UTC; cleo decides in your place. An admin can end it.")
	w.want("bob's tap", w.pressData(bob.ID, w.card(bob.ID).ID, data(w.card(bob.ID), "Reject"), bob),
		"You are out of office until 13:00 UTC; cleo decides in your place. An admin can end it.")

	// What was asked while he was away he gets when he is back.
	during := w.asked("dora")
	w.must(w.db.SetAway(w.ctx, "test", w.users["bob"].ID, nil))
	w.must(w.gateway.Reach(w.ctx))
	w.deliver()
	for _, id := range []string{r.ID, during.ID} {
		found := false
		for _, c := range w.request(id).Cards {
			found = found || c.Channel == telegram.Name && c.Address == "1002" && c.Shown == w.request(id).Version
		}
		if !found {
			t.Errorf("bob has no card of %s: %+v", id, w.request(id).Cards)
		}
	}
	w.wantIn("bob's card", w.card(bob.ID).Text, "Rule core: 1 yes, you or ann")
}

func TestTheLastYesThatCanComeIsNotTheLastThatIsNeeded(t *testing.T) {
	two := 2
	rules, problems := policy.CompileRules([]policy.RuleConfig{{Name: "core", When: "true", Need: &two, From: []string{"core"}}}, map[string][]string{"core": {"ann", "bob"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := newWorld(t, approval.Config{FourEyes: true, Policy: rules, Groups: map[string][]string{"core": {"ann", "bob"}}}, group)
	w.asked("ann")
	w.want("tap", w.press(room, w.card(room).ID, "Approve", bob), "Your yes counts: 1 of 2, but nobody else can approve now. The card says why.")
}
