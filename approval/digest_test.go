package approval_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// lobby is a hall with one address.
type lobby struct{ *hall }

func (lobby) Addresses(approval.Request, []people.User) []string { return []string{"lobby"} }

func lobbyWorld(t *testing.T) (*world, lobby) {
	l := lobby{newHall(nil)}
	w := newWorld(t, approval.Config{Channels: []approval.Channel{inboxChannel, l}, Expires: 24 * time.Hour})
	l.now = w.clock.now
	return w, l
}

// settled checks that every request is shown as it is, once: in a message of its own
// or in one digest, and that nothing is due any more.
func (w *world) settled(l lobby, requests []approval.Request) {
	w.Helper()
	in := map[string]int64{} // version shown in a digest, by request
	for id, items := range l.digests {
		for _, i := range items {
			if _, twice := in[i.Request.ID]; twice {
				w.Errorf("%s is in two digests, also in %s", i.Request.ID, id)
			}
			in[i.Request.ID] = i.Request.Version
		}
	}
	for _, r := range requests {
		now := w.request(r.ID)
		for _, c := range now.Cards {
			if c.Channel == inboxChannel.Name() {
				continue
			}
			shown := l.messages[c.ExternalID]
			if c.Digest != "" {
				shown = in[r.ID]
			}
			if shown != now.Version || c.Shown != now.Version || c.Error != "" || c.Dead || c.SentAt == nil || (c.Digest == "") == (c.ExternalID == "") {
				w.Errorf("%s is at version %d, shown %d, card %+v", r.ID, now.Version, shown, c)
			}
		}
	}
	backlog, err := w.db.Backlog(w.ctx)
	if err != nil || len(backlog) != 0 {
		w.Errorf("backlog %+v %v", backlog, err)
	}
}

// deliver delivers until nothing is left, with time going by.
func (w *world) deliver(l lobby, rounds int) {
	w.Helper()
	for range rounds {
		w.must(w.g.Deliver(w.ctx, inboxChannel))
		w.must(w.g.Deliver(w.ctx, l))
		w.clock.step(approval.DigestPause)
	}
}

func TestFiftyRequestsInAMinuteAreFiveCardsAndOneDigest(t *testing.T) {
	w, l := lobbyWorld(t)
	var all []approval.Request
	for range 50 {
		all = append(all, w.asked())
		w.clock.step(time.Second)
		w.must(w.g.Deliver(w.ctx, l))
	}
	w.deliver(l, 2)
	if l.sent != 5 || len(l.digests) != 1 || len(l.digests["lobby/list 0"]) != 45 {
		t.Fatalf("%d cards and %d digests with %d lines", l.sent, len(l.digests), len(l.digests["lobby/list 0"]))
	}
	w.settled(l, all)
	for i, at := range l.edits {
		if i > 0 && at.Sub(l.edits[i-1]) < approval.DigestPause {
			t.Fatalf("the digest was edited %s after the time before", at.Sub(l.edits[i-1]))
		}
	}
	if n := len(w.events(all[49].TaskID, event.Notified)); n != 1 {
		t.Errorf("%d events tell that the last one was shown", n)
	}
	// Decisions are seen in both, each in its place.
	for _, i := range []int{0, 7, 49} {
		w.decide(ballot(all[i], "bob", approval.Reject))
	}
	w.deliver(l, 2)
	w.settled(l, all)
	if l.sent != 5 || len(l.digests) != 1 {
		t.Errorf("%d cards and %d digests after the decisions", l.sent, len(l.digests))
	}
	// A quiet time later a new request has a card of its own again.
	w.clock.step(time.Hour)
	all = append(all, w.asked())
	w.deliver(l, 1)
	w.settled(l, all)
	if l.sent != 6 {
		t.Errorf("%d cards an hour later", l.sent)
	}
}

func TestADigestIsFullAtFiftyLinesAndOldAfterTenMinutes(t *testing.T) {
	w, l := lobbyWorld(t)
	var all []approval.Request
	for range 5 + 50 + 1 {
		all = append(all, w.asked())
	}
	w.deliver(l, 2)
	if l.sent != 5 || len(l.digests) != 2 {
		t.Fatalf("%d cards and %d digests", l.sent, len(l.digests))
	}
	w.settled(l, all)
	w.clock.step(11 * time.Minute)
	for range 6 {
		all = append(all, w.asked())
	}
	w.deliver(l, 2)
	if l.sent != 10 || len(l.digests) != 3 {
		t.Errorf("11 minutes later: %d cards and %d digests", l.sent, len(l.digests))
	}
	w.settled(l, all)
}

func TestARequestLeavesItsDigestToBeShown(t *testing.T) {
	w, l := lobbyWorld(t)
	var all []approval.Request
	for range 7 {
		all = append(all, w.asked())
	}
	w.deliver(l, 2)
	w.must(w.g.Show(w.ctx, all[6].ID, "board", "lobby"))
	w.deliver(l, 2)
	w.settled(l, all)
	if l.sent != 6 || len(l.digests["lobby/list 0"]) != 1 {
		t.Fatalf("%d cards, %d lines", l.sent, len(l.digests["lobby/list 0"]))
	}
	w.must(w.g.Show(w.ctx, all[6].ID, "board", "lobby")) // it has a message already
	w.must(w.g.Show(w.ctx, all[5].ID, "board", "lobby")) // the digest is empty then
	w.must(w.g.Show(w.ctx, all[0].ID, "board", "attic")) // where it had no card
	late := w.asked()
	w.must(w.g.Show(w.ctx, late.ID, "board", "lobby")) // before it was delivered at all
	w.deliver(l, 2)
	w.settled(l, append(all, late))
	if l.sent != 9 || len(l.digests["lobby/list 0"]) != 0 || len(w.request(all[0].ID).Cards) != 3 {
		t.Errorf("%d cards, %d lines, %d cards of the first", l.sent, len(l.digests["lobby/list 0"]), len(w.request(all[0].ID).Cards))
	}
}

func TestADigestIsGivenUpAndTriedAgain(t *testing.T) {
	w, l := lobbyWorld(t)
	var all []approval.Request
	for range 8 {
		all = append(all, w.asked())
	}
	l.fail = func(what string) error {
		if what == "digest" {
			return approval.Gone(errors.New("bot was kicked"))
		}
		return nil
	}
	w.deliver(l, 2)
	page, err := w.db.DeadLetters(w.ctx, approval.DeadFilter{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Kind != approval.DeadDigest || page.Items[0].Error != "bot was kicked" {
		t.Fatalf("%+v %v", page.Items, err)
	}
	l.fail = nil
	w.deliver(l, 2)
	if len(l.digests) != 0 {
		t.Fatal("tried again by itself")
	}
	w.decide(ballot(all[7], "bob", approval.Reject)) // a change is a reason to try again
	w.deliver(l, 2)
	w.settled(l, all)
}

// After a decision the card is edited although fifty new ones wait, and although one of
// these is stuck on its way.
func TestADecidedCardIsEditedBeforeNewOnesAreSent(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{b}})
	first := w.asked()
	w.must(w.g.Deliver(w.ctx, b))
	for range 25 {
		w.asked()
	}
	stuck, free := make(chan struct{}), make(chan struct{})
	b.after = func() {
		if b.sent == 3 {
			b.after = nil
			b.mu.Unlock()
			close(stuck)
			<-free
			b.mu.Lock()
		}
	}
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error)
	go func() { done <- w.g.Run(ctx) }()
	<-stuck
	w.decide(ballot(first, "bob", approval.Reject))
	start := time.Now()
	w.eventually("edited while another one is stuck", func() bool {
		return w.card(first, "north").Shown == w.request(first.ID).Version && w.card(first, "south").Shown == w.request(first.ID).Version
	})
	t.Logf("the decision was seen after %s; the aim is 2 s", time.Since(start))
	close(free)
	stop()
	w.must(<-done)
}

// mishap is a store whose node dies at times before it saves what it has delivered.
type mishap struct {
	approval.Store
	rnd *rand.Rand
}

var errKilled = errors.New("killed")

func (m mishap) dies() bool { return m.rnd.IntN(6) == 0 }

func (m mishap) SaveCard(ctx context.Context, c approval.Card) error {
	if m.dies() {
		return errKilled
	}
	return m.Store.SaveCard(ctx, c)
}

func (m mishap) SaveNotice(ctx context.Context, n approval.Notice) error {
	if m.dies() {
		return errKilled
	}
	return m.Store.SaveNotice(ctx, n)
}

func (m mishap) SaveDigest(ctx context.Context, d approval.Digest, shown map[string]int64) ([]string, error) {
	if m.dies() {
		return nil, errKilled
	}
	return m.Store.SaveDigest(ctx, d, shown)
}

func (m mishap) IntoDigest(ctx context.Context, c approval.Card, f approval.Flood) (bool, error) {
	in, err := m.Store.IntoDigest(ctx, c, f)
	if m.dies() {
		return in, errKilled
	}
	return in, err
}

// Whatever is asked, decided, shown, refused by the channel or killed on its way, in
// the end every card, line and notice is as its request is.
func TestEverythingConverges(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { converges(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func converges(t *testing.T, rnd *rand.Rand) {
	w, l := lobbyWorld(t)
	c := w.g.Config()
	c.Remind = []time.Duration{23*time.Hour + 59*time.Minute, 23*time.Hour + 50*time.Minute}
	c.Escalate = []approval.Step{{After: 5 * time.Minute, To: []string{"maintainers"}}}
	w.g.SetConfig(c)
	dying := approval.New(approval.Options{Store: mishap{w.db, rnd}, Users: team(staff()), Now: w.clock.now, Logger: slog.New(slog.DiscardHandler)}, c)
	l.fail = func(string) error {
		switch rnd.IntN(12) {
		case 0:
			return errors.New("connection refused")
		case 1:
			return approval.RetryAfter(errors.New("too many requests"), time.Duration(rnd.IntN(20))*time.Second)
		case 2:
			return approval.Gone(errors.New("chat not found"))
		}
		return nil
	}
	var all []approval.Request
	for range 50 {
		for range rnd.IntN(3) {
			all = append(all, w.asked())
		}
		if len(all) > 0 {
			r := all[rnd.IntN(len(all))]
			switch rnd.IntN(4) {
			case 0:
				_, _ = w.g.Decide(w.ctx, ballot(r, "bob", approval.Reject)) // refused when it was decided before
			case 1:
				w.must(w.g.Show(w.ctx, r.ID, "board", "lobby"))
			}
		}
		w.must(w.g.Act(w.ctx))
		if err := dying.Deliver(w.ctx, l); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		w.clock.step(time.Duration(rnd.IntN(20)) * time.Second)
	}
	l.fail = nil
	for range 4 { // leases of the dead run out, backoffs too
		w.clock.step(11 * time.Minute)
		w.must(w.g.Act(w.ctx))
		if _, err := w.g.Retry(w.ctx, "ann", approval.DeadFilter{}); err != nil {
			t.Fatal(err)
		}
		w.must(w.g.Deliver(w.ctx, l))
		w.must(w.g.Deliver(w.ctx, inboxChannel))
	}
	for _, r := range all {
		if now := w.request(r.ID); now.State == approval.Pending && (now.Reminded < 1 || now.Escalated != 1) {
			t.Errorf("%s: reminded %d times, escalated %d", r.ID, now.Reminded, now.Escalated)
		}
	}
	if n, err := w.db.Backlog(w.ctx); err != nil || len(n) != 0 {
		t.Errorf("backlog %+v %v", n, err)
	}
	// What a node had sent when it died has no card: only what cards name must be right.
	for _, r := range all {
		now := w.request(r.ID)
		for _, card := range now.Cards {
			if card.Shown != now.Version || card.Error != "" || card.Dead || card.SentAt == nil {
				t.Errorf("version %d, card %+v", now.Version, card)
			}
			if card.Digest == "" && card.Channel == l.Name() && l.messages[card.ExternalID] != now.Version {
				t.Errorf("%s shows version %d of %d", card.ExternalID, l.messages[card.ExternalID], now.Version)
			}
		}
	}
}
