package telegram_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
)

// everyMethod is what the bot calls.
var everyMethod = []string{"getMe", "getUpdates", "getWebhookInfo", "setMyCommands", "sendMessage", "sendDocument", "editMessageText", "answerCallbackQuery"}

// sleeper lets a receiver wait by the clock of these tests, and knows whether it does.
type sleeper struct {
	clock *hands
	mu    sync.Mutex
	until time.Time // zero while it is at work
}

func (s *sleeper) sleep(ctx context.Context, d time.Duration) {
	until := s.clock.now().Add(d)
	s.set(until)
	defer s.set(time.Time{})
	for ctx.Err() == nil && s.clock.now().Before(until) {
		time.Sleep(time.Millisecond)
	}
}

func (s *sleeper) set(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
}

// waits reports whether it sleeps until a time to come.
func (s *sleeper) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until.After(s.clock.now())
}

// state is what the database knows of Telegram.
func (w *world) state() string {
	w.Helper()
	all, err := w.db.Health(w.ctx)
	w.must(err)
	for _, h := range all {
		if h.Channel == telegram.Name {
			return h.State
		}
	}
	return ""
}

// listens runs a receiver until the test ends, as the server does: what it learns of
// the other side is kept.
func (w *world) listens() *sleeper {
	w.Helper()
	s := &sleeper{clock: w.clock}
	r, err := telegram.NewReceiver(telegram.ReceiverOptions{Client: w.client, Inbox: w.db, Handle: w.desk.Handle, Node: "one", Now: w.clock.now, Log: quiet, Sleep: s.sleep,
		LeaseFor: time.Hour, Health: func(ctx context.Context, state, detail string) {
			if err := w.db.SetHealth(context.WithoutCancel(ctx), telegram.Name, state, detail); err != nil {
				w.Error(err)
			}
		}})
	w.must(err)
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.Cleanup(func() {
		stop()
		w.must(<-done)
	})
	return s
}

// Telegram's servers answer 502 for half an hour. Meanwhile people decide on the page,
// others are asked. Nothing is given up, and within a minute of the end every card and
// every list shows what its request is.
func TestCardsAgreeWithinAMinuteOfAnOutage(t *testing.T) {
	w := newWorld(t, approval.Config{}, group, telegram.Place{Chat: ann.ID})
	receiver := w.listens()
	w.tg.Until(t, "the bot is connected", func() bool { return w.state() == approval.Connected })
	var asked []approval.Request
	for range 7 { // the last ones are lines of a list
		asked = append(asked, w.asked("dora"))
	}
	for _, m := range everyMethod {
		w.tg.Misbehave(m, bottest.ServerError().Always())
	}
	w.tg.Say(ann.ID, ann, "hello?", 0) // ends the poll that waits
	w.tg.Until(t, "the outage is noticed", func() bool { return w.state() == approval.Unreachable && receiver.waits() })
	for i, r := range asked {
		verdict := []approval.Verdict{approval.Approve, approval.Reject}[i%2]
		_, err := w.gateway.Decide(w.ctx, approval.Ballot{RequestID: r.ID, Principal: w.as("bob"), Channel: "web", Verdict: verdict, Digest: r.Revision.Digest, Comment: "Seen."})
		w.must(err)
	}
	late := w.delegated("dora")
	w.must(w.gateway.Ask(w.ctx, late, proposal(late, "2")))
	for began := w.clock.now(); w.clock.now().Before(began.Add(30 * time.Minute)); w.clock.step(15 * time.Second) {
		w.must(w.gateway.Deliver(w.ctx, w.channel))
		w.tg.Until(t, "the receiver waits again", receiver.waits)
	}
	if b := w.backlog(); b.Dead != 0 || b.Due == 0 {
		t.Fatalf("after half an hour %+v: an API that does not answer has refused nothing", b)
	}
	for _, m := range everyMethod {
		w.tg.Behave(m)
	}
	end := w.clock.now()
	for w.backlog().Due > 0 && w.clock.now().Before(end.Add(time.Minute)) {
		w.clock.step(time.Second)
		w.tg.Until(t, "the receiver waits again or is connected", func() bool { return receiver.waits() || w.state() == approval.Connected })
		w.must(w.gateway.Deliver(w.ctx, w.channel))
	}
	if b := w.backlog(); b.Due != 0 || b.Dead != 0 {
		t.Errorf("a minute after the end %+v", b)
	}
	for _, r := range asked {
		r = w.request(r.ID)
		for _, c := range r.Cards {
			if c.Channel == telegram.Name && c.Shown != r.Version {
				t.Errorf("%s is %s, version %d; its card in %s shows %d (%s)", r.ID, r.State, r.Version, c.Address, c.Shown, c.Error)
			}
		}
	}
	for _, chat := range []int64{room, ann.ID} {
		said := ""
		for _, m := range w.tg.FromBot(chat) {
			if said += m.Text + "\n"; strings.Contains(buttons(m), "Approve") {
				t.Errorf("a message in %d still offers Approve: %+v", chat, m)
			}
		}
		w.wantIn("the list has the one that was asked meanwhile", said, "◆ 1 request needs you")
	}
}

// backlog is what waits for Telegram.
func (w *world) backlog() approval.Backlog {
	w.Helper()
	all, err := w.db.Backlog(w.ctx)
	w.must(err)
	for _, b := range all {
		if b.Channel == telegram.Name {
			return b
		}
	}
	return approval.Backlog{}
}
