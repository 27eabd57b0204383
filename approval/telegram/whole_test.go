package telegram_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/orchestrator/people"
)

// Everything runs as in the server: a tap is in the card of every chat within 2 s, and
// so is a decision from elsewhere.
func TestATapReachesEveryCard(t *testing.T) {
	w := newWorld(t, approval.Config{})
	first, second := w.asked("dora"), w.asked("dora")
	receiver, err := telegram.NewReceiver(telegram.ReceiverOptions{Client: w.client, Inbox: w.db, Handle: w.desk.Handle, Node: "one", Log: quiet, Wait: time.Second})
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 2)
	go func() { ended <- receiver.Run(ctx) }()
	go func() { ended <- w.gateway.Run(ctx) }()
	defer func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}()
	all := func(says string, on approval.Request) func() bool {
		return func() bool {
			for _, chat := range []int64{ann.ID, bob.ID} {
				m := w.tg.FromBot(chat)[0]
				if on.ID == second.ID {
					m = w.tg.FromBot(chat)[1]
				}
				if !strings.Contains(m.Text, says) || buttons(m) != "Open" {
					return false
				}
			}
			return true
		}
	}
	card := w.tg.FromBot(bob.ID)[0]
	start := time.Now()
	w.tg.PressData(bob.ID, card.ID, data(card, "Approve"), bob)
	w.tg.Until(t, "both cards say who approved", all("bob on Telegram", first))
	t.Logf("after %s; the aim is 2 s", time.Since(start))
	start = time.Now()
	_, err = w.gateway.Decide(ctx, approval.Ballot{RequestID: second.ID, Principal: people.As(w.users["cleo"], nil), Channel: "web", Verdict: approval.Reject, Digest: second.Revision.Digest, Comment: "No."})
	w.must(err)
	w.tg.Until(t, "both cards say who rejected", all("cleo on the web", second))
	t.Logf("after %s; the aim is 2 s", time.Since(start))
	late := w.tg.FromBot(ann.ID)[1]
	query := w.tg.PressData(ann.ID, late.ID, "gone", ann)
	w.tg.Until(t, "a later tap is answered", func() bool { return len(w.tg.Answers(query)) == 1 })
}
