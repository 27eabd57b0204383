package approval_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/passive"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

var inboxChannel approval.Channel = passive.Inbox

// board is a channel that shows its messages on a board, and misbehaves on command.
type board struct {
	mu       sync.Mutex
	messages map[string]int64 // version shown, by external id
	last     map[string]approval.CardView
	sent     int
	edited   int
	errs     []error // answers before it works again
	after    func()  // called between the sending and the answer
}

func newBoard() *board {
	return &board{messages: map[string]int64{}, last: map[string]approval.CardView{}}
}

func (*board) Name() origin.Channel { return "board" }

func (*board) Addresses(approval.Request, []people.User) []string { return []string{"north", "south"} }

func (b *board) Deliver(_ context.Context, c approval.Card, r approval.Request, view approval.CardView) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errs) > 0 {
		err := b.errs[0]
		b.errs = b.errs[1:]
		return "", err
	}
	id := c.ExternalID
	if id == "" {
		b.sent++
		id = c.Address + "/" + r.ID
	} else {
		b.edited++
	}
	b.messages[id], b.last[id] = r.Version, view
	if b.after != nil {
		b.after()
	}
	return id, nil
}

// card is the card of r on the board at one address.
func (w *world) card(r approval.Request, address string) approval.Card {
	w.Helper()
	for _, c := range w.request(r.ID).Cards {
		if c.Channel == "board" && c.Address == address {
			return c
		}
	}
	w.Fatalf("no card for %s", address)
	return approval.Card{}
}

func (w *world) expectShown(b *board, r approval.Request, addresses ...string) {
	w.Helper()
	version := w.request(r.ID).Version
	for _, a := range addresses {
		c := w.card(r, a)
		if c.Shown != version || b.messages[c.ExternalID] != version || c.Error != "" || c.Dead {
			w.Fatalf("%s shows version %d, card %+v; want %d", a, b.messages[c.ExternalID], c, version)
		}
	}
}

func TestEveryCardConvergesToItsRequest(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{inboxChannel, b}})
	r := w.asked()
	w.must(w.g.Deliver(w.ctx, inboxChannel))
	w.must(w.g.Deliver(w.ctx, b))
	w.expectShown(b, r, "north", "south")
	if b.sent != 2 || len(w.events(r.TaskID, event.Notified)) != 2 {
		t.Fatalf("%d sent, %d events", b.sent, len(w.events(r.TaskID, event.Notified)))
	}
	if v := b.last["north/"+r.ID]; v.Turn != "ann, bob or cleo" || len(v.Verdicts) != 3 || v.Needs.Count != 1 {
		t.Errorf("view: %+v", v)
	}
	w.must(w.g.Deliver(w.ctx, b)) // nothing is due
	w.decide(ballot(r, "bob", approval.Approve))
	w.land(r)
	w.must(w.g.Deliver(w.ctx, b))
	w.expectShown(b, r, "north", "south")
	if b.sent != 2 || b.edited != 2 {
		t.Errorf("%d sent, %d edited: both versions together are one edit each", b.sent, b.edited)
	}
	if v := b.last["north/"+r.ID]; v.Turn != "" || len(v.Verdicts) != 0 {
		t.Errorf("a decided card still offers %+v", v)
	}
}

func TestAChannelThatFailsIsTriedAgain(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{b}})
	r := w.asked()
	b.errs = []error{errors.New("connection refused"), approval.RetryAfter(errors.New("too many requests"), time.Minute)}
	w.must(w.g.Deliver(w.ctx, b))
	if n, s := w.card(r, "north"), w.card(r, "south"); n.Shown != 0 || s.Shown != 0 || n.Attempts+s.Attempts != 1 || n.Error == "" || s.Error == "" {
		t.Fatalf("north %+v, south %+v", n, s)
	}
	w.clock.step(2 * time.Second) // the first failure is due again, the wait is not over
	w.must(w.g.Deliver(w.ctx, b))
	if b.sent != 1 {
		t.Fatalf("%d sent after 2 seconds; the channel had asked one card to wait for a minute", b.sent)
	}
	w.clock.step(time.Minute)
	w.must(w.g.Deliver(w.ctx, b))
	w.expectShown(b, r, "north", "south")
}

func TestACardThatNobodyCanDeliverIsGivenUp(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{b}})
	r := w.asked()
	b.errs = []error{approval.Gone(errors.New("chat not found")), approval.Gone(errors.New("chat not found"))}
	w.must(w.g.Deliver(w.ctx, b))
	for range 3 {
		w.clock.step(time.Hour)
		w.must(w.g.Deliver(w.ctx, b))
	}
	if c := w.card(r, "north"); !c.Dead || b.sent != 0 {
		t.Fatalf("card %+v, %d sent", c, b.sent)
	}
	if n, err := w.g.Retry(w.ctx, "ann", approval.DeadFilter{Key: "card/" + r.ID + "/board/north"}); err != nil || n != 1 {
		t.Fatalf("%d made due again, %v", n, err)
	}
	w.must(w.g.Deliver(w.ctx, b))
	w.expectShown(b, r, "north")

	// One that answers no again and again is given up too, after a bounded number of attempts.
	other := w.asked()
	for range 2 * approval.MaxAttempts {
		b.errs = append(b.errs, approval.Refused(errors.New("bad request")))
	}
	for range approval.MaxAttempts {
		w.clock.step(time.Hour)
		w.must(w.g.Deliver(w.ctx, b))
	}
	if c := w.card(other, "north"); !c.Dead || c.Attempts != approval.MaxAttempts || len(b.errs) != 0 {
		t.Errorf("after %d attempts: %+v", approval.MaxAttempts, c)
	}
}

// Nobody answers for days: that is no refusal. Attempts become rare, at most 15 minutes
// apart, and 30 seconds where the other side is known to be there; a first refusal after
// all of them is the first one. When the channel is connected again nothing waits.
func TestACardIsNeverGivenUpBecauseNobodyAnswers(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{b}})
	r := w.asked()
	fail := func(err error, n int, atMost time.Duration) {
		t.Helper()
		for range n {
			b.errs = []error{err, err} // north and south
			w.clock.step(atMost)
			w.must(w.g.Deliver(w.ctx, b))
			if len(b.errs) != 0 {
				t.Fatalf("%d attempts are left after %s: %+v", len(b.errs), atMost, w.card(r, "north"))
			}
			if c := w.card(r, "north"); c.Dead || c.Error == "" || c.DueAt.Sub(w.clock.now()) > atMost {
				t.Fatalf("card %+v at %s", c, w.clock.now())
			}
		}
	}
	away, no := errors.New("connection refused"), approval.Refused(errors.New("bad request"))
	w.must(w.db.SetHealth(w.ctx, "board", approval.Unreachable, "502"))
	fail(away, 4*approval.MaxAttempts, 15*time.Minute)
	fail(no, 1, 15*time.Minute)
	w.must(w.db.SetHealth(w.ctx, "board", approval.Connected, ""))
	if c := w.card(r, "north"); c.DueAt.After(w.clock.now()) {
		t.Errorf("the channel is back, and its card waits until %s", c.DueAt)
	}
	fail(away, 2*approval.MaxAttempts, 30*time.Second)
	w.clock.step(30 * time.Second)
	w.must(w.g.Deliver(w.ctx, b))
	w.expectShown(b, r, "north", "south")
}

// The process dies after the message went out and before that was saved: the card
// comes again, and in the end shows what its request is.
func TestACrashBetweenSendingAndSavingLosesNothing(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{b}})
	r := w.asked()
	crash := errors.New("killed")
	st := &failingStore{Store: w.db, err: crash}
	dying := approval.New(approval.Options{Store: st, Users: team(staff()), Now: w.clock.now}, w.g.Config())
	if err := dying.Deliver(w.ctx, b); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	if b.sent != 1 {
		t.Fatalf("%d sent before the crash", b.sent)
	}
	w.must(w.g.Deliver(w.ctx, b))
	if b.sent != 1 {
		t.Fatal("the lease of the dead process was not respected")
	}
	w.clock.step(5 * time.Minute)
	w.must(w.g.Deliver(w.ctx, b))
	w.expectShown(b, r, "north", "south")
}

// failingStore cannot save cards.
type failingStore struct {
	approval.Store
	err error
}

func (f *failingStore) SaveCard(context.Context, approval.Card) error { return f.err }

// A request that changes while its card is on the way is due again at once.
func TestAChangeDuringADeliveryIsNotMissed(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{b}})
	r := w.asked()
	var once sync.Once
	b.after = func() { once.Do(func() { w.decide(ballot(r, "bob", approval.Approve)) }) }
	w.must(w.g.Deliver(w.ctx, b))
	w.must(w.g.Deliver(w.ctx, b))
	w.expectShown(b, r, "north", "south")
}

func TestRunDeliversAndSweepsUntilItIsStopped(t *testing.T) {
	b := newBoard()
	w := newWorld(t, approval.Config{Channels: []approval.Channel{inboxChannel, b}, Expires: time.Hour})
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error)
	go func() { done <- w.g.Run(ctx) }()
	r := w.asked()
	w.eventually("shown", func() bool { return w.card(r, "north").Shown == w.request(r.ID).Version })
	w.clock.step(2 * time.Hour)
	w.eventually("expired and shown", func() bool {
		now := w.request(r.ID)
		return now.State == approval.Expired && w.card(r, "south").Shown == now.Version
	})
	stop()
	w.must(<-done)
}

// eventually polls until ok, for at most 10 seconds.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	end := time.After(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-end:
			w.Fatalf("not %s within 10 seconds", what)
		case <-tick.C:
		}
	}
}
