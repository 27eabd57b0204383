package signin

import (
	"sync"
	"time"
)

// tries limits how often somebody may fail within a window. It counts failures and
// not successes, so people who sign in often are not stopped. It is safe for
// concurrent use and forgets what is older than the window.
type tries struct {
	most   int
	window time.Duration
	now    func() time.Time

	mu    sync.Mutex
	fails map[string]failures
}

type failures struct {
	n     int
	since time.Time
}

// maxTracked bounds the memory that strangers can make us use.
const maxTracked = 10_000

func newTries(most int, window time.Duration, now func() time.Time) *tries {
	return &tries{most: most, window: window, now: now, fails: map[string]failures{}}
}

// wait returns how long key has to wait before the next try; 0 means none. A try
// counts as failed until won is called: many at once cannot slip through.
func (t *tries) wait(key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	f := t.fails[key]
	if now.Sub(f.since) >= t.window {
		f = failures{since: now}
	}
	if f.n >= t.most {
		return t.window - now.Sub(f.since)
	}
	if len(t.fails) >= maxTracked {
		t.forget(now)
	}
	f.n++
	t.fails[key] = f
	return 0
}

// blocked returns how long key has to wait, without counting a try.
func (t *tries) blocked(key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.fails[key]
	if left := t.window - t.now().Sub(f.since); f.n >= t.most && left > 0 {
		return left
	}
	return 0
}

// won takes a key's failures back.
func (t *tries) won(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.fails, key)
}

// forget drops what has run out, and everything when that is not enough.
func (t *tries) forget(now time.Time) {
	for k, f := range t.fails {
		if now.Sub(f.since) >= t.window {
			delete(t.fails, k)
		}
	}
	if len(t.fails) >= maxTracked {
		clear(t.fails)
	}
}
