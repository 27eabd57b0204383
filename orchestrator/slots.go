package orchestrator

import (
	"context"
	"sync"
)

// slots bounds how many delegations this node works on at once. Who waits for a
// child or a person holds none. A run that resumes comes before new work, so that
// what has begun ends first.
type slots struct {
	freed   chan struct{} // has a value after a slot became free for work that found none
	mu      sync.Mutex
	wanted  bool // new work found no slot
	behind  bool // … and nobody has looked since whether all of it has one
	size    int
	used    int
	resumes []chan struct{}
}

func newSlots(n int) *slots {
	return &slots{size: max(n, 1), freed: make(chan struct{}, 1)}
}

// available is how many slots new work could take now.
func (s *slots) available() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.left()
	if n == 0 {
		s.wanted, s.behind = true, true
	}
	return n
}

// free is available for somebody who only asks.
func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left()
}

func (s *slots) left() int {
	if s.used >= s.size || len(s.resumes) > 0 {
		return 0
	}
	return s.size - s.used
}

// try takes a slot for new work.
func (s *slots) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.size || len(s.resumes) > 0 {
		s.wanted, s.behind = true, true
		return false
	}
	s.used++
	return true
}

// spare takes a slot for r, which is about to be queued, unless older work waits for one.
func (s *slots) spare(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.size || len(s.resumes) > 0 || s.behind {
		return false
	}
	s.used++
	r.gainSlot()
	return true
}

// caughtUp says that all work which was due has a slot.
func (s *slots) caughtUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = false
}

// contended reports whether runs that go on wait for a slot.
func (s *slots) contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.resumes) > 0
}

// resume takes a slot for a run that goes on, waiting for one.
func (s *slots) resume(ctx context.Context) error {
	s.mu.Lock()
	if s.used < s.size {
		s.used++
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.resumes = append(s.resumes, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		for i, c := range s.resumes {
			if c == turn {
				s.resumes = append(s.resumes[:i], s.resumes[i+1:]...)
				s.mu.Unlock()
				return ctx.Err()
			}
		}
		s.mu.Unlock()
		s.give() // the turn came together with the end
		return ctx.Err()
	}
}

// give returns a slot.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.handOut()
}

// resize changes how many there are; slots in use are not taken away.
func (s *slots) resize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = max(n, 1)
	s.handOut()
}

// handOut gives free slots to the runs that resume, then tells the dispatcher.
func (s *slots) handOut() {
	for len(s.resumes) > 0 && s.used < s.size {
		s.used++
		close(s.resumes[0])
		s.resumes = s.resumes[1:]
	}
	if s.used < s.size && s.wanted {
		s.wanted = false
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}

// count is how many are in use, and how many there are.
func (s *slots) count() (used, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.size
}
