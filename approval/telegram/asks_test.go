package telegram_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/approval/telegram"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
)

// asks makes a task of somebody's in which coder wants something of people, and shows it.
func (w *world) asks(by string, a agent.Ask) approval.Request {
	w.Helper()
	now := w.clock.now()
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now), RootID: orchestrator.NewID(orchestrator.DelegationPrefix, now),
		Agent: "coder", Text: "Release it", Repository: "app", RequesterID: w.users[by].ID, Requester: by, Via: origin.From(origin.Web), CreatedAt: now}
	id := orchestrator.NewID(orchestrator.RequestPrefix, now)
	d := orchestrator.Delegation{ID: task.RootID, TaskID: task.ID, To: "coder", Text: task.Text, State: orchestrator.Waiting, Attempt: 1,
		HopKey: "root", Repository: "app", Requester: by, CreatedAt: now, Since: now}
	d.Work.Asks = []orchestrator.Asked{{Content: a.Content(), Request: id, State: agent.AskOpen}}
	put, err := w.gateway.Asks(w.ctx, true)
	w.must(err)
	_, _, err = w.db.NewTask(w.ctx, task, func(tx orchestrator.Tx) error {
		if err := tx.Insert(w.ctx, &d); err != nil {
			return err
		}
		return put.Put(w.ctx, tx, &d, id, a, true)
	})
	w.must(err)
	w.deliver()
	return w.request(id)
}

// outcome is what the agent is told.
func (w *world) outcome(r approval.Request) agent.AnswerState {
	w.Helper()
	return w.delegation(r.DelegationID).Work.Asks[0].State
}

func calls(command string) agent.Ask {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return agent.Ask{Action: &agent.Action{Tool: "Bash", Input: input}}
}

func wonders(text string, choices ...string) agent.Ask {
	return agent.Ask{Question: &agent.Question{Text: text, Choices: choices}}
}

func (w *world) grants(r approval.Request) []approval.Grant {
	w.Helper()
	all, err := w.gateway.Grants(w.ctx, r.TaskID)
	w.must(err)
	return all
}

func TestACallIsApprovedOnceOrForItsTask(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Expires: time.Hour}, group)
	r := w.asks("dora", calls("npm publish"))
	card := w.card(room)
	w.want("buttons", buttons(card), "Approve, For this task, Reject, Open the page")
	w.wantIn("card", card.Text, "◆ Approval needed · coder wants to call a tool\nCall Bash: npm publish\ndora → coder · app\n", "For this task: Bash with commands that begin: npm publish\n",
		"command: npm publish")
	w.want("answer", w.press(room, card.ID, "Approve", bob), "Approved. coder may make this call, once.")
	w.wantState(r.ID, approval.Approved, 1)
	if len(w.grants(r)) != 0 || w.outcome(r) != agent.AskAllowed {
		t.Errorf("once: grants %+v, the agent has %s", w.grants(r), w.outcome(r))
	}
	w.want("again", w.pressData(room, card.ID, data(card, "Approve"), bob), "Approved. coder may make this call, once.")
	w.want("wider, after the end", w.pressData(room, card.ID, data(card, "For this task"), bob), "Too late: bob approved at 12:00 UTC.")
	w.want("another", w.pressData(room, card.ID, data(card, "For this task"), ann), "Too late: bob approved at 12:00 UTC.")
	w.wantState(r.ID, approval.Approved, 1)
	w.wantIn("card after", w.card(room).Text, "✓ Approved · coder may make this call\n", "bob on Telegram, 12:00 UTC · 1 of 1")
	w.want("buttons after", buttons(w.card(room)), "Open")

	r = w.asks("dora", calls("npm test"))
	card = w.card(room)
	w.want("for the task", w.press(room, card.ID, "For this task", bob), "Approved for this task. coder may make such calls.")
	got := w.wantState(r.ID, approval.Approved, 1)
	if all := w.grants(r); len(all) != 1 || all[0].Scope.String() != "Bash with commands that begin: npm test" || all[0].By[0].User != "bob" || !got.Decisions[0].ForTask {
		t.Errorf("grants %+v, decision %+v", all, got.Decisions[0])
	}
	w.wantIn("card after", w.card(room).Text, "✓ Approved for this task · coder may make such calls\n", "For this task: Bash with commands that begin: npm test")
	w.wantRefused(r.TaskID)
}

func TestOneOfTwoMeantTheCallOnce(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.rules(policy.RuleConfig{Name: "two", When: `tool == "Bash"`, Need: new(2)})
	r := w.asks("dora", calls("npm publish"))
	card := w.card(room)
	w.wantIn("first", w.press(room, card.ID, "For this task", bob), "Your yes counts: 1 of 2.")
	w.wantIn("bob thinks again", w.pressData(room, card.ID, data(card, "Approve"), bob), "a person counts once")
	w.want("second", w.press(room, card.ID, "Approve", ann), "Approved. coder may make this call, once.")
	w.wantState(r.ID, approval.Approved, 2)
	if all := w.grants(r); len(all) != 0 {
		t.Errorf("grants %+v", all)
	}
}

// rules puts rules about calls in force.
func (w *world) rules(rules ...policy.RuleConfig) {
	w.Helper()
	p, problems := policy.CompileActions(rules, nil)
	if len(problems) > 0 {
		w.Fatal(problems)
	}
	c := w.gateway.Config()
	c.Actions = p
	w.gateway.SetConfig(c)
}

func TestARejectedCallHasItsReason(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asks("dora", calls("npm publish"))
	w.press(room, w.card(room).ID, "Reject", bob)
	why := w.tg.Last(room)
	if !why.ForceReply || why.Placeholder != "Why not" {
		t.Fatalf("asked %+v", why)
	}
	w.want("answer", w.say(room, bob, "Not on a Friday.", why.ID).Text, "Rejected. coder does not make this call.")
	if got := w.wantState(r.ID, approval.Rejected, 1); got.Decisions[0].Comment != "Not on a Friday." || w.outcome(r) != agent.AskRefused {
		t.Errorf("decision %+v, the agent has %s", got.Decisions[0], w.outcome(r))
	}
	w.wantIn("card", w.card(room).Text, "⊖ Rejected · not called\n", `"Not on a Friday."`)
}

// An edit on the page makes a card of its own; the buttons of the one before decide nothing.
func TestACallIsEditedOnItsPage(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asks("dora", calls("npm publish"))
	old := w.card(room)
	_, err := w.gateway.Decide(w.ctx, approval.Ballot{RequestID: r.ID, Principal: w.as("ann"), Channel: "web", Verdict: approval.Edit, Digest: r.Revision.Digest, Revision: 1,
		Input: json.RawMessage(`{"command":"npm pack --dry-run"}`)})
	w.must(err)
	w.deliver()
	card := w.card(room)
	if card.ID == old.ID {
		t.Fatal("the new input has no card of its own")
	}
	w.wantIn("new card", card.Text, "rev 2\nCall Bash: npm pack --dry-run\n", "edited by ann, from rev 1\n", "command: npm pack --dry-run", "For this task: Bash with commands that begin: npm pack")
	w.want("old", w.pressData(room, old.ID, data(old, "Approve"), bob), "This is revision 1; 2 is newer.")
	w.want("old, wider", w.pressData(room, old.ID, data(old, "For this task"), bob), "This is revision 1; 2 is newer.")
	for _, m := range w.tg.FromBot(room) {
		if m.ID == old.ID {
			w.wantIn("old card", m.Text, "⧉ Replaced by revision 2 · buttons are off\n", "rev 1 → rev 2, edited by ann")
		}
	}
	w.wantIn("who wrote it", w.press(room, card.ID, "Approve", ann), "edit")
	w.wantState(r.ID, approval.Pending, 1)
	w.want("bob", w.press(room, card.ID, "Approve", bob), "Approved. coder may make this call, once.")
	w.wantState(r.ID, approval.Approved, 2)
	if got := w.delegation(r.DelegationID).Work.Asks[0]; string(got.Input) != `{"command":"npm pack --dry-run"}` {
		t.Errorf("what runs: %s", got.Input)
	}
}

// What ended without a verdict says so, under buttons that decide nothing any more.
func TestCallsAndQuestionsEndWithoutAVerdict(t *testing.T) {
	w := newWorld(t, approval.Config{Expires: time.Hour, Remind: []time.Duration{30 * time.Minute}}, group)
	call, question := w.asks("dora", calls("npm publish")), w.asks("dora", wonders("Which colour?", "red"))
	cards := w.tg.FromBot(room)
	if len(cards) != 2 {
		t.Fatalf("%d cards", len(cards))
	}
	w.clock.step(35 * time.Minute)
	w.must(w.gateway.Act(w.ctx))
	w.deliver()
	w.deliver()
	reminders := 0
	for _, m := range w.tg.FromBot(room) {
		if strings.HasPrefix(m.Text, "⏰ Still waiting") {
			reminders++
		}
	}
	if reminders != 2 {
		t.Errorf("%d reminders", reminders)
	}
	w.wantIn("the reminder", w.tg.Last(room).Text, "⏰ Still waiting · expires in", "Which colour?", "To answer, reply to this message.")
	w.wantIn("a reply to the reminder", w.say(room, eve, "red", w.tg.Last(room).ID).Text, "Deciding needs the role approver")
	w.clock.step(time.Hour)
	w.must(w.gateway.Sweep(w.ctx))
	w.deliver()
	w.wantState(call.ID, approval.Expired, 0)
	w.wantState(question.ID, approval.Expired, 0)
	var all []string
	for _, m := range w.tg.FromBot(room) {
		all = append(all, m.Text)
	}
	text := strings.Join(all, "\n")
	w.wantIn("cards", text, "⌛ Expired, not approved · not called\nCall Bash: npm publish\n", "⌛ Nobody answered · coder was told so\nWhich colour?\n")
	w.wantIn("a late yes", w.pressData(room, cards[0].ID, data(cards[0], "Approve"), bob), "Too late: it expired at")
	w.wantIn("a late answer", w.pressData(room, cards[1].ID, data(cards[1], "1. red"), bob), "Too late: it expired at", "not answered")
	w.wantIn("a late reply", w.say(room, bob, "red", cards[1].ID).Text, "Too late: it expired at", "not answered")
	w.wantState(call.ID, approval.Expired, 0)
	w.wantState(question.ID, approval.Expired, 0)
}

// A call that its run does not wait for any more says so, and its buttons count nothing.
func TestACallWhoseRunIsOver(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	call, question := w.asks("dora", calls("npm publish")), w.asks("dora", wonders("Which colour?", "red"))
	cards := w.tg.FromBot(room)
	for _, r := range []approval.Request{call, question} {
		w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error { return tx.CloseAsk(w.ctx, r.ID) }))
	}
	w.deliver()
	for i, want := range []string{"■ Cancelled · not called\nCall Bash: npm publish", "■ Cancelled · no answer is needed\nWhich colour?"} {
		w.want("card", w.tg.FromBot(room)[i].Text, want)
	}
	w.want("a yes", w.pressData(room, cards[0].ID, data(cards[0], "Approve"), bob), "Too late: this request is cancelled.")
	w.want("an answer", w.pressData(room, cards[1].ID, data(cards[1], "1. red"), bob), "Too late: this request is cancelled.")
	w.want("a reply", w.say(room, bob, "red", cards[1].ID).Text, "Too late: this request is cancelled.")
	w.wantState(call.ID, approval.Cancelled, 0)
	w.wantState(question.ID, approval.Cancelled, 0)
}

// Many calls at once are lines of one message; each line leads to its card.
func TestManyCallsAreLinesOfOneMessage(t *testing.T) {
	w := newWorld(t, approval.Config{})
	for range 8 {
		w.asks("dora", calls("npm publish"))
	}
	w.clock.step(time.Minute)
	w.deliver()
	list := w.tg.Last(bob.ID)
	w.wantIn("list", list.Text, "requests need you\n", "Call Bash: npm publish · call · /status_")
	_, line, _ := strings.Cut(list.Text, "/status_")
	w.say(bob.ID, bob, "/status_"+line[:6], 0)
	w.deliver()
	card := w.card(bob.ID)
	w.want("its card", buttons(card), "Approve, For this task, Reject, Open the page")
	w.want("a yes", w.press(bob.ID, card.ID, "Approve", bob), "Approved. coder may make this call, once.")
}

func TestAQuestionIsAnsweredByAButton(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asks("ann", wonders("Which colour?", "red", "blue"))
	card := w.card(room)
	w.want("buttons", buttons(card), "1. red, 2. blue, No answer, Open the page")
	for _, row := range card.Buttons {
		for _, b := range row {
			if len(b.Data) > 64 {
				t.Errorf("%d bytes in %q", len(b.Data), b.Text)
			}
		}
	}
	w.want("not linked", w.press(room, card.ID, "2. blue", nobody), "You are not linked. Open Settings → Channels.")
	w.wantIn("no approver", w.press(room, card.ID, "2. blue", dora), "Deciding needs the role approver")
	w.want("elsewhere", w.pressData(bob.ID, 1, data(card, "2. blue"), bob), "This button is not known any more.")
	w.wantState(r.ID, approval.Pending, 0)
	w.want("answer", w.press(room, card.ID, "2. blue", bob), "Answered. coder goes on with it.")
	if got := w.wantState(r.ID, approval.Answered, 1); got.Decisions[0].Comment != "blue" || got.Decisions[0].Channel != "telegram" || w.outcome(r) != agent.AskAnswered {
		t.Errorf("decision %+v, the agent has %s", got.Decisions[0], w.outcome(r))
	}
	w.want("again", w.pressData(room, card.ID, data(card, "2. blue"), bob), "Answered. coder goes on with it.")
	w.want("otherwise", w.pressData(room, card.ID, data(card, "1. red"), bob), "Too late: bob answered at 12:00 UTC.")
	w.want("no answer", w.pressData(room, card.ID, data(card, "No answer"), ann), "Too late: bob answered at 12:00 UTC.")
	w.wantState(r.ID, approval.Answered, 1)
	w.wantIn("card", w.card(room).Text, "✓ Answered · coder goes on with it\nWhich colour?\nbob on Telegram, 12:00 UTC\n\"blue\"")
	w.want("buttons after", buttons(w.card(room)), "Open")
}

// A reply to its card answers a question: to that card, by those who may, and nothing else does.
func TestAQuestionIsAnsweredByAReply(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	first, second := w.asks("dora", wonders("Why?")), w.asks("dora", wonders("Which colour?", "red"))
	cards := w.tg.FromBot(room)
	if len(cards) != 2 {
		t.Fatalf("%d cards", len(cards))
	}
	w.want("not linked", w.say(room, nobody, "because", cards[0].ID).Text, "You are not linked. Open Settings → Channels.")
	w.wantIn("an auditor", w.say(room, eve, "because", cards[0].ID).Text, "Deciding needs the role approver")
	w.wantIn("a command", w.say(room, bob, "/pending", cards[0].ID).Text, "Why? · question · /status_")
	w.wantIn("no text", w.say(room, bob, " ", cards[0].ID).Text, "Send the answer as text")
	before := len(w.tg.FromBot(room))
	w.say(room, bob, "because", 0) // to nobody
	if after := w.tg.FromBot(room); len(after) != before {
		t.Errorf("a message in the group was answered: %+v", after[before:])
	}
	w.wantState(first.ID, approval.Pending, 0)
	w.wantRefused(first.TaskID, "telegram:1099 not_linked", "eve not_an_approver")

	w.tg.DuplicateUpdates(true)
	w.want("answer", w.say(room, bob, "/usr is read-only.\nUse <b>/opt</b>.", cards[0].ID).Text, "Answered. coder goes on with it.")
	w.tg.DuplicateUpdates(false)
	got := w.wantState(first.ID, approval.Answered, 1)
	if d := got.Decisions[0]; d.Comment != "/usr is read-only.\nUse <b>/opt</b>." || d.User != "bob" || w.outcome(first) != agent.AskAnswered {
		t.Errorf("decision %+v, the agent has %s", d, w.outcome(first))
	}
	w.wantState(second.ID, approval.Pending, 0)
	w.want("too late", w.say(room, ann, "it is not", cards[0].ID).Text, "Too late: bob answered at 12:00 UTC.")
	w.want("who asked", w.say(room, dora, "green", cards[1].ID).Text, "Answered. coder goes on with it.")
	w.wantState(first.ID, approval.Answered, 1)
	if got := w.wantState(second.ID, approval.Answered, 1); got.Decisions[0].Comment != "green" || got.Decisions[0].User != "dora" {
		t.Errorf("decision %+v", got.Decisions[0])
	}
	w.wantRefused(first.TaskID, "telegram:1099 not_linked", "eve not_an_approver", "ann already_decided")
}

// Who asked for the task gets its questions in private, also where cards go to a group, and
// may answer without the role approver; ending it without an answer is for approvers.
func TestWhoAskedForTheTaskIsAskedToo(t *testing.T) {
	for name, chats := range map[string][]telegram.Place{"group": {group}, "private": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval.Config{}, chats...)
			w.asks("dora", calls("npm publish"))
			if all := w.tg.FromBot(dora.ID); len(all) != 0 {
				t.Errorf("dora is asked about a call: %+v", all)
			}
			r := w.asks("dora", wonders("Which colour?", "red", "blue"))
			card := w.card(dora.ID)
			w.want("buttons", buttons(card), "1. red, 2. blue, Open the page")
			w.wantIn("card", card.Text, "\nAsked: you, ann, bob or cleo\n")
			w.wantIn("chatter", w.say(dora.ID, dora, "blue", 0).Text, "To answer a question of an agent, reply to its message.")
			w.wantState(r.ID, approval.Pending, 0)
			w.want("answer", w.press(dora.ID, card.ID, "2. blue", dora), "Answered. coder goes on with it.")
			w.wantState(r.ID, approval.Answered, 1)
			w.wantIn("card after", w.card(dora.ID).Text, "✓ Answered · coder goes on with it\n")
			w.wantIn("chatter", w.say(dora.ID, dora, "blue", 0).Text, "/help")

			r = w.asks("dora", wonders("And the size?"))
			w.want("reply", w.say(dora.ID, dora, "large", w.card(dora.ID).ID).Text, "Answered. coder goes on with it.")
			w.wantState(r.ID, approval.Answered, 1)
		})
	}
}

// A question that goes to nobody else still has who asked for the task.
func TestAQuestionWithoutApproversIsNotStuck(t *testing.T) {
	w := newWorld(t, approval.Config{Groups: map[string][]string{"ops": {}}})
	a := wonders("Which colour?")
	a.Question.To = "ops"
	r := w.asks("dora", a)
	e, err := w.gateway.Electorate(w.ctx)
	w.must(err)
	if e.Stuck(r) || e.TooFew(r) != "" || e.Turn(r, "") != "dora" {
		t.Errorf("stuck %t, too few %q, turn %q", e.Stuck(r), e.TooFew(r), e.Turn(r, ""))
	}
	if got := w.wantState(r.ID, approval.Pending, 0); !slices.Equal(got.Rule.From, []string{"ops"}) {
		t.Errorf("asked %v", got.Rule.From)
	}
	w.wantIn("card", w.card(dora.ID).Text, "◆ coder asks\n", "\nAsked: you\n")
	w.must(w.db.SetDisabled(w.ctx, "test", w.users["dora"].ID, true))
	w.wantIn("disabled", w.say(dora.ID, dora, "red", w.card(dora.ID).ID).Text, "not")
	w.wantState(r.ID, approval.Pending, 0)
}
