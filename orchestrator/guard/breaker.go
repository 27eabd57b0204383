package guard

import (
	"cmp"
	"fmt"
	"time"

	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/textcut"
)

// BreakerState is where a circuit breaker stands (H11).
type BreakerState string

// The states: a closed one lets work through; an open one refuses it until its cool-down
// is over; a half-open one has let one probe through and refuses the others.
const (
	Closed   BreakerState = "closed"
	Open     BreakerState = "open"
	HalfOpen BreakerState = "half_open"
)

// maxReason is how many bytes of the last error are kept.
const maxReason = 200

// Breaker rests an agent that failed too often in a row. It is a value: who holds its row
// stores what the methods return. The zero value is closed.
type Breaker struct {
	Agent      string       `json:"agent"`
	State      BreakerState `json:"state"`
	Failures   int          `json:"failures"` // in a row
	OpenedAt   time.Time    `json:"opened_at,omitzero"`
	Until      time.Time    `json:"until,omitzero"`       // no probe before
	Probe      string       `json:"probe,omitempty"`      // the delegation that tries, while half open
	ProbeUntil time.Time    `json:"probe_until,omitzero"` // the probe is a lease: then another may try
	Reason     string       `json:"reason,omitempty"`     // the last error
	ChangedAt  time.Time    `json:"changed_at,omitzero"`
}

// Resting reports whether the breaker is open or half open.
func (b Breaker) Resting() bool { return b.State == Open || b.State == HalfOpen }

// Fail counts a failure (H13): at limit in a row, or when a probe failed, it opens for
// cooldown. A limit of 0 switches breakers off.
func (b Breaker) Fail(now time.Time, reason string, limit int, cooldown time.Duration) Breaker {
	if limit <= 0 {
		return b
	}
	b.Failures, b.Reason, b.ChangedAt = b.Failures+1, textcut.Brief(reason, maxReason), now
	b.State = cmp.Or(b.State, Closed)
	if b.Failures >= limit || b.Resting() {
		if !b.Resting() {
			b.OpenedAt = now
		}
		b.State, b.Until, b.Probe, b.ProbeUntil = Open, now.Add(cooldown), "", time.Time{}
	}
	return b
}

// Succeed closes the breaker (H13).
func (b Breaker) Succeed(now time.Time) Breaker {
	return Breaker{Agent: b.Agent, State: Closed, ChangedAt: now}
}

// MayProbe reports whether a hop now would be the one probe (H14).
func (b Breaker) MayProbe(now time.Time) bool {
	// Nodes' clocks differ a little. When it changed later than that from now, the clock
	// was set back, and nobody can say how long it rests: it is tried.
	back := now.Before(b.ChangedAt.Add(-clockSlack))
	switch b.State {
	case Open:
		return back || !now.Before(b.Until)
	case HalfOpen:
		return back || b.Probe == "" || !now.Before(b.ProbeUntil)
	default:
		return false
	}
}

// clockSlack is how far the clocks of nodes may differ.
const clockSlack = 2 * time.Minute

// Try makes a delegation the probe until then.
func (b Breaker) Try(now time.Time, delegation string, until time.Time) Breaker {
	b.State, b.Probe, b.ProbeUntil, b.ChangedAt = HalfOpen, delegation, until, now
	return b
}

// Drop gives up a probe that ended without saying anything about the agent, such as one
// that people cancelled: the next hop may try.
func (b Breaker) Drop(now time.Time, delegation string) Breaker {
	if b.State == HalfOpen && b.Probe == delegation {
		b.Probe, b.ProbeUntil, b.ChangedAt = "", time.Time{}, now
	}
	return b
}

// Sentence says for pages what the breaker does.
func (b Breaker) Sentence(now time.Time) string {
	switch {
	case b.State == Open && !b.MayProbe(now):
		return fmt.Sprintf("rests for %s more after %d failures in a row", budget.Span(b.Until.Sub(now)), b.Failures)
	case b.State == Open:
		return fmt.Sprintf("rested after %d failures in a row; the next hand-over is a probe", b.Failures)
	case b.State == HalfOpen && b.MayProbe(now):
		return "half open; the next hand-over is a probe"
	case b.State == HalfOpen:
		return "half open; one probe is under way"
	case b.Failures > 0:
		return fmt.Sprintf("closed; %d failures in a row", b.Failures)
	default:
		return "closed"
	}
}
