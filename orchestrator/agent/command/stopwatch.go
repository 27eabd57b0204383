package command

import (
	"sync"
	"time"
)

// Clock may be implemented by a Host that knows for how long the run has been
// running, waiting left out: `gatehouse delegate` waits at the engine, where a
// Runner does not see it. Without it, only the waits in Host.Await are left out.
type Clock interface {
	RunningTime() time.Duration
}

// stopwatch measures how long a run has been running.
type stopwatch struct {
	engine Clock // nil when the host has none
	now    func() time.Time

	mu      sync.Mutex
	started time.Time
	waits   int // open waits; their union counts
	since   time.Time
	waited  time.Duration
}

func newStopwatch(host any, now func() time.Time) *stopwatch {
	engine, _ := host.(Clock)
	return &stopwatch{engine: engine, now: now, started: now()}
}

// running returns the time without waits.
func (s *stopwatch) running() time.Duration {
	if s.engine != nil {
		return s.engine.RunningTime()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	waited := s.waited
	if s.waits > 0 {
		waited += now.Sub(s.since)
	}
	return now.Sub(s.started) - waited
}

func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == 0 {
		s.since = s.now()
	}
	s.waits++
}

func (s *stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits--; s.waits == 0 {
		s.waited += s.now().Sub(s.since)
	}
}
