package telegram_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
)

func TestLinkingAnAccount(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	code, err := w.db.CreateLinkCode(w.ctx, "test", telegram.Name, w.users["cleo"].ID)
	w.must(err)
	cleo := bottest.Account{ID: 1005, Username: "cleo_tg", Name: "Cleo"}
	w.tg.AddChat(cleo.ID, "private", "Cleo")

	w.wantIn("before", w.say(cleo.ID, cleo, "/start", 0).Text, "You are not linked. Open Settings → Channels.", "/link CODE")
	w.wantIn("in a group", w.say(room, cleo, "/link "+code, 0).Text, "Others can read this code here.")
	w.wantIn("in a group, without a code", w.say(room, cleo, "/start@gatehouse_test_bot", 0).Text, "in a private chat")
	w.wantIn("wrong", w.say(cleo.ID, cleo, "/link WRONGCODE00", 0).Text, "This code is unknown, was used or is older than 10 minutes.")
	w.wantIn("right", w.say(cleo.ID, cleo, "/start "+code, 0).Text, "You are linked as cleo.")
	w.wantIn("again", w.say(cleo.ID, cleo, "/start "+code, 0).Text, "This code is unknown, was used", "This account is linked to cleo.")
	w.wantIn("after", w.say(cleo.ID, cleo, "/start", 0).Text, "You are linked as cleo.", "/pending")
	accounts, err := w.db.Accounts(w.ctx, w.users["cleo"].ID)
	w.must(err)
	if len(accounts) != 1 || accounts[0].ID != cleo.ID || accounts[0].Name != "cleo_tg" {
		t.Errorf("accounts %+v", accounts)
	}
	w.asked("dora")
	w.want("tap", w.press(room, w.card(room).ID, "Approve", cleo), "Approved. Landing on main.")

	late, err := w.db.CreateLinkCode(w.ctx, "test", telegram.Name, w.users["cleo"].ID)
	w.must(err)
	w.clock.step(11 * time.Minute)
	w.wantIn("late", w.say(nobody.ID, nobody, "/link "+late, 0).Text, "older than 10 minutes")
}

func TestWhoIsNotLinkedMayLinkAndNothingElse(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	for _, command := range []string{"/pending", "/status " + r.ID, "/send kik Do it", "/cancel " + r.TaskID, "/nonsense", "hello"} {
		w.want(command, w.say(nobody.ID, nobody, command, 0).Text, "You are not linked. Open Settings → Channels.")
	}
	w.wantIn("help", w.say(nobody.ID, nobody, "/help", 0).Text, "You are not linked.", "/link CODE")
	if len(w.engine.sent)+len(w.engine.cancelled) != 0 {
		t.Errorf("engine %+v", w.engine)
	}
}

func TestInGroupsOnlyCommandsForThisBotAreHeard(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	for _, text := range []string{"hello", "/nonsense", "/pending@other_bot", "/ pending", "/", "", "see /pending"} {
		before := len(w.tg.FromBot(room))
		w.say(room, bob, text, 0)
		if all := w.tg.FromBot(room); len(all) != before {
			t.Errorf("%q was answered: %s", text, all[before].Text)
		}
	}
	m := w.say(room, bob, "/pending@Gatehouse_Test_Bot", 0)
	w.want("for this bot", m.Text, "Nothing needs you.")
	if m.ReplyTo == 0 {
		t.Error("in a group an answer answers a message")
	}
	// In the name of a channel, and from another bot: nobody's words.
	before := len(w.tg.Calls("sendMessage"))
	w.tg.Deliver("message", map[string]any{"message_id": 500, "from": map[string]any{"id": bob.ID, "is_bot": false}, "sender_chat": map[string]any{"id": room, "type": "supergroup"},
		"chat": map[string]any{"id": room, "type": "supergroup"}, "text": "/pending"})
	w.tg.Say(room, bottest.Account{ID: 77, Name: "robot", Bot: true}, "/pending", 0)
	w.tg.Deliver("edited_message", map[string]any{"message_id": 500, "text": "/pending"})
	w.handle()
	if all := w.tg.Calls("sendMessage"); len(all) != before {
		t.Errorf("answered: %+v", all[before:])
	}
	w.wantIn("unknown in private", w.say(bob.ID, bob, "/nonsense", 0).Text, "There is no /nonsense. /help lists what you can write.")
	w.wantIn("talk in private", w.say(bob.ID, bob, "hello", 0).Text, "/help lists what you can write.")
	w.wantIn("help", w.say(bob.ID, bob, "/help", 0).Text, "/pending", "/status ID", "/send AGENT TEXT", "/cancel ID")
	w.wantIn("skip", w.say(bob.ID, bob, "/skip", 0).Text, "/skip is a reply to the question")
}

func TestPendingListsWhatSomebodyCanApprove(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true}, group)
	w.want("nothing", w.say(ann.ID, ann, "/pending", 0).Text, "Nothing needs you.")
	r := w.asked("ann")
	other := w.asked("dora", func(p *orchestrator.Proposal) { p.Review.Files = append(p.Review.Files, p.Review.Files[0]) })
	w.want("ann", w.say(ann.ID, ann, "/pending", 0).Text, "◆ 1 request needs you\n◆ Fix the retry loop · 2 files · /status_"+other.ID[len(other.ID)-6:])
	w.wantIn("bob", w.say(bob.ID, bob, "/pending", 0).Text, "◆ 2 requests need you\n", "/status_"+r.ID[len(r.ID)-6:], "/status_"+other.ID[len(other.ID)-6:])
	w.want("eve", w.say(eve.ID, eve, "/pending", 0).Text, "Nothing needs you.")
	for range 22 {
		w.asked("dora")
	}
	m := w.say(bob.ID, bob, "/pending", 0)
	w.wantIn("many", m.Text, "◆ 24 requests need you\n", "\nand 4 more")
	if n := strings.Count(m.Text, "/status_"); n != 20 {
		t.Errorf("%d lines", n)
	}
}

func TestStatusShowsACardThatLives(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	short := r.ID[len(r.ID)-6:]
	card := w.say(bob.ID, bob, "/status_"+short, 0)
	w.wantIn("card", card.Text, "◆ Approval needed · rev 1", "you, ann or cleo")
	w.want("buttons", buttons(card), "Approve, Reject, Changes, Open the diff")
	again := w.say(bob.ID, bob, "/status "+strings.ToUpper(short), 0)
	w.wantIn("again", again.Text, "awaiting approval · you, ann or cleo", "Its card is the one that this answers.")
	if again.ReplyTo != card.ID {
		t.Errorf("it answers %d", again.ReplyTo)
	}
	w.wantIn("auditor", w.say(eve.ID, eve, "/status "+r.ID, 0).Text, "◆ Fix the retry loop · 1 file\nawaiting approval · ann, bob or cleo")
	if all := w.tg.FromBot(eve.ID); len(all[len(all)-1].Buttons) != 0 {
		t.Error("somebody without the right has buttons")
	}
	w.wantIn("operator", w.say(dora.ID, dora, "/status "+r.ID, 0).Text, "Reading requests needs the role approver or auditor.")
	w.press(room, w.card(room).ID, "Approve", ann)
	shown, _ := w.tg.Message(bob.ID, card.ID)
	w.wantIn("the card that was asked for", shown.Text, "⇥ Approved · landing\nFix the retry loop\nann on Telegram")
}

func TestStatusOfTasks(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	for _, id := range []string{r.TaskID, r.DelegationID, r.DelegationID[len(r.DelegationID)-8:], "dlg_…" + r.DelegationID[len(r.DelegationID)-6:]} {
		w.want(id, w.say(dora.ID, dora, "/status "+id, 0).Text,
			"◆ awaiting approval · coder\nFix the retry loop\nsince 12:00 UTC\nits request: /status_"+r.ID[len(r.ID)-6:])
	}
	w.wantIn("alone", w.say(dora.ID, dora, "/status", 0).Text, "Write of what, as in: /status 7f3k9q.")
	w.wantIn("alone", w.say(dora.ID, dora, "/cancel", 0).Text, "Write which task, as in: /cancel 7f3k9q.")
	for _, id := range []string{"abc", "zzzzzz", "tsk_zzzzzz", "../../etc", "' or 1=1", strings.Repeat("a", 4000)} {
		w.wantIn("unknown", w.say(dora.ID, dora, "/status "+id, 0).Text, "Nothing ends in ")
	}
}

// What /send began is read to its end without a computer.
func TestStatusShowsWhatCameOfATask(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	w.press(room, w.card(room).ID, "Approve", bob)
	become := func(change func(*orchestrator.Delegation)) string {
		w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
			d, err := tx.Delegation(w.ctx, r.DelegationID)
			if err != nil {
				return err
			}
			was := d.State
			change(d)
			return tx.Move(w.ctx, d, was, d.Attempt)
		}))
		return w.say(dora.ID, dora, "/status "+r.TaskID, 0).Text
	}
	w.wantIn("held", become(func(d *orchestrator.Delegation) { d.Work.Problem = "The folder is dirty." }), "⇥ landing · coder", "\nThe folder is dirty.")
	done := become(func(d *orchestrator.Delegation) {
		d.State, d.Result = orchestrator.Completed, &agent.Result{Commit: digits("4"), Declined: []string{"two.txt"}, Text: strings.Repeat("a", 500) + " the end"}
	})
	w.wantIn("landed", done, "✓ completed · coder", "\nlanded as 4444444 without 1 file that people left out\n", "the end")
	pushed := become(func(d *orchestrator.Delegation) {
		d.Result = &agent.Result{Commit: digits("4"), Pushed: "gatehouse/coder-loop"}
	})
	w.wantIn("pushed", pushed, "\npushed to gatehouse/coder-loop as 4444444\n")
	w.wantIn("silent", become(func(d *orchestrator.Delegation) { d.Result = nil }), "\ncoder gave no answer in words.")
}

func TestSendMakesATaskOnce(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.tg.DuplicateUpdates(true)
	m := w.say(dora.ID, dora, "/send kik Fix the retry loop\nin the uploader", 0)
	w.tg.DuplicateUpdates(false)
	id := regexp.MustCompile(`tsk_\w{26}`).FindString(m.Text)
	w.want("answer", m.Text, "○ Queued · kik\nFix the retry loop\n"+id+" sent to kik · /status_"+id[max(0, len(id)-6):])
	if len(w.engine.sent) != 1 || len(w.tg.FromBot(dora.ID)) != 1 {
		t.Fatalf("tasks %+v, messages %+v", w.engine.sent, w.tg.FromBot(dora.ID))
	}
	for key, s := range w.engine.sent {
		if !strings.HasPrefix(key, "telegram:4242:") || s.Via != origin.From(origin.Telegram) || s.Chat != strconv.FormatInt(dora.ID, 10) || s.Agent != "kik" || s.Text != "Fix the retry loop\nin the uploader" || s.RequesterID != w.users["dora"].ID || s.Requester != "dora" {
			t.Errorf("key %s, submission %+v", key, s)
		}
	}
	for _, flag := range []string{"--enable-handoffs", "—enable-handoffs"} { // phones write a long dash
		w.wantIn(flag, w.say(dora.ID, dora, "/send "+flag+"  kik Fix "+flag, 0).Text, "sent to kik")
		n := 0
		for _, s := range w.engine.sent {
			if s.Handoffs && s.Agent == "kik" && s.Text == "Fix "+flag {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s made %d such tasks of %+v", flag, n, w.engine.sent)
		}
		clear(w.engine.sent)
	}
	w.engine.sent["one"] = orchestrator.Submission{}
	w.wantIn("no agent", w.say(dora.ID, dora, "/send --enable-handoffs", 0).Text, "as in: /send kik Fix the retry loop")
	w.want("unknown agent", w.say(dora.ID, dora, "/send kikk Fix it", 0).Text, `There is no agent "kikk". Did you mean kik?`)
	w.wantIn("no text", w.say(dora.ID, dora, "/send kik", 0).Text, "as in: /send kik Fix the retry loop")
	w.wantIn("no right", w.say(bob.ID, bob, "/send kik Fix it", 0).Text, "Sending tasks needs the role operator.")
	if len(w.engine.sent) != 1 {
		t.Errorf("tasks %+v", w.engine.sent)
	}
}

func TestCancelSaysWhatHappened(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	w.wantIn("no right", w.say(bob.ID, bob, "/cancel "+r.TaskID, 0).Text, "Cancelling needs the role operator.")
	w.wantIn("unknown", w.say(dora.ID, dora, "/cancel zzzzzz", 0).Text, "Nothing ends in zzzzzz.")
	w.want("done", w.say(dora.ID, dora, "/cancel "+r.TaskID[len(r.TaskID)-7:], 0).Text, "■ Cancelled: Fix the retry loop · coder. Everything below it stops, too.")
	if len(w.engine.cancelled) != 1 || w.engine.cancelled[0] != r.TaskID+" by dora" {
		t.Errorf("cancelled %v", w.engine.cancelled)
	}
}

// What nobody sends is no reason to fail for ever.
func TestStrangeUpdates(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	for _, body := range []string{`{}`, `{"update_id":1}`, `{"update_id":1,"message":{}}`, `{"update_id":1,"message":{"chat":{"id":5},"from":{"id":1}}}`, `{"update_id":1,"message":{"from":{"id":1},"text":"/"}}`,
		`{"update_id":1,"my_chat_member":{"chat":{"id":1}}}`, `{"update_id":1,"callback_query":{"id":"1","from":{"id":1}}}`} {
		if err := w.desk.Handle(w.ctx, []byte(body)); err != nil && !strings.Contains(err.Error(), "telegram ") {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := w.desk.Handle(w.ctx, []byte(`{"update_id":`)); err == nil {
		t.Error("half an update was handled")
	}
}

// Those stories in which the database decides, on the other one.
func TestTheStoriesOnPostgreSQL(t *testing.T) {
	for name, story := range map[string]func(*testing.T){
		"a call": TestACallIsApprovedOnceOrForItsTask, "an edited call": TestACallIsEditedOnItsPage,
		"a choice": TestAQuestionIsAnsweredByAButton, "a reply": TestAQuestionIsAnsweredByAReply,
		"a tap": TestATapApproves, "twice": TestTheSameUpdateTwiceDecidesOnce, "changes": TestChangesMakeANewRevisionWithItsOwnButtons, "forged": TestForgedAndForeignTaps,
		"reject": TestRejectAsksWhyAndOnlyWhoPressedAnswers, "link": TestLinkingAnAccount, "status": TestStatusShowsACardThatLives,
		"same tree":      TestAButtonIsForItsRevisionAlsoWhenTheTreeIsMadeAgain,
		"the file first": TestApproveComesAfterTheFile, "a crash before the file": TestACrashBetweenACardAndItsFile,
		"an outage": TestCardsAgreeWithinAMinuteOfAnOutage,
		"a report":  TestTheMessageOfATaskGoesOnUntilItsEnd, "run again": TestAFailureSaysWhatToDo, "no end is lost": TestAnOutageCostsNoEnd, "one message": TestOneMessageHoweverManyNodes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for the disk
			story(t)
		})
	}
}
