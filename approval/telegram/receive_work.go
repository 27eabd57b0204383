package telegram

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

const (
	handleTime  = 10 * time.Second // one handling
	handleLease = 30 * time.Second // how long an update waits whose node died while handling it
	maxHandled  = 5                // attempts before an update is given up
	inHand      = 64               // updates that are leased at a time
	lookEvery   = time.Second      // for updates that another node has stored
	forgetEvery = time.Hour
	// Telegram sends nothing again after 24 hours; a day more is for clocks.
	forgetAfter = 48 * time.Hour
)

// lanes keep the updates of one sender in order while those of others go on: somebody
// who rejects and then approves has rejected. A sender without updates has no lane.
type lanes struct {
	mu     sync.Mutex
	queued map[int64][]leased
	held   int
}

// leased is an update that this node may handle until then.
type leased struct {
	RawUpdate
	bot   int64
	until time.Time
}

// handleAll handles what is stored until ctx ends, and returns when nothing is in hand.
func (r *Receiver) handleAll(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	r.work.queued = map[int64][]leased{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var forgotten time.Time
	for {
		bot, err := r.o.Client.ID(ctx)
		if err == nil {
			err = r.take(ctx, &wg, bot)
		}
		if now := r.o.Now(); err == nil && now.Sub(forgotten) >= forgetEvery {
			forgotten = now
			err = r.o.Inbox.ForgetUpdates(ctx, bot, now.Add(-forgetAfter))
		}
		// What Telegram says about a bot without a known number is told by whoever receives.
		if err != nil && ctx.Err() == nil && !errors.As(err, new(*Error)) {
			r.o.Log.Error("reading Telegram's updates failed; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-tick.C:
		}
	}
}

// take leases what is due, as far as there is room.
func (r *Receiver) take(ctx context.Context, wg *sync.WaitGroup, bot int64) error {
	for {
		room := r.work.room()
		if room == 0 || ctx.Err() != nil {
			return nil
		}
		now := r.o.Now()
		until := now.Add(handleLease)
		updates, err := r.o.Inbox.DueUpdates(ctx, bot, now, until, room)
		if err != nil || len(updates) == 0 {
			return err
		}
		if updates, err = r.dropped(ctx, bot, updates); err != nil {
			return err
		}
		for _, u := range updates {
			parsed, _ := parseUpdate(u.Body) // what cannot be read has sender 0; its handler will say so
			lane := parsed.sender()
			if r.work.push(lane, leased{RawUpdate: u, bot: bot, until: until}) {
				wg.Go(func() { r.drain(ctx, lane) })
			}
		}
	}
}

// drops reports whether nothing would come of an update.
func (r *Receiver) drops(ctx context.Context, body []byte) bool {
	return r.o.Drop != nil && r.o.Drop(ctx, body)
}

// dropped is the updates without those of which nothing would come. These are done with in
// one write, before they take the room of others.
func (r *Receiver) dropped(ctx context.Context, bot int64, updates []RawUpdate) ([]RawUpdate, error) {
	var kept []RawUpdate
	var ids []int64
	for _, u := range updates {
		if r.drops(ctx, u.Body) {
			ids = append(ids, u.ID)
		} else {
			kept = append(kept, u)
		}
	}
	if len(ids) == 0 {
		return kept, nil
	}
	if err := r.o.Inbox.DropUpdates(ctx, bot, ids, r.o.Now()); err != nil {
		return nil, fmt.Errorf("dropping %d updates: %w", len(ids), err) // their leases end
	}
	return kept, nil
}

func (l *lanes) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return inHand - l.held
}

// push adds an update to a lane and reports whether nobody works on that lane yet.
func (l *lanes) push(lane int64, u leased) (idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, busy := l.queued[lane]
	l.queued[lane] = append(queue, u)
	l.held++
	return !busy
}

// pop takes a lane's next update, or removes the lane.
func (l *lanes) pop(lane int64) (leased, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queued[lane]
	if len(queue) == 0 {
		delete(l.queued, lane)
		return leased{}, false
	}
	l.queued[lane] = queue[1:]
	return queue[0], true
}

func (l *lanes) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
}

// drain handles a lane until it is empty.
func (r *Receiver) drain(ctx context.Context, lane int64) {
	for {
		u, ok := r.work.pop(lane)
		if !ok {
			return
		}
		if err := r.handle(ctx, u); err != nil {
			r.o.Log.Error("recording how a Telegram update went failed; it will come again", "update", u.ID, "err", err)
		}
		r.work.done()
		r.look() // there is room
	}
}

// handle handles one update and records how that went, also when ctx ends meanwhile.
func (r *Receiver) handle(ctx context.Context, u leased) error {
	if ctx.Err() != nil {
		return r.record(ctx, func(ctx context.Context) error { return r.o.Inbox.ReturnUpdate(ctx, u.bot, u.ID, u.until, r.o.Now()) })
	}
	if r.drops(ctx, u.Body) {
		return r.record(ctx, func(ctx context.Context) error { return r.o.Inbox.DoneUpdate(ctx, u.bot, u.ID, r.o.Now()) })
	}
	// The lease may be over, behind slow updates of the same sender. The attempt is counted
	// before it is made: an update that ends the whole program does so a few times only.
	leased := u.until
	u.until = r.o.Now().Add(handleLease)
	attempts, mine, err := r.o.Inbox.BeginUpdate(ctx, u.bot, u.ID, leased, u.until)
	if err != nil || !mine {
		return err
	}
	if attempts > maxHandled {
		err = fmt.Errorf("handling it was begun %d times and never ended", maxHandled)
	} else {
		err = r.try(ctx, u.Body)
	}
	ended := ctx.Err() != nil
	return r.record(ctx, func(ctx context.Context) error {
		switch now := r.o.Now(); {
		case err == nil:
			return r.o.Inbox.DoneUpdate(ctx, u.bot, u.ID, now)
		case ended:
			return r.o.Inbox.ReturnUpdate(ctx, u.bot, u.ID, u.until, now)
		default:
			return r.failed(ctx, u, attempts, err)
		}
	})
}

// record calls fn with a context that lasts a little longer than ctx.
func (r *Receiver) record(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasing)
	defer cancel()
	return fn(ctx)
}

// failed records that handling an update failed, and when it is tried again.
func (r *Receiver) failed(ctx context.Context, u leased, attempts int, err error) error {
	now := r.o.Now()
	if attempts >= maxHandled {
		r.o.Log.Error("an update from Telegram was given up", "update", u.ID, "attempts", attempts, "err", err)
		return r.o.Inbox.FailUpdate(ctx, u.bot, u.ID, err.Error(), now, true)
	}
	wait := backoff(attempts, time.Second, time.Minute)
	if no, ok := errors.AsType[*Error](err); ok {
		wait = max(wait, no.RetryAfter)
	}
	r.o.Log.Warn("handling an update from Telegram failed; trying again", "update", u.ID, "attempts", attempts, "err", err)
	return r.o.Inbox.FailUpdate(ctx, u.bot, u.ID, err.Error(), now.Add(wait), false)
}

// try calls the handler and makes an error of its panic.
func (r *Receiver) try(ctx context.Context, body []byte) (err error) {
	ctx, cancel := context.WithTimeout(ctx, handleTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.o.Log.Error("the handler of Telegram's updates panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	return r.o.Handle(ctx, body)
}
