package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"gatehouse/orchestrator"
)

// Presses that cannot count (buttons that were made up, accounts that are linked to
// nobody, bots) are answered and recorded a few times for each sender. After that they are
// dropped before they cost a write, so that 2,000 of them hold nobody up.
const (
	pressBurst = 10              // in a row
	pressEvery = 6 * time.Second // one more after that
	crowdBurst = 60              // of all accounts together that are linked to nobody
	crowdEvery = time.Second
	crowd      = 0 // no account has this number
)

// presses is a token bucket for each sender. Its zero value is ready to use; it is for
// many goroutines, and forgets with the process.
type presses struct {
	mu sync.Mutex
	by map[int64]bucket
}

// bucket is how many presses were left at a moment.
type bucket struct {
	left float64
	at   time.Time
}

// now is the bucket refilled.
func (b bucket) now(now time.Time, burst int, every time.Duration) float64 {
	if since := now.Sub(b.at); since > 0 { // a clock that was set back refills nothing
		return min(b.left+float64(since)/float64(every), float64(burst))
	}
	return b.left
}

func (p *presses) left(sender int64, now time.Time) float64 {
	burst, every := pressBurst, pressEvery
	if sender == crowd {
		burst, every = crowdBurst, crowdEvery
	}
	if b, known := p.by[sender]; known {
		return b.now(now, burst, every)
	}
	return float64(burst)
}

// take uses one press up. ok: it may be answered; last: the next one may not.
func (p *presses) take(sender int64, now time.Time) (ok, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.by) >= manyStrangers {
		for id := range p.by {
			if p.left(id, now) >= pressBurst {
				delete(p.by, id)
			}
		}
		if _, known := p.by[sender]; !known && len(p.by) >= manyStrangers {
			sender = crowd // they share one
		}
	}
	left := p.left(sender, now)
	if left < 1 {
		return false, false
	}
	if p.by == nil {
		p.by = map[int64]bucket{}
	}
	p.by[sender] = bucket{left: left - 1, at: now}
	return true, left < 2
}

// empty reports whether the sender's next press that cannot count is dropped.
func (p *presses) empty(sender int64, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left(sender, now) < 1
}

// Drop reports whether an update is a press that cannot count, by a sender who had enough
// answers: nothing comes of it, and nothing is stored. It costs two reads at most, and
// none for senders who press what they were shown. It is for ReceiverOptions.Drop.
func (d *Desk) Drop(ctx context.Context, body []byte) bool {
	var u update
	if json.Unmarshal(body, &u) != nil || u.Callback == nil {
		return false
	}
	q, now := *u.Callback, d.Now()
	mine, all := d.presses.empty(q.From.ID, now), d.presses.empty(crowd, now)
	if !mine && !all {
		return false
	}
	if mine && q.From.Bot {
		return true
	}
	person, err := d.who(ctx, q.From.ID)
	if err != nil || person == nil {
		return err == nil
	}
	if !mine {
		return false
	}
	b, err := d.Memory.Button(ctx, buttonHash(q.Data))
	if err != nil {
		return errors.Is(err, orchestrator.ErrNotFound)
	}
	return !b.under(q)
}

// under reports whether the button is where it was put.
func (b Bound) under(q tap) bool {
	return q.Message != nil && q.Message.Chat.ID == b.Chat && (b.Message == 0 || b.Message == q.Message.ID)
}
