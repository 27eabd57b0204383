package telegram_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/approval/telegram"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

func TestATapApproves(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Expires: time.Hour}, group)
	r := w.asked("dora")
	card := w.card(room)
	w.want("buttons", buttons(card), "Approve, Reject, Changes, Open the diff")
	w.wantIn("card", card.Text, "◆ Approval needed · rev 1\nFix the retry loop\ndora → coder · app/main\n", "diff below, complete", "Rule default: 1 yes, ann, bob or cleo")

	w.want("answer", w.press(room, card.ID, "Approve", bob), "Approved. Landing on main.")
	got := w.wantState(r.ID, approval.Approved, 1)
	if d := got.Decisions[0]; d.User != "bob" || d.Channel != "telegram" || d.Seen.Surface != "telegram" || d.Seen.Files != 1 || d.Digest != r.Revision.Digest {
		t.Errorf("decision %+v", d)
	}
	after := w.card(room)
	if after.ID != card.ID {
		t.Fatalf("the card became another message, %d", after.ID)
	}
	w.wantIn("card after", after.Text, "⇥ Approved · landing\nFix the retry loop\nbob on Telegram, 12:00 UTC · 1 of 1")
	w.want("buttons after", buttons(after), "Open")

	// The finger of somebody whose app is slow, and the same finger again.
	w.want("late", w.pressData(room, card.ID, data(card, "Reject"), ann), "Too late: bob approved at 12:00 UTC.")
	w.want("again", w.pressData(room, card.ID, data(card, "Approve"), bob), "Approved. Landing on main.")
	w.wantState(r.ID, approval.Approved, 1)
	w.wantRefused(r.TaskID, "ann already_decided")
}

// Revisions 1 and 3 are the same tree and have the same digest; the button of 1 is for 1.
func TestAButtonIsForItsRevisionAlsoWhenTheTreeIsMadeAgain(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	card := w.card(room)
	old := data(card, "Approve")
	for _, digit := range []string{"2", "1"} {
		_, err := w.gateway.Decide(w.ctx, approval.Ballot{RequestID: r.ID, Principal: w.as("ann"), Channel: "web", Verdict: approval.RequestChanges, Digest: r.Revision.Digest, Revision: r.Revision.N, Comment: "Again."})
		w.must(err)
		r = w.again(r, digit)
	}
	if r.Revision.N != 3 || r.Revision.Digest != strings.Repeat("1", 64) {
		t.Fatalf("revision %d, %s", r.Revision.N, r.Revision.Digest)
	}
	w.want("answer", w.pressData(room, card.ID, old, bob), "This is revision 1; 3 is newer.")
	w.wantState(r.ID, approval.Pending, 2)
	w.wantRefused(r.TaskID, "bob superseded")
}

func TestTheSameUpdateTwiceDecidesOnce(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	card := w.card(room)
	w.tg.DuplicateUpdates(true)
	query, err := w.tg.Press(room, card.ID, "Reject", bob)
	w.must(err)
	w.handle()
	w.tg.DuplicateUpdates(false)
	if n := len(w.tg.Answers(query)); n == 0 {
		t.Error("no answer")
	}
	question := w.tg.Last(room)
	if all := w.tg.FromBot(room); len(all) != 2 || !question.ForceReply {
		t.Fatalf("asked more than once: %+v", all)
	}
	w.tg.DuplicateUpdates(true)
	w.say(room, bob, "Breaks resume.", question.ID)
	if all := w.tg.FromBot(room); len(all) != 3 || all[2].Text != "Rejected. Nothing lands." {
		t.Fatalf("told more than once: %+v", all)
	}
	w.wantState(r.ID, approval.Rejected, 1)
	w.wantRefused(r.TaskID)
}

func TestOfTapsInAnyOrderOneDecides(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	card := w.card(room)
	w.tg.ReorderUpdates(true)
	w.tg.DuplicateUpdates(true)
	w.tg.PressData(room, card.ID, data(card, "Approve"), ann)
	w.tg.PressData(room, card.ID, data(card, "Approve"), bob)
	w.tg.PressData(room, card.ID, "never-made-by-us", bob)
	w.handle()
	w.wantState(r.ID, approval.Approved, 1)
}

func TestRejectAsksWhyAndOnlyWhoPressedAnswers(t *testing.T) {
	w := newWorld(t, approval.Config{}, telegram.Place{Chat: room, Thread: 7})
	w.tg.AddTopic(room, 7)
	r := w.asked("dora")
	card := w.card(room)
	if card.Thread != 7 {
		t.Fatalf("the card is in topic %d", card.Thread)
	}
	w.want("answer", w.press(room, card.ID, "Reject", bob), "Why? Reply to the question below.")
	question := w.tg.Last(room)
	w.want("question", question.Text, "bob: Why? Reply to this message. /skip to send none (reject only).")
	if !question.ForceReply || !question.Selective || question.Thread != 7 || question.ReplyTo != card.ID || question.Entities[0].Type != "text_mention" {
		t.Errorf("question %+v", question)
	}
	w.tg.SayIn(room, 7, ann, "I say no.", question.ID)
	w.handle()
	w.wantIn("somebody else", w.tg.Last(room).Text, "This question is for somebody else. Nothing was decided.")
	w.wantState(r.ID, approval.Pending, 0)
	w.wantRefused(r.TaskID, "telegram:1001 not_yours")

	w.tg.SayIn(room, 7, bob, "Breaks resume; see *line* 42.", question.ID)
	w.handle()
	w.want("told", w.tg.Last(room).Text, "Rejected. Nothing lands.")
	got := w.wantState(r.ID, approval.Rejected, 1)
	w.want("reason", got.Decisions[0].Comment, "Breaks resume; see *line* 42.")
	w.wantIn("card", w.card(room).Text, "⊖ Rejected · nothing landed\n", "bob on Telegram, 12:00 UTC\n\"Breaks resume; see *line* 42.\"")
}

func TestSkipIsForRejectOnly(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked("dora")
	card := w.card(bob.ID)
	w.press(bob.ID, card.ID, "Changes", bob)
	question := w.tg.Last(bob.ID)
	w.want("question", question.Text, "Why? Reply to this message. /skip to send none (reject only).")
	w.wantIn("skip", w.say(bob.ID, bob, "/skip", question.ID).Text, "Changes need words.")
	w.wantIn("no reply", w.say(bob.ID, bob, "Handle the timeout", 0).Text, "reply to the question")
	w.wantState(r.ID, approval.Pending, 0)

	w.press(bob.ID, card.ID, "Reject", bob)
	w.want("told", w.say(bob.ID, bob, "/skip@gatehouse_test_bot", w.tg.Last(bob.ID).ID).Text, "Rejected. Nothing lands.")
	if got := w.wantState(r.ID, approval.Rejected, 1); got.Decisions[0].Comment != "" {
		t.Errorf("reason %q", got.Decisions[0].Comment)
	}
	// The first question is still open, but the request is not.
	w.want("late", w.say(bob.ID, bob, "Handle the timeout too.", question.ID).Text, "Too late: bob rejected at 12:00 UTC.")
	w.wantRefused(r.TaskID, "bob already_decided")
}

func TestAQuestionTakesAnAnswerForADay(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	w.press(room, w.card(room).ID, "Reject", bob)
	question := w.tg.Last(room)
	w.clock.step(25 * time.Hour)
	w.wantIn("a day later", w.say(room, bob, "No.", question.ID).Text, "older than 24 h. Press the button again.")
	w.wantState(r.ID, approval.Pending, 0)
}

func TestChangesMakeANewRevisionWithItsOwnButtons(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	first := w.card(room)
	w.press(room, first.ID, "Changes", bob)
	w.want("told", w.say(room, bob, "Handle the timeout too.", w.tg.Last(room).ID).Text, "Sent back to coder, with your words.")
	w.wantState(r.ID, approval.ChangesRequested, 1)
	w.wantIn("card", w.card(room).Text, "↩ Changes requested · coder works on it again\n", "\"Handle the timeout too.\"")

	r = w.again(r, "2")
	second := w.card(room)
	if second.ID == first.ID {
		t.Fatal("the new question is no message of its own: nobody sees it come")
	}
	w.wantIn("second", second.Text, "◆ Approval needed · rev 2\n")
	old, _ := w.tg.Message(room, first.ID)
	w.want("first", old.Text, "⧉ Replaced by revision 2 · buttons are off\nFix the retry loop\nrev 1 → rev 2 after bob's comments")
	w.want("first's buttons", buttons(old), "Open revision 2")

	w.want("old button", w.pressData(room, first.ID, data(first, "Approve"), ann), "This is revision 1; 2 is newer.")
	w.want("old reject", w.pressData(room, first.ID, data(first, "Reject"), ann), "This is revision 1; 2 is newer.")
	w.wantState(r.ID, approval.Pending, 1)
	w.wantRefused(r.TaskID, "ann superseded", "ann superseded")
	w.want("new button", w.press(room, second.ID, "Approve", ann), "Approved. Landing on main.")
	w.wantState(r.ID, approval.Approved, 2)
}

// Whoever is not linked learns nothing, and nobody decides with what was made up.
func TestForgedAndForeignTaps(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true}, group)
	r := w.asked("ann")
	card := w.card(room)
	approve := data(card, "Approve")
	other := w.asked("dora")
	otherCard := w.card(room)
	w.tg.Say(ann.ID, ann, "hello", 0)
	w.handle()
	there := w.tg.Last(ann.ID).ID

	w.want("nobody's account", w.press(room, card.ID, "Approve", nobody), "You are not linked. Open Settings → Channels.")
	w.want("nobody's account, made up", w.pressData(room, card.ID, "x", nobody), "You are not linked. Open Settings → Channels.")
	w.want("made up", w.pressData(room, card.ID, "approve:"+r.ID, bob), "This button is not known any more.")
	w.want("from another chat", w.pressData(ann.ID, there, approve, bob), "This button is not known any more.")
	w.want("under another request", w.pressData(room, otherCard.ID, approve, bob), "This button is not known any more.")
	w.want("under a message that is gone", w.pressData(room, 9999, approve, bob), "This button is not known any more.")
	w.want("four eyes", w.press(room, card.ID, "Approve", ann), "You asked for this task, so another person must approve.")
	w.wantIn("no right", w.press(room, card.ID, "Approve", dora), "Deciding needs the role approver")
	w.wantIn("no right to reject", w.press(room, card.ID, "Reject", eve), "Deciding needs the role approver")
	w.wantState(r.ID, approval.Pending, 0)
	w.wantState(other.ID, approval.Pending, 0)
	w.wantRefused(r.TaskID, "telegram:1099 not_linked", "bob unknown_button", "bob unknown_button", "bob unknown_button", "ann four_eyes", "dora not_an_approver", "eve not_an_approver")
	w.wantRefused("system", "telegram:1099 unknown_button", "bob unknown_button")
	for _, m := range w.tg.FromBot(room) {
		if m.ForceReply {
			t.Error("somebody without the right was asked why")
		}
	}
}

func TestARightThatWasLostASecondAgo(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	card := w.card(room)
	w.press(room, card.ID, "Reject", bob)
	question := w.tg.Last(room)
	w.must(w.db.SetRoles(w.ctx, "test", w.users["bob"].ID, []people.Role{people.Auditor}))
	w.wantIn("approve", w.press(room, card.ID, "Approve", bob), "Deciding needs the role approver")
	w.wantIn("the answer to a question of before", w.say(room, bob, "No.", question.ID).Text, "Deciding needs the role approver")
	w.must(w.db.SetDisabled(w.ctx, "test", w.users["ann"].ID, true))
	w.want("disabled", w.press(room, card.ID, "Approve", ann), "You are not linked. Open Settings → Channels.")
	w.wantState(r.ID, approval.Pending, 0)
	w.wantRefused(r.TaskID, "bob not_an_approver", "bob not_an_approver", "telegram:1001 not_linked")
}

func TestTwoPeopleOfTwo(t *testing.T) {
	need := 2
	policy, problems := policy.CompileRules([]policy.RuleConfig{{Name: "core", When: "true", Need: &need, From: []string{"maintainers"}}}, map[string][]string{"maintainers": {"ann", "bob", "cleo"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := newWorld(t, approval.Config{Policy: policy, Groups: map[string][]string{"maintainers": {"ann", "bob", "cleo"}}}, group)
	r := w.asked("dora")
	card := w.card(room)
	w.want("first", w.press(room, card.ID, "Approve", bob), "Your yes counts: 1 of 2. Next: ann or cleo.")
	w.wantIn("card", w.card(room).Text, "Rule core: 1 of 2 yes so far (bob), next ann or cleo")
	w.want("twice", w.press(room, card.ID, "Approve", bob), "Your yes counts: 1 of 2. Next: ann or cleo.")
	// The buttons of before the edit are as good.
	w.want("second", w.pressData(room, card.ID, data(card, "Approve"), ann), "Approved. Landing on main.")
	w.wantIn("card", w.card(room).Text, "bob on Telegram, 12:00 UTC; ann on Telegram, 12:00 UTC · 2 of 2")
	w.wantState(r.ID, approval.Approved, 2)
}

func TestACarefulRequestIsNotApprovedHere(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.diff = strings.Repeat("+a line\n", 100_000)
	r := w.asked("dora", func(p *orchestrator.Proposal) { p.Review.Added = 100_000 })
	card := w.card(room)
	w.want("buttons", buttons(card), "Reject, Changes, Open the diff")
	w.wantIn("card", card.Text, "diff in the file below", "To approve, open the diff: too long to show here.")
	file := w.tg.Last(room)
	if file.Document == nil || file.ReplyTo != card.ID || string(file.Document.Data) != w.diff || !strings.HasSuffix(file.Document.Name, "-rev1.diff") {
		t.Fatalf("the file is %+v", file)
	}
	w.press(room, card.ID, "Reject", bob)
	w.want("told", w.say(room, bob, "/skip", w.tg.Last(room).ID).Text, "Rejected. Nothing lands.")
	w.wantState(r.ID, approval.Rejected, 1)
}

func TestATapAfterTheDeadline(t *testing.T) {
	w := newWorld(t, approval.Config{Expires: time.Hour}, group)
	r := w.asked("dora")
	card := w.card(room)
	w.clock.step(time.Hour)
	w.want("late", w.press(room, card.ID, "Approve", bob), "Too late: it expired at 13:00 UTC, not approved.")
	w.wantState(r.ID, approval.Expired, 0)
	w.wantIn("card", w.card(room).Text, "⌛ Expired, not approved · nothing landed")
	w.wantRefused(r.TaskID, "bob expired")
}

// An answer that Telegram does not take undoes nothing.
func TestADecisionStandsWithoutItsAnswer(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	card := w.card(room)
	for _, how := range misfortunes {
		w.tg.Misbehave("answerCallbackQuery", how)
	}
	query, err := w.tg.Press(room, card.ID, "Approve", bob)
	w.must(err)
	w.handle()
	if len(w.tg.Answers(query)) != 0 {
		t.Error("there was an answer")
	}
	w.wantState(r.ID, approval.Approved, 1)
	w.wantIn("card", w.card(room).Text, "⇥ Approved · landing")
}

// A card that was sent just before a crash is known to nobody; a tap mends it.
func TestACardThatWasSentTwice(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	lost := w.card(room)
	card := r.Cards[0]
	for _, c := range r.Cards {
		if c.Channel == telegram.Name {
			card = c
		}
	}
	card.ExternalID, card.Shown = "", 0
	w.must(w.db.SaveCard(w.ctx, card))
	w.deliver()
	known := w.card(room)
	if known.ID == lost.ID {
		t.Fatal("nothing was sent again")
	}
	w.want("tap", w.press(room, lost.ID, "Approve", bob), "Approved. Landing on main.")
	for _, id := range []int{lost.ID, known.ID} {
		m, _ := w.tg.Message(room, id)
		w.wantIn("both", m.Text, "⇥ Approved · landing")
	}
}
