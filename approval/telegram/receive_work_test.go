package telegram_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
)

func TestAnUpdateThatFailsComesAgainUntilItIsGivenUp(t *testing.T) {
	t.Parallel() // the next try is looked for once a second
	p := newPost(t)
	log := &strings.Builder{}
	var lock sync.Mutex
	var tries sync.Map
	p.act = func(_ context.Context, text string) error {
		n, _ := tries.LoadOrStore(text, &atomic.Int64{})
		tried := n.(*atomic.Int64).Add(1)
		p.ahead.Add(int64(time.Minute)) // so that the next try is due
		switch {
		case text == "panics once" && tried == 1:
			panic("no luck")
		case text == "fails":
			return errors.New("the reason")
		default:
			return nil
		}
	}
	p.say("fails", "panics once", "fine")
	p.start(p.receiver("a", func(o *telegram.ReceiverOptions) {
		o.Log = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
			lock.Lock()
			defer lock.Unlock()
			return log.Write(b)
		}), nil))
	}))
	p.wantHandled("panics once", "fine")
	logged := func() string {
		lock.Lock()
		defer lock.Unlock()
		return log.String()
	}
	p.tg.Until(t, "one update to be given up", func() bool { return strings.Contains(logged(), "given up") })
	n, _ := tries.Load("fails")
	if got := n.(*atomic.Int64).Load(); got != 5 || !strings.Contains(logged(), "the reason") {
		t.Errorf("tried %d times, want 5; log:\n%s", got, logged())
	}
	p.say("after")
	p.wantHandled("panics once", "fine", "after")
	if got := n.(*atomic.Int64).Load(); got != 5 {
		t.Errorf("tried %d times after it was given up", got)
	}
}

func TestAnUpdateThatEndsTheProgramDoesSoAFewTimesOnly(t *testing.T) {
	p := newPost(t)
	bot, due := int64(4242), time.Now().Add(-time.Hour)
	update := telegram.RawUpdate{ID: 5, Body: []byte(`{"update_id":5,"message":{"text":"deadly"}}`)}
	if err := p.store.AddUpdates(t.Context(), bot, []telegram.RawUpdate{update}, due); err != nil {
		t.Fatal(err)
	}
	for n := range 5 { // five programs that began and were never heard of again
		if got, mine, err := p.store.BeginUpdate(t.Context(), bot, update.ID, due, due); err != nil || !mine || got != n+1 {
			t.Fatalf("attempt %d %t %v", got, mine, err)
		}
	}
	p.start(p.receiver("a"))
	p.tg.Until(t, "the update to be given up", func() bool {
		left, err := p.store.DueUpdates(t.Context(), bot, time.Now().Add(time.Hour), due, 1)
		return err == nil && len(left) == 0
	})
	p.say("one")
	p.wantHandled("one")
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

var _ io.Writer = writer(nil)

func TestASlowUpdateHoldsUpItsSenderOnly(t *testing.T) {
	p := newPost(t)
	ben := bottest.Account{ID: 8, Name: "Ben"}
	release := make(chan struct{})
	p.act = func(ctx context.Context, text string) error {
		if text == "slow" {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nil
	}
	p.say("slow", "second")
	p.start(p.receiver("a"))
	p.tg.Say(coreChat, ben, "quick", 0)
	p.tg.Until(t, "the other sender's update", func() bool { return slices.Equal(p.handled(), []string{"quick"}) })
	close(release)
	p.tg.Until(t, "all", func() bool { return slices.Equal(p.handled(), []string{"quick", "slow", "second"}) })
}

func TestAnUpdateInHandAtTheEndIsHandledByTheNext(t *testing.T) {
	p := newPost(t)
	begun := make(chan struct{}, 1)
	p.act = func(ctx context.Context, _ string) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	p.say("one", "two")
	stop := p.start(p.receiver("a"))
	<-begun
	stop() // returns when the handler has
	p.mu.Lock()
	p.act = func(context.Context, string) error { return nil }
	p.mu.Unlock()
	p.start(p.receiver("a")) // no lease has to run out, and no attempt was counted
	p.wantHandled("one", "two")
}
