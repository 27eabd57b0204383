package telegram_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"

	"go.uber.org/goleak"
)

// post is a Bot API, a database and the receivers between them.
type post struct {
	*testing.T
	tg    *bottest.Server
	store *sqlstore.Store
	ahead atomic.Int64 // of the real time, for what is retried later

	mu     sync.Mutex
	texts  []string // that were handled, in their order
	states []string // as Health was told
	waits  []time.Duration
	act    func(ctx context.Context, text string) error
}

func newPost(t *testing.T) *post {
	t.Helper()
	tg, _ := newWire(t)
	p := &post{T: t, tg: tg, act: func(context.Context, string) error { return nil }}
	s, err := sqlstore.Open(t.Context(), storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "g.db")), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p.store = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *post) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

// receiver makes one, with changes to its options.
func (p *post) receiver(node string, change ...func(*telegram.ReceiverOptions)) *telegram.Receiver {
	p.Helper()
	o := telegram.ReceiverOptions{
		Client: newClient(p.T, p.tg.Token, p.tg.URL), Inbox: p.store, Handle: p.handle, Node: node, Now: p.now, Log: slog.New(slog.DiscardHandler),
		Health: p.health, Sleep: p.sleep, Wait: 5 * time.Second, LeaseFor: 5 * time.Second,
	}
	for _, c := range change {
		c(&o)
	}
	r, err := telegram.NewReceiver(o)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// start runs a receiver until stop, or the end of the test.
func (p *post) start(r *telegram.Receiver) (stop func()) {
	ctx, cancel := context.WithCancel(p.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				p.Error(err)
			}
		})
	}
	p.Cleanup(stop)
	return stop
}

// sleep makes waits short and remembers them.
func (p *post) sleep(ctx context.Context, d time.Duration) {
	p.mu.Lock()
	p.waits = append(p.waits, d)
	p.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(min(d, 20*time.Millisecond)):
	}
}

func (p *post) health(_ context.Context, state, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = append(p.states, state)
	if strings.Contains(detail, "AAFakeToken") {
		p.Errorf("the token is in %q", detail)
	}
}

func (p *post) handle(ctx context.Context, body []byte) error {
	var u struct {
		Message struct{ Text string }
	}
	if err := json.Unmarshal(body, &u); err != nil {
		return err
	}
	p.mu.Lock()
	act := p.act
	p.mu.Unlock()
	err := act(ctx, u.Message.Text)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.texts = append(p.texts, u.Message.Text)
	}
	return err
}

// say writes texts into Ann's chat.
func (p *post) say(texts ...string) {
	for _, text := range texts {
		p.tg.Say(wireAnn.ID, wireAnn, text, 0)
	}
}

func (p *post) handled() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.texts)
}

func (p *post) told() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.states)
}

// wantHandled waits for texts, in any order, and that Telegram may forget them.
func (p *post) wantHandled(want ...string) {
	p.Helper()
	slices.Sort(want)
	var got []string
	p.tg.Until(p.T, "updates to be handled and acknowledged", func() bool {
		got = p.handled()
		slices.Sort(got)
		return len(got) >= len(want) && p.tg.Pending() == 0
	})
	if !slices.Equal(got, want) {
		p.Fatalf("handled %v, want %v", got, want)
	}
}

func (p *post) wantStates(want ...string) {
	p.Helper()
	p.tg.Until(p.T, "the states "+strings.Join(want, ", "), func() bool { return slices.Equal(p.told(), want) })
}

func TestUpdatesArePolledInOrder(t *testing.T) {
	p := newPost(t)
	p.say("one", "two")
	p.start(p.receiver("a"))
	p.wantHandled("one", "two")
	p.say("three")
	p.wantHandled("one", "two", "three")
	if got := p.handled(); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("one sender's updates came as %v", got)
	}
	p.wantStates(telegram.Connected)
	if !slices.Contains(p.tg.Commands(), "pending") {
		t.Errorf("commands %v", p.tg.Commands())
	}
}

// dying is an inbox whose program dies around the storing of updates.
type dying struct {
	*sqlstore.Store
	die    context.CancelFunc
	before bool
}

func (d dying) AddUpdates(ctx context.Context, bot int64, updates []telegram.RawUpdate, now time.Time) error {
	defer d.die()
	if d.before {
		return errors.New("killed")
	}
	return d.Store.AddUpdates(ctx, bot, updates, now)
}

func TestAProgramThatDiesLosesNothing(t *testing.T) {
	for name, before := range map[string]bool{"before storing": true, "stored, not acknowledged": false} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.say("one", "two")
			ctx, die := context.WithCancel(t.Context())
			first := p.receiver("a", func(o *telegram.ReceiverOptions) {
				o.Inbox = dying{p.store, die, before}
				o.Handle = func(context.Context, []byte) error { return errors.New("dead") }
			})
			if err := first.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if n := p.tg.Pending(); n != 2 {
				t.Fatalf("%d updates wait in Telegram, want 2: nothing was acknowledged", n)
			}
			p.ahead.Add(int64(time.Minute)) // what died with a lease
			p.start(p.receiver("a"))
			p.wantHandled("one", "two")
		})
	}
}

func TestAnAnswerThatWasLostComesAgain(t *testing.T) {
	p := newPost(t)
	p.say("one", "two")
	p.tg.Misbehave("getUpdates", bottest.CutConnection().After(), bottest.BrokenJSON().After())
	p.start(p.receiver("a"))
	p.wantHandled("one", "two")
	p.wantStates(telegram.Unreachable, telegram.Connected)
}

func TestDoubledAndReorderedUpdatesAreHandledOnce(t *testing.T) {
	p := newPost(t)
	p.tg.DuplicateUpdates(true)
	p.tg.ReorderUpdates(true)
	p.tg.Hold(true)
	p.say("one", "two", "three")
	p.start(p.receiver("a"))
	p.tg.Hold(false)
	p.wantHandled("one", "two", "three")
	p.say("four")
	p.wantHandled("one", "two", "three", "four")
}

func TestOneNodePolls(t *testing.T) {
	p := newPost(t)
	var handled [2]atomic.Int64
	var stops [2]func()
	for i, node := range []string{"a", "b"} {
		stops[i] = p.start(p.receiver(node, func(o *telegram.ReceiverOptions) {
			handle := o.Handle
			o.Handle = func(ctx context.Context, body []byte) error {
				handled[i].Add(1)
				return handle(ctx, body)
			}
		}))
	}
	p.say("one")
	p.wantHandled("one")
	p.wantStates(telegram.Connected) // a second poller would have been a conflict
	// The one that polls may be either. When the first ends, the other goes on.
	stops[0]()
	p.say("two")
	p.wantHandled("one", "two")
	if handled[1].Load() == 0 {
		t.Error("the node that was left handled nothing")
	}
	if slices.Contains(p.told(), telegram.Conflict) {
		t.Errorf("two nodes polled at once: %v", p.told())
	}
}

// mute is an inbox whose lease cannot be renewed, as when the database hangs.
type mute struct {
	*sqlstore.Store
	asked atomic.Int64
}

func (m *mute) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if ttl > 0 && m.asked.Add(1) > 1 {
		return false, errors.New("the database hangs")
	}
	return m.Store.Lease(ctx, name, holder, ttl)
}

func TestANodeThatCannotRenewStopsPolling(t *testing.T) {
	p := newPost(t)
	p.start(p.receiver("a", func(o *telegram.ReceiverOptions) {
		o.Inbox, o.Wait, o.LeaseFor = &mute{Store: p.store}, time.Minute, 300*time.Millisecond
	}))
	p.wantStates(telegram.Connected)
	p.start(p.receiver("b"))
	p.wantStates(telegram.Connected, telegram.Connected)
	p.say("one")
	p.wantHandled("one")
	if slices.Contains(p.told(), telegram.Conflict) {
		t.Errorf("both polled at once: %v", p.told())
	}
}

func TestAStrangerWhoPollsIsAConflict(t *testing.T) {
	p := newPost(t)
	stranger := newClient(t, p.tg.Token, p.tg.URL)
	p.start(p.receiver("a"))
	p.wantStates(telegram.Connected)
	p.tg.Until(t, "the long poll", func() bool { return len(p.tg.Calls("getUpdates")) >= 2 })
	// Telegram gives the updates to whoever asked last, and says so to the other.
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = stranger.GetUpdates(ctx, 0, 100, 10*time.Second)
		}
	})
	p.wantStates(telegram.Connected, telegram.Conflict)
	leave()
	wg.Wait()
	p.say("one")
	p.wantHandled("one")
	p.wantStates(telegram.Connected, telegram.Conflict, telegram.Connected)
}

func TestAWebhookIsRemovedBeforePolling(t *testing.T) {
	p := newPost(t)
	if err := newClient(t, p.tg.Token, p.tg.URL).SetWebhook(t.Context(), "https://old.example/hooks/telegram", "s"); err != nil {
		t.Fatal(err)
	}
	p.say("one")
	p.start(p.receiver("a"))
	p.wantHandled("one")
	if p.tg.Webhook() != "" {
		t.Errorf("webhook %s", p.tg.Webhook())
	}
}

func TestTroubleIsToldAndWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		how   bottest.Behaviour
		state string
		wait  time.Duration // at least, of one of the waits
	}{
		"too many requests": {bottest.TooMany(77), telegram.Waiting, 77 * time.Second},
		"a wrong token":     {bottest.Refuse(401, "Unauthorized"), telegram.BadToken, 2 * time.Second},
		"a fault":           {bottest.ServerError(), telegram.Unreachable, time.Second / 2},
		"a cut":             {bottest.CutConnection(), telegram.Unreachable, time.Second / 2},
		"a conflict":        {bottest.Conflict409(), telegram.Conflict, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.tg.Misbehave("getUpdates", tc.how, tc.how)
			p.start(p.receiver("a"))
			p.say("one")
			p.wantHandled("one")
			p.wantStates(tc.state, telegram.Connected)
			p.mu.Lock()
			defer p.mu.Unlock()
			if longest := slices.Max(p.waits); longest < tc.wait || (tc.state == telegram.Waiting && longest != tc.wait) {
				t.Errorf("waits %v, want %v", p.waits, tc.wait)
			}
		})
	}
}

func TestAReceiverLeavesNothingBehind(t *testing.T) {
	p := newPost(t)
	p.say("one")
	ignore := goleak.IgnoreCurrent()
	r := p.receiver("a")
	stop := p.start(r)
	p.wantHandled("one")
	stop()
	p.tg.Close()
	goleak.VerifyNone(t, ignore, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
