package telegram_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
)

// Anybody can write to a bot. A flood of it is not answered one by one, and keeps nobody
// else waiting for that.
func TestAStrangerWhoFloodsTheBotIsAnsweredAFewTimes(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	for i := range 19 {
		for _, text := range []string{"hello", "/help", "/pending", "/link CODE" + fmt.Sprint(i), "/start"} {
			w.tg.Say(nobody.ID, nobody, text, 0)
		}
	}
	w.handle()
	if n := len(w.tg.FromBot(nobody.ID)); n != 10 {
		t.Errorf("%d answers", n)
	}
	w.want("another one", w.say(bob.ID, bob, "/pending", 0).Text, "Nothing needs you.")
	w.clock.step(time.Minute)
	w.want("later", w.say(nobody.ID, nobody, "hello", 0).Text, "You are not linked. Open Settings → Channels.")
}

// Somebody with every right who asks in a foreign group shows its people nothing.
func TestAForeignGroupReadsNothing(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	const foreign = -100999
	w.tg.AddChat(foreign, "supergroup", "Strangers")
	r := w.asked("dora")
	for _, command := range []string{"/status " + r.ID, "/status " + r.TaskID, "/pending"} {
		w.wantIn(command, w.say(foreign, bob, command, 0).Text, "This group is not among channels.telegram.chats")
	}
	w.wantIn("/send", w.say(foreign, dora, "/send kik Do it", 0).Text, "This group is not among")
	w.wantIn("/cancel", w.say(foreign, dora, "/cancel "+r.TaskID, 0).Text, "This group is not among")
	w.deliver()
	if all := w.tg.FromBot(foreign); len(all) != 5 || len(w.engine.sent)+len(w.engine.cancelled) != 0 {
		t.Errorf("%d messages, engine %+v", len(all), w.engine)
	}
	w.wantIn("in the team's group", w.say(room, bob, "/pending", 0).Text, "Fix the retry loop")
}

// Somebody whose account was closed has the card of the revision that they were asked
// about; what the agent made later does not reach their phone any more.
func TestANewRevisionIsNotShownToWhoLostTheRight(t *testing.T) {
	for what, change := range map[string]func(w *world){
		"disabled": func(w *world) { w.must(w.db.SetDisabled(w.ctx, "test", w.users["ann"].ID, true)) },
		"unlinked": func(w *world) { w.must(w.db.Unlink(w.ctx, "test", "telegram", ann.ID)) },
		"no role": func(w *world) {
			w.must(w.db.SetRoles(w.ctx, "test", w.users["ann"].ID, []people.Role{people.Operator}))
		},
	} {
		w := newWorld(t, approval.Config{})
		r := w.asked("dora")
		if len(w.tg.FromBot(ann.ID)) == 0 || len(w.tg.FromBot(bob.ID)) == 0 {
			t.Fatalf("%s: not both were asked", what)
		}
		before := len(w.tg.FromBot(ann.ID))
		change(w)
		_, err := w.gateway.Decide(w.ctx, approval.Ballot{RequestID: r.ID, Principal: w.as("bob"), Channel: "web", Verdict: approval.RequestChanges, Digest: r.Revision.Digest, Comment: "again"})
		w.must(err)
		w.deliver()
		w.again(r, "2")
		if n := len(w.tg.FromBot(ann.ID)); n != before {
			t.Errorf("%s: ann has %d messages, had %d", what, n, before)
		}
		if card := w.card(bob.ID); !strings.Contains(card.Text, "rev 2") {
			t.Errorf("%s: bob's card says %q", what, card.Text)
		}
	}
}

// The changes of an agent whose mode is web have no cards here, also not for the asking.
func TestTheChangesOfAWebAgentAreNotShownHere(t *testing.T) {
	w := newWorld(t, approval.Config{Agents: map[string]approval.AgentRule{"coder": {Mode: "web"}}}, group)
	r := w.asked("dora")
	w.want("/status", w.say(bob.ID, bob, "/status "+r.ID, 0).Text, "coder's changes are not shown here: its mode is web. Open the request's page.")
	w.deliver()
	if all := w.tg.FromBot(bob.ID); len(all) != 1 {
		t.Errorf("%d messages", len(all))
	}
}
