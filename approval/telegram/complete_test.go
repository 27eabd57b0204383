package telegram_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/orchestrator"
)

// long is a diff that goes into a file.
var long = strings.Repeat("+line\n", 300)

const (
	without  = "Reject, Changes, Open the diff"
	with     = "Approve, " + without
	notWhole = "Not counted: nothing says that all of the change is in this card. To approve, open the page."
)

// half asks for a change whose diff goes into a file, and shows its card in the group: the
// file has to wait for 3 s.
func (w *world) half() approval.Request {
	w.Helper()
	w.diff = long
	d := w.delegated("dora")
	w.must(w.gateway.Ask(w.ctx, d, plain(d)))
	w.must(w.gateway.Deliver(w.ctx, w.channel))
	return w.request(w.delegation(d.ID).ApprovalID)
}

// early is the text of an Approve that is under the newest card all the same, as cards of
// earlier versions had it.
func (w *world) early(r approval.Request) (card bottest.Message, text string) {
	w.Helper()
	card, text = w.card(room), orchestrator.NewID("x", w.clock.now())
	sum := sha256.Sum256([]byte(text))
	w.must(w.db.AddButtons(w.ctx, []telegram.Bound{{Hash: hex.EncodeToString(sum[:]), RequestID: r.ID, Revision: r.Revision.N, Digest: r.Revision.Digest,
		Chat: room, Message: card.ID, Verdict: approval.Approve, At: w.clock.now()}}))
	return card, text
}

// files counts the files in the group.
func (w *world) files() int {
	n := 0
	for _, m := range w.tg.FromBot(room) {
		if m.Document != nil {
			n++
		}
	}
	return n
}

// lose forgets what became of the last delivery, as a crash before it was stored does.
func (w *world) lose(r approval.Request, externalID string) {
	w.Helper()
	card := telegrams(w.request(r.ID))
	card.ExternalID, card.Shown, card.Error, card.Attempts, card.DueAt = externalID, 0, "", 0, w.clock.now()
	w.must(w.db.SaveCard(w.ctx, card))
}

// A card whose diff goes into a file has no Approve before that is in the chat, and a press
// of one counts only then.
func TestApproveComesAfterTheFile(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.half()
	card, text := w.early(r)
	w.want("buttons before the file", buttons(card), without)
	w.wantIn("card before the file", card.Text, "diff not here: its file is not sent yet", "To approve, open the diff: its file is not sent yet.")
	query := w.tg.PressData(room, card.ID, text, bob)
	w.must(w.desk.Handle(w.ctx, w.updates()[0]))
	w.want("a press before the file", w.tg.Answers(query)[0].Text, notWhole)
	w.wantState(r.ID, approval.Pending, 0)
	w.wantRefused(r.TaskID, "bob not_whole")

	w.clock.step(3 * time.Second)
	w.deliver()
	if all := w.tg.FromBot(room); len(all) != 2 || w.files() != 1 || w.card(room).ID != card.ID {
		t.Fatalf("the chat has %+v", all)
	}
	w.want("buttons with the file", buttons(w.card(room)), with)
	w.wantIn("card with the file", w.card(room).Text, "diff in the file below")
	w.want("a press", w.press(room, card.ID, "Approve", bob), "Approved. Landing on main.")
	w.wantState(r.ID, approval.Approved, 1)
}

// However the file fails, Approve does not come, and no press of one counts.
func TestAFileThatFailsBringsNoApprove(t *testing.T) {
	for name, how := range map[string]bottest.Behaviour{
		"refused": bottest.Refuse(413, "Request Entity Too Large"), "an error": bottest.ServerError(), "cut": bottest.CutConnection(), "too many": bottest.TooMany(5),
		"an answer without the file":   bottest.Says(`{"ok":true,"result":{"message_id":7,"chat":{"id":-100123}}}`),
		"an answer with half the file": bottest.Says(`{"ok":true,"result":{"message_id":7,"chat":{"id":-100123},"document":{"file_id":"a","file_size":3}}}`),
		"an answer about another chat": bottest.Says(`{"ok":true,"result":{"message_id":7,"chat":{"id":5},"document":{"file_id":"a"}}}`),
		"a number that no message has": bottest.Says(`{"ok":true,"result":{"message_id":-2,"chat":{"id":-100123},"document":{"file_id":"a"}}}`),
		"an answer that is no message": bottest.Says(`{"ok":true,"result":true}`),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval.Config{}, group)
			w.tg.Misbehave("sendDocument", how.Always())
			r := w.half()
			for range 12 {
				w.clock.step(10 * time.Minute)
				w.deliver()
			}
			card, text := w.early(r)
			w.want("buttons", buttons(card), without)
			w.wantIn("card", card.Text, "To approve, open the diff: ")
			w.want("a press", w.pressData(room, card.ID, text, bob), notWhole)
			w.wantState(r.ID, approval.Pending, 0)
			w.want("no", w.press(room, card.ID, "Reject", bob), "Why? Reply to the question below.")
		})
	}
}

// A node dies between a card and its file, or between that and storing it: all is sent
// again, and Approve stands only where the file is.
func TestACrashBetweenACardAndItsFile(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.half()
	first := w.card(room)
	w.lose(r, "")
	w.clock.step(3 * time.Second)
	w.deliver()
	again := w.card(room)
	if again.ID == first.ID || w.files() != 1 {
		t.Fatalf("the chat has %+v", w.tg.FromBot(room))
	}
	old, _ := w.tg.Message(room, first.ID)
	w.want("buttons of the first", buttons(old), without)
	w.want("buttons of the second", buttons(again), with)

	known := telegrams(w.request(r.ID)).ExternalID
	w.lose(r, strings.Split(known, "/")[0])
	w.want("a press before it is known again", w.press(room, again.ID, "Approve", bob), notWhole)
	if w.files() != 2 || telegrams(w.request(r.ID)).ExternalID == known {
		t.Fatalf("the chat has %+v", w.tg.FromBot(room))
	}
	w.want("buttons", buttons(w.card(room)), with)
	w.want("a press", w.press(room, again.ID, "Approve", bob), "Approved. Landing on main.")
}

// The file was sent, and the edit that brings Approve fails: the file is not sent twice.
func TestTheFileIsThereAndTheEditFails(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.half()
	w.tg.Misbehave("editMessageText", bottest.NotModified(), bottest.ServerError())
	w.clock.step(3 * time.Second)
	w.must(w.gateway.Deliver(w.ctx, w.channel))
	w.want("buttons", buttons(w.card(room)), without)
	w.wantIn("error", telegrams(w.request(r.ID)).Error, "502")
	w.clock.step(10 * time.Second)
	w.deliver()
	w.want("buttons", buttons(w.card(room)), with)
	if w.files() != 1 {
		t.Errorf("%d files", w.files())
	}
}

// A deleted card comes again without Approve until its file has come again too.
func TestADeletedCardWithAFile(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.half()
	w.clock.step(3 * time.Second)
	w.deliver()
	first := w.card(room)
	w.want("buttons", buttons(first), with)
	w.tg.Delete(room, first.ID)
	card := telegrams(w.request(r.ID))
	card.Shown = 0
	w.must(w.db.SaveCard(w.ctx, card))
	w.must(w.gateway.Deliver(w.ctx, w.channel))
	if again := w.card(room); again.ID == first.ID || buttons(again) != without {
		t.Fatalf("the card came again as %+v", again)
	}
	w.clock.step(3 * time.Second)
	w.deliver()
	w.want("buttons", buttons(w.card(room)), with)
	if w.files() != 2 {
		t.Errorf("%d files", w.files())
	}
}
