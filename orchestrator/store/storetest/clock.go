package storetest

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that stands still until it is moved.
type Clock struct{ us atomic.Int64 }

// NewClock makes a clock that shows a fixed day.
func NewClock() *Clock {
	c := &Clock{}
	c.us.Store(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

// Now is the time it shows.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.us.Load()).UTC() }

// Add moves it.
func (c *Clock) Add(d time.Duration) { c.us.Add(d.Microseconds()) }
