package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
)

// misfortunes are what a call may meet that goes away by itself.
var misfortunes = []bottest.Behaviour{bottest.ServerError()}

func TestTelegramKeepsTheContractOfChannels(t *testing.T) {
	approvaltest.Channel(t, func(t *testing.T) approval.Channel { return newWorld(t, approval.Config{}).channel })
}

func TestCardsGoToTheChatsOrElseToEachVoter(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked("dora")
	for chat, want := range map[int64]string{ann.ID: "Rule default: 1 yes, you, bob or cleo", bob.ID: "Rule default: 1 yes, you, ann or cleo"} {
		w.wantIn("private card", w.card(chat).Text, want)
	}
	for _, chat := range []int64{room, dora.ID, eve.ID, nobody.ID} {
		if all := w.tg.Messages(chat); len(all) > 0 {
			t.Errorf("chat %d has %+v", chat, all)
		}
	}
	w.want("tap", w.press(ann.ID, w.card(ann.ID).ID, "Approve", ann), "Approved. Landing on main.")
	for _, chat := range []int64{ann.ID, bob.ID} {
		w.wantIn("every card", w.card(chat).Text, "⇥ Approved · landing", "ann on Telegram, 12:00 UTC")
	}
	w.wantState(r.ID, approval.Approved, 1)
	if got := w.channel.Addresses(r, nil); len(got) != 0 {
		t.Errorf("without voters: %v", got)
	}
	w.channel.SetSettings(telegram.Settings{Chats: []telegram.Place{group, {Chat: room, Thread: 7}, group}})
	if got := w.channel.Addresses(r, approvaltest.Voters(telegram.Name)); strings.Join(got, " ") != "-100123 -100123:7" {
		t.Errorf("with chats: %v", got)
	}
}

// telegrams is the request's card in the group.
func telegrams(r approval.Request) approval.Card {
	for _, c := range r.Cards {
		if c.Channel == telegram.Name {
			return c
		}
	}
	return approval.Card{}
}

func TestWhatTelegramRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		how   bottest.Behaviour
		after time.Duration // when it is tried again; 0: never
		says  string
	}{
		"too many":     {bottest.TooMany(70), 70 * time.Second, "Too Many Requests"},
		"an error":     {bottest.ServerError(), time.Second, "502"},
		"broken JSON":  {bottest.BrokenJSON(), time.Second, "not of the Bot API"},
		"cut":          {bottest.CutConnection(), time.Second, "does not answer"},
		"blocked":      {bottest.Blocked(), 0, "blocked by the user"},
		"another chat": {bottest.Migrated(-100999), 0, "the group is now -100999: change it under channels.telegram.chats"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval.Config{})
			w.tg.Misbehave("sendMessage", c.how.Always())
			w.channel.SetSettings(telegram.Settings{Chats: []telegram.Place{{Chat: bob.ID}}})
			r := w.asked("dora")
			card := telegrams(r)
			w.wantIn("error", card.Error, c.says)
			if strings.Contains(card.Error, w.tg.Token) {
				t.Error("the token stands in an error")
			}
			w.tg.Behave("sendMessage")
			if card.Dead != (c.after == 0) {
				t.Fatalf("card %+v", card)
			}
			if c.after == 0 {
				return
			}
			w.clock.step(c.after)
			w.deliver()
			if all := w.tg.FromBot(bob.ID); len(all) != 1 {
				t.Errorf("the chat has %+v", all)
			}
			if card := telegrams(w.request(r.ID)); card.Error != "" || card.ExternalID == "" {
				t.Errorf("card %+v", card)
			}
		})
	}
}

func TestADeletedCardIsSentAgain(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	first := w.card(room)
	w.tg.Delete(room, first.ID)
	_, err := w.gateway.Decide(w.ctx, approval.Ballot{RequestID: r.ID, Principal: w.as("bob"), Channel: "web", Verdict: approval.Reject, Digest: r.Revision.Digest, Comment: "No."})
	w.must(err)
	w.deliver()
	if m := w.card(room); m.ID == first.ID || !strings.HasPrefix(m.Text, "⊖ Rejected") {
		t.Errorf("the chat shows %+v", m)
	}
}

func TestAnEditThatChangesNothingIsFine(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	w.tg.Misbehave("editMessageText", bottest.NotModified())
	_, err := w.gateway.Decide(w.ctx, approval.Ballot{RequestID: r.ID, Principal: w.as("bob"), Channel: "web", Verdict: approval.Reject, Digest: r.Revision.Digest})
	w.must(err)
	w.deliver()
	if card := telegrams(w.request(r.ID)); card.Error != "" || card.Shown != w.request(r.ID).Version {
		t.Errorf("card %+v", card)
	}
}

// The file of a diff is sent once for each revision, however often something fails.
func TestTheFileOfADiff(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.diff = strings.Repeat("+line\n", 300)
	w.tg.Misbehave("sendDocument", bottest.ServerError(), bottest.TooMany(5), bottest.CutConnection())
	r := w.asked("dora")
	card := w.card(room)
	w.want("buttons without the file", buttons(card), "Reject, Changes, Open the diff")
	w.wantIn("card", card.Text, "To approve, open the diff: its file is not sent yet.")
	for range 6 {
		w.clock.step(10 * time.Second)
		w.deliver()
	}
	files := 0
	for _, m := range w.tg.FromBot(room) {
		if m.Document != nil {
			files++
			if m.ReplyTo != card.ID || len(m.Text) > 200 || string(m.Document.Data) != w.diff {
				t.Errorf("file %+v", m)
			}
		}
	}
	if all := w.tg.FromBot(room); files != 1 || len(all) != 2 {
		t.Fatalf("%d files in %d messages", files, len(all))
	}
	w.wantIn("name", telegrams(w.request(r.ID)).ExternalID, "@1/")
	w.want("buttons with the file", buttons(w.card(room)), "Approve, Reject, Changes, Open the diff")
	w.press(room, card.ID, "Changes", bob)
	w.say(room, bob, "Handle the timeout too.", w.tg.Last(room).ID)
	w.again(w.request(r.ID), "2")
	if m := w.tg.Last(room); m.Document == nil || !strings.HasSuffix(m.Document.Name, "rev2.diff") {
		t.Errorf("the second revision's file: %+v", m)
	}
}

func TestAFileThatTelegramDoesNotTake(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.diff = strings.Repeat("+line\n", 300)
	w.tg.Misbehave("sendDocument", bottest.Refuse(413, "Request Entity Too Large"))
	w.asked("dora")
	card := w.card(room)
	w.want("buttons", buttons(card), "Reject, Changes, Open the diff")
	w.wantIn("card", card.Text, "diff not here: Telegram did not take its file", "To approve, open the diff: Telegram did not take its file.")
	if n := len(w.tg.Calls("sendDocument")); n != 1 {
		t.Errorf("%d attempts", n)
	}
}

func TestADiffThatCannotBeReadIsWaitedFor(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	fails := errors.New("the repository is away")
	w.channel = telegram.NewChannel(telegram.ChannelOptions{Sender: w.client, Buttons: w.db, Now: w.clock.now, Log: quiet,
		Diff: func(context.Context, approval.Request) (string, error) { return "", fails }}, telegram.Settings{Chats: []telegram.Place{group}})
	r := w.asked("dora")
	if all := w.tg.FromBot(room); len(all) != 0 {
		t.Fatalf("shown at once: %+v", all)
	}
	w.wantIn("error", telegrams(r).Error, "the repository is away")
	for range 3 {
		w.clock.step(10 * time.Second)
		w.deliver()
	}
	w.want("buttons", buttons(w.card(room)), "Reject, Changes")
	w.wantIn("card", w.card(room).Text, "diff not here: it could not be read")
}

// A group gets one new message in 3 s at most; edits are never held up.
func TestAGroupIsNotFlooded(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	var all []approval.Request
	for range 4 {
		d := w.delegated("dora")
		w.must(w.gateway.Ask(w.ctx, d, plain(d)))
		all = append(all, w.request(w.delegation(d.ID).ApprovalID))
	}
	for n := 1; n <= 4; n++ {
		w.must(w.gateway.Deliver(w.ctx, w.channel))
		if got := len(w.tg.FromBot(room)); got != n {
			t.Fatalf("%d messages after %d rests", got, n-1)
		}
		w.clock.step(2900 * time.Millisecond)
		w.must(w.gateway.Deliver(w.ctx, w.channel))
		if got := len(w.tg.FromBot(room)); got != n {
			t.Fatalf("%d messages before 3 s were over", got)
		}
		w.clock.step(100 * time.Millisecond)
	}
	for _, r := range all {
		_, err := w.gateway.Decide(w.ctx, approval.Ballot{RequestID: r.ID, Principal: w.as("bob"), Channel: "web", Verdict: approval.Approve, Digest: r.Revision.Digest})
		w.must(err)
	}
	w.must(w.gateway.Deliver(w.ctx, w.channel))
	for _, m := range w.tg.FromBot(room) {
		w.wantIn("every card at once", m.Text, "⇥ Approved · landing")
	}
}

func TestRemindersAndEscalationsAnswerTheCard(t *testing.T) {
	w := newWorld(t, approval.Config{Expires: 3 * time.Hour}, group)
	r := w.asked("dora")
	card := w.card(room)
	w.clock.step(2*time.Hour + 30*time.Second)
	view := approvaltest.View(r)
	w.must(w.channel.Notify(w.ctx, approval.Notice{Kind: approval.Reminder, Address: "-100123", RequestID: r.ID}, r, view))
	m := w.tg.Last(room)
	w.want("reminder", m.Text, "⏰ Still waiting · expires in 1 h\nFix the retry loop\nann or bob")
	w.want("button", buttons(m), "Open the diff")
	if m.ReplyTo != card.ID {
		t.Errorf("it answers %d", m.ReplyTo)
	}
	err := w.channel.Notify(w.ctx, approval.Notice{Kind: approval.Reminder, Address: "-100123"}, r, view)
	w.wantIn("a second message at once", fmt.Sprint(err), "a moment ago")
	w.clock.step(3 * time.Second)
	r.Cards = nil
	w.must(w.channel.Notify(w.ctx, approval.Notice{Kind: approval.Escalation, To: []string{"maintainers", "leads"}, Address: "-100123"}, r, view))
	m = w.tg.Last(room)
	w.want("escalation", m.Text, "◆ Now also: maintainers and leads\nFix the retry loop\nann or bob")
	if m.ReplyTo != 0 {
		t.Errorf("without a card it answers %d", m.ReplyTo)
	}
	if err := w.channel.Notify(w.ctx, approval.Notice{Address: "elsewhere"}, r, view); !approval.IsGone(err) {
		t.Errorf("to no place: %v", err)
	}
}

func TestADigest(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	var items []approval.DigestItem
	for i := range 60 {
		r := approvaltest.Request(approval.Pending)
		r.ID = r.ID[:len(r.ID)-2] + string(rune('a'+i/10)) + string(rune('0'+i%10))
		r.Title = strings.Repeat("Fix 😀 ", 20)
		items = append(items, approval.DigestItem{Request: r, View: approvaltest.View(r)})
	}
	id, err := w.channel.Digest(w.ctx, "-100123", "", items[:7])
	w.must(err)
	first := w.tg.Last(room)
	w.wantIn("seven", first.Text, "◆ 7 requests need you\n\n◆ Fix 😀 Fix 😀", " · 1 file · /status_c81ma0\n")
	w.want("button", buttons(first), "Open the list")
	items[0].Request.State = approval.Landed
	again, err := w.channel.Digest(w.ctx, "-100123", id, items)
	w.must(err)
	m := w.tg.Last(room)
	if again != id || m.ID != first.ID {
		t.Fatalf("the digest became %s", again)
	}
	w.wantIn("all", m.Text, "◆ 59 requests need you\n\n✓ Fix 😀", "\nand ")
	for i := range items {
		items[i].Request.State = approval.Rejected
	}
	_, err = w.channel.Digest(w.ctx, "-100123", id, items)
	w.must(err)
	w.wantIn("none", w.tg.Last(room).Text, "✓ 60 requests are decided\n")
}

func TestATestCard(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	_, err := w.channel.Test(w.ctx, group)
	w.must(err)
	m := w.tg.Last(room)
	w.wantIn("card", m.Text, "✓ It works")
	w.clock.step(1200 * time.Millisecond)
	w.want("tap", w.press(room, m.ID, "Tap me", bob), "It works: 1.2 s")
	w.want("nobody's tap", w.press(room, m.ID, "Tap me", nobody), "You are not linked. Open Settings → Channels.")
	if _, err := w.channel.Test(w.ctx, telegram.Place{Chat: -42}); !approval.IsGone(err) {
		t.Errorf("a chat that does not exist: %v", err)
	}
}
