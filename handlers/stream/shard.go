package stream

import (
	"slices"
	"sync"

	"gatehouse/orchestrator/record/event"
)

// shard is a share of the parked subscriptions of a tail. When there is something new one
// goroutine writes it to all of them, one after the other, without waiting for anybody;
// between times there is none. A subscription that would have to wait, for its client or
// for the store, goes on in a goroutine of its own and parks again.
type shard struct {
	tail *tail

	mu     sync.Mutex
	parked []*subscription
	busy   bool // a goroutine delivers
	again  bool // there is more for it
}

// park puts a subscription into its place, if the line goes on. What came since version was
// read is delivered at once.
func (s *shard) park(u *subscription, version int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.over {
		return false
	}
	u.place = len(s.parked)
	s.parked = append(s.parked, u)
	if s.tail.version.Load() != version {
		s.start()
	}
	return true
}

// remove takes a subscription out and reports whether it was parked; otherwise it will not
// be parked any more.
func (s *shard) remove(u *subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.over = true
	if u.place == working {
		return false
	}
	last := len(s.parked) - 1
	s.parked[u.place] = s.parked[last]
	s.parked[u.place].place = u.place
	s.parked[last] = nil
	s.parked = s.parked[:last]
	u.place = working
	return true
}

// kick delivers what is new.
func (s *shard) kick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parked) > 0 || s.busy {
		s.start()
	}
}

// start makes sure that a goroutine delivers what there is from now on. The caller holds mu.
func (s *shard) start() {
	if s.again = true; !s.busy {
		s.busy = true
		s.tail.work.Go(s.deliver)
	}
}

// deliver writes to everybody until there is nothing more.
func (s *shard) deliver() {
	d := delivery{attempt: newAttempt()}
	var taken []*subscription
	for {
		s.mu.Lock()
		if !s.again {
			s.busy = false
			s.mu.Unlock()
			return
		}
		s.again = false
		taken = append(taken[:0], s.parked...)
		for _, u := range taken {
			u.place = working
		}
		clear(s.parked)
		s.parked = s.parked[:0]
		s.mu.Unlock()
		for _, u := range taken {
			version := s.tail.version.Load()
			if !d.serve(u) {
				u.wake()
			} else if !s.park(u, version) {
				u.finish()
			}
		}
		clear(taken)
	}
}

// delivery is what one round of writing keeps between two subscriptions: most are at the
// same place and get the same bytes.
type delivery struct {
	*attempt
	same batchKey
	made []byte
	at   reader // where a reader with this key is afterwards
}

// flushAt is how many bytes are tried at once, one event more or less.
const flushAt = 128 << 10

// batchKey says for whom the bytes that were made are the same.
type batchKey struct {
	tail          *tail
	version       int64
	cursor, heard int64
	proto         protocol
}

// serve writes what is new to one subscription. False means that it has to go on by itself.
func (d *delivery) serve(u *subscription) bool {
	if _, ok := u.out.(*plain); !ok {
		return false
	}
	for {
		key := batchKey{u.tail, u.tail.version.Load(), u.cursor, u.heard, u.line.proto}
		if len(d.made) > 0 && key == d.same && u.only == "" {
			if !d.give(u, d.made, d.at.cursor, d.at.heard) {
				return false
			}
			continue
		}
		frames, behind := u.tail.after(u.cursor, u.heard)
		if behind {
			return false
		}
		if len(frames) == 0 {
			return true
		}
		b, at, shared, ok := gather(u, frames)
		if !ok || !d.give(u, b, at.cursor, at.heard) {
			return false
		}
		if shared {
			d.same, d.made, d.at = key, b, at
		}
	}
}

// give writes bytes and notes where the reader is after them.
func (d *delivery) give(u *subscription, b []byte, cursor, heard int64) bool {
	if len(b) > 0 {
		switch u.line.try(b, d.attempt) {
		case sent:
		case kept:
			u.cursor, u.heard = cursor, heard
			return false
		default:
			return false
		}
	}
	u.cursor, u.heard = cursor, heard
	return true
}

// gather puts frames together as u gets them. shared says that every reader of the same
// place who wants all gets the same; not ok, that u has to look itself: something is
// missing, or concerns its session.
func gather(u *subscription, frames []frame) (b []byte, at reader, shared, ok bool) {
	at, shared = reader{taskID: u.taskID, cursor: u.cursor, heard: u.heard}, u.only == "" && u.who.Run == nil
	var parts [][]byte
	size := 0
	for _, f := range frames {
		if at.skips(f) || f.part == 0 && concerns(u.who, f.event) {
			return nil, at, false, false
		}
		if f.event.TaskID == event.System {
			shared = false
		}
		at.pass(f)
		if u.wants(f) {
			one := u.line.proto.event(f)
			parts, size = append(parts, one), size+len(one)
		}
		if size >= flushAt {
			break
		}
	}
	if len(parts) == 1 {
		return parts[0], at, shared, true
	}
	return slices.Concat(parts...), at, shared, true
}
