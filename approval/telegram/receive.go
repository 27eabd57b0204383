package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// The ways in which updates come.
const (
	Poll    = "poll"
	Webhook = "webhook"
)

// How receiving goes, as told to Health. Of several nodes that poll, only the one
// whose turn it is says anything.
const (
	Connected   = "connected"
	Conflict    = "conflict"    // somebody else receives this bot's updates
	BadToken    = "token"       // Telegram does not know the bot
	Unreachable = "unreachable" // no answer, or Telegram does not reach the webhook
	Waiting     = "waiting"     // Telegram asked to be left alone for a while
)

const (
	pollWait  = 25 * time.Second // one long poll; Telegram allows 50 s, and many proxies end a silent connection at 30
	pollBatch = 100              // updates at once, all that Telegram gives
	pollLease = 15 * time.Second // how long nobody polls after a node died
	fastest   = time.Second      // between empty answers that came without waiting
	releasing = 5 * time.Second  // for what is recorded after the end
	// longestAway is the most between two looks whether the Bot API is back: cards agree with
	// their requests within a minute of that.
	longestAway = 30 * time.Second
)

// Inbox is where updates are kept between their coming and their being handled, and
// where nodes agree who polls.
type Inbox interface {
	// AddUpdates stores updates, due at now; those that it has already stay as they are.
	AddUpdates(ctx context.Context, bot int64, updates []RawUpdate, now time.Time) error
	// LastUpdate is the highest number that is stored, 0 when there is none.
	LastUpdate(ctx context.Context, bot int64) (int64, error)
	// DueUpdates leases updates until then, in their order.
	DueUpdates(ctx context.Context, bot int64, now, until time.Time, limit int) ([]RawUpdate, error)
	// BeginUpdate counts an attempt and extends a lease that was given until leased, unless somebody else has it by now.
	BeginUpdate(ctx context.Context, bot, id int64, leased, until time.Time) (attempts int, mine bool, err error)
	DoneUpdate(ctx context.Context, bot, id int64, now time.Time) error
	// DropUpdates records that nothing will be done with updates.
	DropUpdates(ctx context.Context, bot int64, ids []int64, now time.Time) error
	FailUpdate(ctx context.Context, bot, id int64, problem string, next time.Time, giveUp bool) error
	// ReturnUpdate ends a lease that was given until leased, unless somebody else has it: the update is due again.
	ReturnUpdate(ctx context.Context, bot, id int64, leased, now time.Time) error
	// ForgetUpdates removes updates that were done with before then.
	ForgetUpdates(ctx context.Context, bot int64, before time.Time) error
	// Lease gives the named lease to holder for ttl, or extends it, and reports whether holder has it.
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
}

// Handler acts on one update, JSON as Telegram wrote it. It is called at least once for
// each, for the same sender in order and for several at once, and returns soon after its
// context ends. After an error the update comes again, up to 5 times.
type Handler func(ctx context.Context, body []byte) error

// ReceiverOptions says how a Receiver works. Client, Inbox and Handle are required.
type ReceiverOptions struct {
	Client *Client
	Inbox  Inbox
	Handle Handler
	Drop   func(ctx context.Context, body []byte) bool // reports, quickly, that nothing would come of an update; may be nil
	Mode   string                                      // Poll or Webhook; "" means Poll

	// For Webhook: Telegram posts to WebhookPath under PublicURL, which must be https, with Secret in a header.
	PublicURL string
	Secret    string

	Node     string                                          // this node's name in the lease; no two processes have the same at once
	Health   func(ctx context.Context, state, detail string) // told when the state changes; may be nil
	Now      func() time.Time                                // nil means time.Now
	Sleep    func(ctx context.Context, d time.Duration)      // returns when d is over or ctx ends; nil means with a timer
	Log      *slog.Logger                                    // nil means slog.Default
	Wait     time.Duration                                   // of a long poll; 0 means 25 s
	LeaseFor time.Duration                                   // of polling; 0 means 15 s
}

// Receiver receives updates, stores them before Telegram may forget them, and has them
// handled. An update that comes twice is stored once.
type Receiver struct {
	o       ReceiverOptions
	webhook string        // the address that is registered
	wake    chan struct{} // something was stored
	work    lanes

	mu    sync.Mutex
	state string // as told last
}

// NewReceiver makes a receiver. It refuses a webhook without a secret: whoever found the
// address could press buttons in other people's names.
func NewReceiver(o ReceiverOptions) (*Receiver, error) {
	r := &Receiver{o: o, wake: make(chan struct{}, 1)}
	if r.o.Now == nil {
		r.o.Now = time.Now
	}
	if r.o.Sleep == nil {
		r.o.Sleep = sleep
	}
	r.o.Log = cmp.Or(r.o.Log, slog.Default())
	r.o.Wait = cmp.Or(r.o.Wait, pollWait)
	r.o.LeaseFor = cmp.Or(r.o.LeaseFor, pollLease)
	switch r.o.Mode {
	case "", Poll:
		r.o.Mode = Poll
		return r, nil
	case Webhook:
		var err error
		if r.webhook, err = webhookAddress(o.PublicURL, o.Secret); err != nil {
			return nil, err
		}
		return r, nil
	default:
		return nil, fmt.Errorf("channels.telegram.mode is %q: it can be poll or webhook", r.o.Mode)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Run receives and handles until ctx ends, and returns when everything that it started has ended.
func (r *Receiver) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { r.handleAll(ctx) })
	if r.o.Mode == Webhook {
		r.keepWebhook(ctx)
	} else {
		r.pollInTurn(ctx)
	}
	return nil
}

// pollInTurn polls whenever this node has the lease.
func (r *Receiver) pollInTurn(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		bot, err := r.o.Client.ID(ctx)
		if err == nil {
			failures = 0
			r.whileLeased(ctx, fmt.Sprintf("telegram:%d", bot), func(ctx context.Context) { r.poll(ctx, bot) })
			r.o.Sleep(ctx, r.o.LeaseFor/3)
			continue
		}
		failures++
		r.o.Sleep(ctx, r.trouble(ctx, err, failures))
	}
}

// whileLeased runs fn if this node gets the lease, and ends its context when the lease
// is lost or could not be renewed in time.
func (r *Receiver) whileLeased(ctx context.Context, name string, fn func(context.Context)) {
	ttl := r.o.LeaseFor
	held, err := r.o.Inbox.Lease(ctx, name, r.o.Node, ttl)
	if err != nil && ctx.Err() == nil {
		r.o.Log.Error("asking for the turn to poll Telegram failed; trying again", "err", err)
	}
	if err != nil || !held {
		return
	}
	during, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop()
		r.renew(during, name, ttl)
	})
	fn(during)
	stop()
	wg.Wait()
	r.setState("") // whoever has the turn next tells how it goes
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasing)
	defer cancel()
	// A lease of no length lets the next node begin at once. Without it the node waits, that is all.
	if _, err := r.o.Inbox.Lease(after, name, r.o.Node, 0); err != nil {
		r.o.Log.Warn("giving up the turn to poll Telegram failed", "err", err)
	}
}

// renew extends the lease until it is lost. The time is the machine's own: a stepped
// clock must not make two nodes poll.
func (r *Receiver) renew(ctx context.Context, name string, ttl time.Duration) {
	last := time.Now()
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		try, cancel := context.WithTimeout(ctx, ttl/3)
		asked := time.Now()
		held, err := r.o.Inbox.Lease(try, name, r.o.Node, ttl)
		cancel()
		switch {
		case err == nil && held:
			last = asked
		case err == nil, time.Since(last) > ttl/2:
			return
		}
	}
}

// poll asks for updates until ctx ends.
func (r *Receiver) poll(ctx context.Context, bot int64) {
	for failures, ready := 0, false; ctx.Err() == nil; {
		if !ready {
			r.endWebhook(ctx)
		}
		err := r.ask(ctx, bot, ready)
		if err == nil && !ready {
			r.offerCommands(ctx)
		}
		if ready = err == nil; ready {
			failures = 0
			continue
		}
		failures++
		r.o.Sleep(ctx, r.trouble(ctx, err, failures))
	}
}

// endWebhook removes a webhook: while there is one, Telegram lets nobody poll. What goes
// wrong here shows in the poll that follows.
func (r *Receiver) endWebhook(ctx context.Context) {
	hook, err := r.o.Client.WebhookInfo(ctx)
	if err == nil && hook.URL != "" {
		r.o.Log.Warn("the Telegram bot has a webhook; it is removed, because channels.telegram.mode is poll", "url", hook.URL)
		err = r.o.Client.DeleteWebhook(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.o.Log.Debug("making sure that the Telegram bot has no webhook failed", "err", err)
	}
}

// offerCommands sets the menu of commands, without which everything works as well.
func (r *Receiver) offerCommands(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releasing)
	defer cancel()
	if err := r.o.Client.SetCommands(ctx); err != nil && ctx.Err() == nil {
		r.o.Log.Warn("Telegram did not take the menu of commands", "err", err)
	}
}

// ask makes one poll and stores what came. The next poll names the number after the
// highest that is stored: that is what lets Telegram forget the updates, so one that was
// not stored is never acknowledged.
func (r *Receiver) ask(ctx context.Context, bot int64, ready bool) error {
	last, err := r.o.Inbox.LastUpdate(ctx, bot)
	if err != nil {
		return storeError{fmt.Errorf("reading the last update: %w", err)}
	}
	offset := last + 1
	if last == 0 {
		offset = 0 // Telegram's numbers begin anywhere
	}
	wait := r.o.Wait
	if !ready && r.getState() != Conflict {
		wait = 0 // the first answer says at once whether all is well; after a conflict only a whole poll does
	}
	began := time.Now()
	updates, err := r.o.Client.GetUpdates(ctx, offset, pollBatch, wait)
	if err != nil {
		return err
	}
	if len(updates) > 0 {
		if err := r.o.Inbox.AddUpdates(ctx, bot, updates, r.o.Now()); err != nil {
			return storeError{fmt.Errorf("storing updates: %w", err)}
		}
		r.look()
	}
	r.report(ctx, Connected, "")
	if len(updates) == 0 && wait > 0 && time.Since(began) < min(wait, fastest)/2 {
		r.o.Sleep(ctx, fastest)
	}
	return nil
}

// storeError is the database's, so it says nothing about Telegram.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// trouble tells what is wrong and returns how long to wait after so many failures in a row.
func (r *Receiver) trouble(ctx context.Context, err error, failures int) time.Duration {
	var no *Error
	switch {
	case ctx.Err() != nil:
		return 0
	case errors.As(err, new(storeError)):
		r.o.Log.Error("keeping Telegram's updates failed; trying again", "err", err)
		return backoff(failures, time.Second, time.Minute)
	case errors.As(err, &no) && no.RetryAfter > 0:
		r.report(ctx, Waiting, err.Error())
		return no.RetryAfter
	case errors.Is(err, ErrConflict):
		r.report(ctx, Conflict, err.Error())
		return backoff(failures, 2*time.Second, 30*time.Second)
	case errors.Is(err, ErrToken):
		r.report(ctx, BadToken, err.Error())
		return backoff(failures, 5*time.Second, 5*time.Minute)
	default:
		r.report(ctx, Unreachable, err.Error())
		return backoff(failures, time.Second, longestAway)
	}
}

// backoff is the wait after the n-th failure in a row: doubled each time from first to
// last, and between half and all of that.
func backoff(n int, first, last time.Duration) time.Duration {
	wait := last
	if n < 16 {
		wait = min(first<<(n-1), last)
	}
	return wait/2 + rand.N(wait/2+1)
}

// report tells a state that is new.
func (r *Receiver) report(ctx context.Context, state, detail string) {
	if ctx.Err() != nil || !r.setState(state) {
		return
	}
	if state == Connected {
		r.o.Log.Info("Telegram is connected", "mode", r.o.Mode)
	} else {
		r.o.Log.Warn("Telegram is not connected", "state", state, "detail", detail)
	}
	if r.o.Health != nil {
		r.o.Health(ctx, state, detail)
	}
}

// setState reports whether the state is another one than before.
func (r *Receiver) setState(state string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.state != state
	r.state = state
	return changed
}

func (r *Receiver) getState() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// look wakes the one that handles.
func (r *Receiver) look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
