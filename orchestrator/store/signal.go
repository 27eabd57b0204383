package store

import (
	"context"
	"sync"
)

// Signal tells waiters that something has grown. It counts nothing: whoever was told
// looks for itself. Any number may wait; none is forgotten, and many pokes may become
// one. It is ready to use as its zero value.
type Signal struct {
	mu sync.Mutex
	c  chan struct{}
}

// Changed returns a channel that is closed at the next poke. Take it before looking,
// then wait for it.
func (s *Signal) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

// Wait waits for the next poke or the end of ctx.
func (s *Signal) Wait(ctx context.Context) error {
	select {
	case <-s.Changed():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Signal) poke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}
