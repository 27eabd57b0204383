package telegram_test

import (
	"slices"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

// follow is what was sent to go on with a task, by the text.
func (w *world) follow(text string) orchestrator.Submission {
	w.Helper()
	for _, s := range w.engine.sent {
		if s.Text == text {
			return s
		}
	}
	w.Fatalf("nobody sent %q: %v", text, w.engine.sent)
	return orchestrator.Submission{}
}

// A reply to the message of a task goes on with it: at work its agent is told, afterwards it
// is a task of the thread with a message of its own, which takes replies, too.
func TestAReplyToATasksMessageGoesOnWithIt(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	m, d := w.sends(dora.ID, "Fix the retry loop")
	w.wantIn("at work", w.say(dora.ID, dora, "and mind the tests", m.ID).Text, "Said to kik")
	w.becomes(d, completes("I fixed it."))
	next := w.say(dora.ID, dora, "now document it", m.ID)
	w.wantIn("the follow-up", next.Text, "○ Queued · kik\nnow document it\n")
	if s := w.follow("now document it"); s.Follows != d.TaskID || s.Key == "" || s.Requester != "dora" {
		t.Errorf("it was sent as %+v", s)
	}
	w.wantIn("a reply to that", w.say(dora.ID, dora, "in German", next.ID).Text, "Said to kik")
	if want := []string{"dora: and mind the tests", "dora: in German"}; !slices.Equal(w.engine.told, want) {
		t.Errorf("kik was told %q", w.engine.told)
	}
	w.wantIn("no text", w.say(dora.ID, dora, "", next.ID).Text, "Send it as text")
	w.wantIn("a command all the same", w.say(dora.ID, dora, "/help", next.ID).Text, "/pending")
}

// What others reply in a group is talk, and so is a reply to what is about no task.
func TestOnlyWhoSentATaskGoesOnWithItsMessage(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	m, d := w.sends(room, "Fix the retry loop")
	w.becomes(d, completes("I fixed it."))
	sent := len(w.tg.FromBot(room))
	w.say(room, bob, "thanks!", m.ID)
	w.say(room, dora, "not to a task", 99999)
	if n := len(w.tg.FromBot(room)); n != sent || len(w.engine.sent) != 1 {
		t.Errorf("%d messages, %d tasks", n-sent, len(w.engine.sent))
	}
	w.wantIn("dora goes on", w.say(room, dora, "and the docs", m.ID).Text, "Queued · kik")
}

// /new begins another thread with the agent of the newest task that was sent from there.
func TestNewBeginsAnotherThread(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.wantIn("before any", w.say(dora.ID, dora, "/new Something", 0).Text, "/send kik")
	m, d := w.sends(dora.ID, "Fix the retry loop")
	w.becomes(d, completes("I fixed it."))
	for text, reply := range map[string]int{"Another matter": 0, "A third": m.ID} {
		w.wantIn(text, w.say(dora.ID, dora, "/new "+text, reply).Text, "Queued · kik\n"+text)
		if s := w.follow(text); s.Follows != "" || s.Agent != "kik" {
			t.Errorf("%s was sent as %+v", text, s)
		}
	}
	w.wantIn("no text", w.say(dora.ID, dora, "/new", 0).Text, "Write what to do")
	w.wantIn("no operator", w.say(bob.ID, bob, "/new x", 0).Text, "role operator")
}
