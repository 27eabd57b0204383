package telegram_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
)

// receives runs the receiver with the desk until the test ends. It returns how many
// handlings were begun, each of which costs the database two writes.
func (w *world) receives() *atomic.Int64 {
	w.Helper()
	inbox := &begins{Inbox: w.db}
	r, err := telegram.NewReceiver(telegram.ReceiverOptions{Client: w.client, Inbox: inbox, Handle: w.desk.Handle, Drop: w.desk.Drop, Node: "a", Wait: time.Second, Now: w.clock.now, Log: quiet})
	w.must(err)
	ctx, stop := context.WithCancel(w.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	w.Cleanup(func() { stop(); wg.Wait() })
	return &inbox.n
}

// begins counts the handlings that are begun.
type begins struct {
	telegram.Inbox
	n atomic.Int64
}

// BeginUpdate implements telegram.Inbox.
func (b *begins) BeginUpdate(ctx context.Context, bot, id int64, leased, until time.Time) (int, bool, error) {
	b.n.Add(1)
	return b.Inbox.BeginUpdate(ctx, bot, id, leased, until)
}

// within waits for a tap's answer.
func (w *world) within(d time.Duration, query string) string {
	w.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(5 * time.Millisecond) {
		if all := w.tg.Answers(query); len(all) > 0 {
			return all[0].Text
		}
	}
	w.Fatalf("no answer in %s", d)
	return ""
}

// 2,000 presses that were made up come before the one that counts: by a stranger, or in the
// name of the very person. That one is answered in seconds, and of the others the history
// has a few and one that stands for the rest, which are dropped before a write is made for
// any of them: also those that wait behind one another already.
func TestAFloodOfForgedPressesHoldsNobodyUp(t *testing.T) {
	for name, who := range map[string]bottest.Account{"by a stranger": nobody, "in bob's name": bob} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval.Config{}, group)
			r := w.asked("dora")
			card := w.card(room)
			w.tg.Hold(true)
			for i := range 2000 {
				w.tg.PressData(room, card.ID, fmt.Sprintf("made-up-%d", i), who)
			}
			real := w.tg.PressData(room, card.ID, data(card, "Approve"), bob)
			w.tg.Hold(false)
			begun := w.receives()
			w.want("the real one", w.within(30*time.Second, real), "Approved. Landing on main.")
			w.wantState(r.ID, approval.Approved, 1)
			refused := w.refused("system")
			if n := len(refused); n != 11 || !strings.HasSuffix(refused[n-1], " too_many_presses") {
				t.Errorf("%d refusals: %q", n, refused)
			}
			if n := begun.Load(); n != 11 { // those that were answered, and the real one
				t.Errorf("%d handlings were begun, want 11", n)
			}
		})
	}
}

// After a while somebody who pressed too often is heard again.
func TestPressesAreAnsweredAgainLater(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	w.asked("dora")
	card := w.card(room)
	var last string
	for range 11 {
		last = w.tg.PressData(room, card.ID, "x", nobody)
	}
	w.handle()
	if got := w.tg.Answers(last); len(got) != 0 {
		t.Errorf("the eleventh is answered: %v", got)
	}
	w.clock.step(time.Minute)
	w.want("later", w.pressData(room, card.ID, "x", nobody), "You are not linked. Open Settings → Channels.")
}

// Bots press, write and answer like people, and decide nothing.
func TestBotsDecideNothing(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	card := w.card(room)
	robot := bob
	robot.Bot = true
	w.press(room, card.ID, "Approve", robot)
	w.wantState(r.ID, approval.Pending, 0)
	w.wantRefused("system", fmt.Sprintf("telegram:%d bot", bob.ID))
	w.press(room, card.ID, "Reject", bob)
	question := w.tg.Last(room)
	w.tg.Say(room, robot, "Because.", question.ID)
	w.tg.Say(room, robot, "/cancel "+r.TaskID, 0)
	w.handle()
	w.wantState(r.ID, approval.Pending, 0)
	if len(w.engine.cancelled) != 0 {
		t.Error("a bot cancelled a task")
	}
}

// twisted are presses that two readers could read in two ways; %s are the number of the
// chat, of the message, and what the button carries.
var twisted = map[string]string{
	"from twice":            `"id":"1","from":{"id":1099,"is_bot":false},"from":{"id":%[4]d,"is_bot":false},"message":{"message_id":%[2]d,"chat":{"id":%[1]d,"type":"supergroup"}},"data":%[3]q`,
	"from in another case":  `"id":"1","From":{"id":%[4]d,"is_bot":false},"message":{"message_id":%[2]d,"chat":{"id":%[1]d,"type":"supergroup"}},"data":%[3]q`,
	"from in both cases":    `"id":"1","from":{"id":1099},"FROM":{"id":%[4]d},"message":{"message_id":%[2]d,"chat":{"id":%[1]d,"type":"supergroup"}},"data":%[3]q`,
	"the id twice":          `"id":"1","from":{"id":1099,"id":%[4]d},"message":{"message_id":%[2]d,"chat":{"id":%[1]d,"type":"supergroup"}},"data":%[3]q`,
	"a Kelvin sign in data": `"id":"1","from":{"id":%[4]d},"message":{"message_id":%[2]d,"chat":{"id":%[1]d,"type":"supergroup"}},"data":%[3]q,"callbac\u212a":1`,
}

func TestAnUpdateThatCanBeReadInTwoWaysIsNotRead(t *testing.T) {
	w := newWorld(t, approval.Config{}, group)
	r := w.asked("dora")
	card := w.card(room)
	for _, tc := range twisted {
		w.tg.DeliverRaw(`{"update_id":%d,"callback_query":{` + fmt.Sprintf(tc, int64(room), card.ID, data(card, "Approve"), bob.ID) + `}}`)
	}
	// The loop goes on with what comes behind them.
	real := w.tg.PressData(room, card.ID, data(card, "Approve"), ann)
	w.receives()
	w.want("the real one", w.within(30*time.Second, real), "Approved. Landing on main.")
	got := w.wantState(r.ID, approval.Approved, 1)
	w.want("who", got.Decisions[0].User, "ann")
	n := 0
	for began := time.Now(); n < len(twisted) && time.Since(began) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		n = strings.Count(strings.Join(w.refused("system"), "\n"), "malformed_update")
	}
	if n != len(twisted) {
		t.Errorf("%d of %d are recorded", n, len(twisted))
	}
	w.wantState(r.ID, approval.Approved, 1)
}

func TestAPostThatCanBeReadInTwoWaysIsMalformed(t *testing.T) {
	p := newPost(t)
	r := p.receiver("a", byWebhook)
	for name, tc := range twisted {
		body := `{"update_id":5,"callback_query":{` + fmt.Sprintf(tc, int64(room), 7, "x", bob.ID) + `}}`
		req := httptest.NewRequest("POST", telegram.WebhookPath, strings.NewReader(body))
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hookSecret)
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, req); w.Code != 400 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// The answer to the first card was lost, so a second one was sent. Who presses the first
// is heard, for it shows the same revision, and its buttons end; the second goes on.
func TestTheFirstOfTwoCardsEndsWhenItIsPressed(t *testing.T) {
	need := 2
	policy, problems := policy.CompileRules([]policy.RuleConfig{{Name: "two", When: "true", Need: &need}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := newWorld(t, approval.Config{Policy: policy}, group)
	r := w.asked("dora")
	lost := w.card(room)
	for _, c := range r.Cards {
		if c.Channel == telegram.Name {
			c.ExternalID, c.Shown = "", 0
			w.must(w.db.SaveCard(w.ctx, c))
		}
	}
	w.deliver()
	known := w.card(room)
	w.wantIn("the first", w.press(room, lost.ID, "Approve", bob), "Your yes counts: 1 of 2")
	m, _ := w.tg.Message(room, lost.ID)
	w.wantIn("the first card", m.Text, "Sent twice")
	if strings.Contains(buttons(m), "Approve") {
		t.Errorf("its buttons: %s", buttons(m))
	}
	w.want("late, on the first", w.pressData(room, lost.ID, data(lost, "Approve"), bob), "Your yes counts: 1 of 2. Next: ann or cleo.")
	w.want("the second", w.press(room, known.ID, "Approve", ann), "Approved. Landing on main.")
}
