package intake

import (
	"fmt"
	"sync"
	"time"

	"gatehouse/orchestrator/trigger"

	"golang.org/x/time/rate"
)

// TooMany is the error of a signed call over the limit of its trigger: nothing of it was
// kept, and whoever sent it may send it again after Wait.
type TooMany struct {
	Limit int // calls a minute
	Wait  time.Duration
}

// Error says what to do.
func (t *TooMany) Error() string {
	return fmt.Sprintf("This webhook takes %d calls a minute, and these were more. Send it again in %d s.", t.Limit, t.Seconds())
}

// Seconds is Wait in whole seconds, for Retry-After: at least 1.
func (t *TooMany) Seconds() int { return int(max(t.Wait+time.Second-1, time.Second) / time.Second) }

// pace holds each webhook to its calls a minute, on this node. A call counts once it has
// shown that it is signed, so that strangers use up nothing. It is safe for concurrent use.
type pace struct {
	mu  sync.Mutex
	per map[string]*rate.Limiter // by trigger
}

// take counts a call, or says that it is one too many.
func (p *pace) take(t *trigger.Trigger, now time.Time) *TooMany {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.per[t.Name]
	if l == nil || l.Burst() != t.Rate { // configured anew
		if p.per == nil {
			p.per = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(float64(t.Rate)/60), t.Rate)
		p.per[t.Name] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	return &TooMany{Limit: t.Rate, Wait: wait}
}
