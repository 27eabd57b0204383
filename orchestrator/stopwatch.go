package orchestrator

import (
	"sync"
	"time"
)

// stopwatch counts running time.
type stopwatch struct {
	mu    sync.Mutex
	now   func() time.Time
	since time.Time
	total time.Duration
}

func (s *stopwatch) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = s.now()
	}
}

func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		s.total += s.now().Sub(s.since)
		s.since = time.Time{}
	}
}

// runs reports whether time is counted now.
func (s *stopwatch) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.since.IsZero()
}

func (s *stopwatch) elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return s.total
	}
	return s.total + s.now().Sub(s.since)
}
