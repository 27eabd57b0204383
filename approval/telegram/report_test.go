package telegram_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
)

func TestTelegramKeepsTheContractOfReporters(t *testing.T) {
	approvaltest.Reporter(t, true, func(t *testing.T) (approval.Channel, string) {
		return newWorld(t, approval.Config{}, group).channel, telegram.Place{Chat: ann.ID}.String()
	})
	approvaltest.Reporter(t, true, func(t *testing.T) (approval.Channel, string) {
		return newWorld(t, approval.Config{}, group).channel, group.String()
	})
}

// sends has dora send a task, and returns its message and its root.
func (w *world) sends(chat int64, text string) (bottest.Message, orchestrator.Delegation) {
	w.Helper()
	m := w.say(chat, dora, "/send kik "+text, 0)
	_, rest, _ := strings.Cut(m.Text, "tsk_")
	id, _, _ := strings.Cut(rest, " ")
	return m, w.delegation(w.task("tsk_" + id).RootID)
}

// becomes moves a delegation and shows that.
func (w *world) becomes(d orchestrator.Delegation, change func(orchestrator.Tx, *orchestrator.Delegation)) {
	w.Helper()
	w.must(w.moved(d.ID, change))
	w.deliver()
}

// now is what a message shows now.
func (w *world) now(chat int64, m bottest.Message) bottest.Message {
	w.Helper()
	is, ok := w.tg.Message(chat, m.ID)
	if !ok {
		w.Fatalf("message %d is not there", m.ID)
	}
	return is
}

func runs(_ orchestrator.Tx, d *orchestrator.Delegation) { d.State = orchestrator.Running }

func fails(_ orchestrator.Tx, d *orchestrator.Delegation) {
	d.State, d.Error = orchestrator.Failed, &agent.Failure{Code: "boom", Message: "The build broke."}
}

func completes(text string) func(orchestrator.Tx, *orchestrator.Delegation) {
	return func(_ orchestrator.Tx, d *orchestrator.Delegation) {
		d.State, d.Result = orchestrator.Completed, &agent.Result{Text: text}
	}
}

// Whoever sends a task has one message, which goes on until the answer.
func TestTheMessageOfATaskGoesOnUntilItsEnd(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	m, d := w.sends(dora.ID, "Fix the retry loop")
	w.wantIn("at first", m.Text, "○ Queued · kik\nFix the retry loop\n", " sent to kik · /status_")
	w.want("the button", buttons(m), "Open the task")
	w.becomes(d, runs)
	w.wantIn("at work", w.now(dora.ID, m).Text, "● Running · kik")
	w.must(w.db.InTask(w.ctx, d.TaskID, func(tx orchestrator.Tx) error {
		return tx.Insert(w.ctx, &orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, tx.Now()), TaskID: d.TaskID, ParentID: d.ID, From: "kik", To: "coder",
			Text: "Do it", State: orchestrator.Running, HopKey: "1", CreatedAt: tx.Now(), Since: tx.Now()})
	}))
	w.becomes(d, func(_ orchestrator.Tx, d *orchestrator.Delegation) { d.State = orchestrator.Waiting })
	w.wantIn("handed on", w.now(dora.ID, m).Text, "⧗ Waiting · kik\nFix the retry loop\ncoder is running\n")
	w.becomes(d, completes("I fixed it.\n\n<b>All</b> tests pass at http://evil.example /cancel_all"))
	end := w.now(dora.ID, m)
	w.wantIn("the end", end.Text, "✓ Completed · kik\nFix the retry loop\nI fixed it.\n\n<b>All</b> tests pass at http://evil.example /cancel_all\n", " UTC · after ")
	if all := w.tg.FromBot(dora.ID); len(all) != 1 {
		t.Errorf("%d messages about one task", len(all))
	}
	for _, e := range end.Entities {
		if e.Type == "url" || e.Type == "bot_command" {
			t.Errorf("the answer makes a %s", e.Type)
		}
	}
	edits := len(w.tg.Calls("editMessageText"))
	w.must(w.moved(d.ID, func(orchestrator.Tx, *orchestrator.Delegation) {}))
	w.deliver()
	if n := len(w.tg.Calls("editMessageText")); n != edits {
		t.Errorf("%d edits after the end", n-edits)
	}
}

// An answer that does not fit is cut, and a button leads to the whole of it.
func TestALongAnswerIsCutAndLeadsToTheWhole(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	for _, text := range []string{strings.Repeat("line\n", 500), strings.Repeat("𝔞b", 30_000)} {
		m, d := w.sends(dora.ID, "Tell me")
		w.becomes(d, completes(text))
		is := w.now(dora.ID, m)
		w.want("buttons", buttons(is), "Read the whole answer")
		w.wantIn("the cut", is.Text, "…\n")
	}
	w.channel.SetSettings(telegram.Settings{Chats: []telegram.Place{group}, PublicURL: "http://localhost:8080"})
	m, d := w.sends(dora.ID, "Tell me")
	w.becomes(d, completes(strings.Repeat("line\n", 500)))
	w.wantIn("no page to open", w.now(dora.ID, m).Text, "…\n", "\nThe whole answer: gatehouse status "+d.TaskID[len(d.TaskID)-6:])
}

// In a group the message answers the command, and goes on there while the group is ours.
func TestInAGroupTheMessageAnswersTheCommand(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	m, d := w.sends(room, "Fix the retry loop")
	if m.ReplyTo == 0 {
		t.Error("it answers nothing")
	}
	w.channel.SetSettings(telegram.Settings{PublicURL: "https://gate.example.com"})
	w.becomes(d, completes("secret words"))
	w.wantIn("no group of ours any more", w.now(room, m).Text, "○ Queued")
}

// What failed says so, and how to run it again; then the same message goes on.
func TestAFailureSaysWhatToDo(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	m, d := w.sends(dora.ID, "Fix the retry loop")
	w.becomes(d, fails)
	short := d.TaskID[len(d.TaskID)-6:]
	w.wantIn("failed", w.now(dora.ID, m).Text, "✕ Failed · kik\nFix the retry loop\nThe build broke.\n", "\nTo run it again: /retry_"+short)
	w.wantIn("no right", w.say(bob.ID, bob, "/retry_"+short, 0).Text, "Running a task again needs the role operator.")
	w.wantIn("which", w.say(dora.ID, dora, "/retry", 0).Text, "as in: /retry 7f3k9q")
	w.wantIn("again", w.say(dora.ID, dora, "/retry_"+short, 0).Text, "It runs again: Fix the retry loop · kik")
	w.wantIn("in the same message", w.now(dora.ID, m).Text, "○ Queued · kik")
	w.becomes(d, completes("It works now."))
	w.wantIn("the end", w.now(dora.ID, m).Text, "✓ Completed · kik", "It works now.")
}

// A person who muted their tasks gets one message for each, which stays as it is.
func TestMutedMessagesStayAsTheyAre(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.wantIn("mute", w.say(dora.ID, dora, "/mute", 0).Text, "Muted:", "/unmute")
	m, d := w.sends(dora.ID, "Fix the retry loop")
	w.becomes(d, runs)
	w.wantIn("muted", w.now(dora.ID, m).Text, "○ Queued · kik")
	w.wantIn("unmute", w.say(dora.ID, dora, "/unmute", 0).Text, "go on until their ends")
	w.becomes(d, completes("Done."))
	w.wantIn("the end", w.now(dora.ID, m).Text, "✓ Completed · kik", "Done.")
}

// Whoever lost the role or the account reads nothing more.
func TestWhoMayNotReadIsNotTold(t *testing.T) {
	for name, loses := range map[string]func(*world) error{
		"the role":    func(w *world) error { return w.db.SetRoles(w.ctx, "test", w.users["dora"].ID, nil) },
		"the account": func(w *world) error { return w.db.Unlink(w.ctx, "test", telegram.Name, dora.ID) },
		"the way in":  func(w *world) error { return w.db.SetDisabled(w.ctx, "test", w.users["dora"].ID, true) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval.Config{}, group)
			m, d := w.sends(dora.ID, "Fix the retry loop")
			w.must(loses(w))
			w.becomes(d, completes("secret words"))
			w.wantIn("it stays", w.now(dora.ID, m).Text, "○ Queued · kik")
		})
	}
}

// The outcome of the task's request stands in its message, with the way to it where the
// person may read requests.
func TestTheMessageHasTheRequestsOutcome(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.must(w.db.SetRoles(w.ctx, "test", w.users["dora"].ID, []people.Role{people.Operator, people.Auditor}))
	m, d := w.sends(dora.ID, "Fix the retry loop")
	w.becomes(d, func(_ orchestrator.Tx, d *orchestrator.Delegation) {
		d.State, d.Repository = orchestrator.Checking, "app"
		d.Work.Tree, d.Work.Base.Branch = digits("1"), "main"
	})
	r := w.proposed(d.ID, "1")
	w.clock.step(5 * time.Second)
	w.deliver()
	is := w.now(dora.ID, m)
	w.wantIn("asked", is.Text, "◆ Awaiting approval · kik", "\n◆ changes of coder are waiting for approval · /status_"+r.ID[len(r.ID)-6:])
	w.want("buttons", buttons(is), "Open the task, Open the request")
	w.press(room, w.card(room).ID, "Approve", bob)
	w.clock.step(5 * time.Second)
	w.deliver()
	w.wantIn("approved", w.now(dora.ID, m).Text, "\n⇥ Approved · landing · bob")
}

// While Telegram is away nothing is lost: the newest state arrives in one message.
func TestAnOutageCostsNoEnd(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.tg.Misbehave("sendMessage", bottest.ServerError().Always())
	w.tg.Say(dora.ID, dora, "/send kik Fix the retry loop", 0)
	w.handle()
	var root string
	for key := range w.engine.sent {
		task, err := w.db.TaskByKey(w.ctx, w.users["dora"].ID, key)
		w.must(err)
		root = task.RootID
	}
	w.must(w.moved(root, completes("Done.")))
	w.tg.Behave("sendMessage")
	w.clock.step(time.Minute)
	w.deliver()
	all := w.tg.FromBot(dora.ID)
	if len(all) != 1 {
		t.Fatalf("messages %+v", all)
	}
	w.wantIn("the only one", all[0].Text, "✓ Completed · kik", "Done.")
	// The answer to an edit is lost: the same edit comes again, and no second message.
	m, d := w.sends(dora.ID, "Once more")
	w.tg.Misbehave("editMessageText", bottest.CutConnection().After())
	w.becomes(d, completes("Done again."))
	w.clock.step(time.Minute)
	w.deliver()
	w.wantIn("edited", w.now(dora.ID, m).Text, "Done again.")
	// One that was deleted is not sent again.
	m, d = w.sends(dora.ID, "And again")
	w.tg.Delete(dora.ID, m.ID)
	before := len(w.tg.Calls("sendMessage"))
	w.becomes(d, runs)
	w.becomes(d, completes("Done."))
	if n := len(w.tg.Calls("sendMessage")); n != before {
		t.Errorf("%d messages in place of one that was deleted", n-before)
	}
	// Too many edits: Telegram is left alone for as long as it asks.
	m, d = w.sends(dora.ID, "The last")
	w.tg.Misbehave("editMessageText", bottest.TooMany(30))
	w.becomes(d, completes("Done late."))
	w.wantIn("left alone", w.now(dora.ID, m).Text, "○ Queued")
	w.clock.step(31 * time.Second)
	w.deliver()
	w.wantIn("later", w.now(dora.ID, m).Text, "Done late.")
}

// A report that cannot arrive is a dead letter with its task's title, and comes when it is
// tried again.
func TestAReportThatCannotArriveIsADeadLetter(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.tg.Misbehave("sendMessage", bottest.Blocked())
	w.say(dora.ID, dora, "/send kik Fix the retry loop", 0)
	dead, err := w.gateway.DeadLetters(w.ctx, approval.DeadFilter{})
	w.must(err)
	if len(dead.Items) != 1 || dead.Items[0].Kind != approval.DeadReport || dead.Items[0].Title != "Fix the retry loop" || w.task(dead.Items[0].TaskID).Requester != "dora" {
		t.Fatalf("dead letters %+v", dead.Items)
	}
	n, err := w.gateway.Retry(w.ctx, "test", approval.DeadFilter{Key: dead.Items[0].Key})
	w.must(err)
	w.deliver()
	if m := w.tg.Last(dora.ID); n != 1 || !strings.Contains(m.Text, "○ Queued · kik") {
		t.Errorf("%d tried again: %s", n, m.Text)
	}
}

// forgetful is a gateway whose node dies before the first message is asked for.
type forgetful struct {
	*approval.Gateway
	died bool
}

func (f *forgetful) Follow(ctx context.Context, r approval.Report) error {
	if !f.died {
		f.died = true
		return errors.New("killed")
	}
	return f.Gateway.Follow(ctx, r)
}

// Where the node dies between the task and its message, the same update brings both: one task,
// one message. Two nodes that deliver at once send one, too.
func TestOneMessageHoweverManyNodes(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.desk.Gateway = &forgetful{Gateway: w.gateway}
	w.tg.Say(dora.ID, dora, "/send kik Fix the retry loop", 0)
	for _, body := range w.updates() {
		if err := w.desk.Handle(w.ctx, body); err == nil {
			t.Error("the update is done before its message is asked for")
		}
		w.must(w.desk.Handle(w.ctx, body))
	}
	second := approval.New(approval.Options{Store: w.db, Users: w.db, Now: w.clock.now, Logger: quiet,
		Diff: func(context.Context, approval.Request) (string, error) { return w.diff, nil }}, w.gateway.Config())
	var nodes sync.WaitGroup
	for _, g := range []*approval.Gateway{w.gateway, second, w.gateway, second} {
		nodes.Go(func() {
			if err := g.Deliver(w.ctx, w.channel); err != nil {
				t.Error(err)
			}
		})
	}
	nodes.Wait()
	if all := w.tg.FromBot(dora.ID); len(all) != 1 || len(w.engine.sent) != 1 {
		t.Errorf("%d messages, tasks %+v", len(all), w.engine.sent)
	}
}
