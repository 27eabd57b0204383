package orchestrator

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// Parts of messages are passed on at this pace: often enough to read along, seldom
// enough that a fast model floods nobody.
const (
	deltaEvery = 80 * time.Millisecond
	deltaBytes = 2 << 10 // gathered ones are passed on at once
	deltaMost  = 4 << 10 // of one piece
)

// deltas gathers the parts of a run's message. Their order is kept: they are passed on
// under mu, the last of a turn before that turn is stored, and none after.
type deltas struct {
	mu     sync.Mutex
	parts  []event.Part // gathered, neighbours joined
	bytes  int
	taken  int               // bytes that came since some were passed on, with those kept back
	turn   int               // that is being written
	stored int               // turns up to here are over
	shown  map[[2]string]int // characters of the turn by kind and tool
	masks  map[[2]string]*held
	order  [][2]string    // of masks
	passed time.Time      // when some were passed on last
	timer  *time.Timer    // set while parts wait
	wait   sync.WaitGroup // for the timer's function
	closed bool
}

// Delta shows a part of a message that is being written; see agent.Host.
func (r *run) Delta(d agent.Delta) {
	if r.live() != nil {
		return
	}
	p := event.Part{TaskID: r.task.ID, DelegationID: r.id, Actor: r.d.To, At: r.e.Now().UTC(), Turn: d.Turn, Kind: d.Kind, Tool: d.Tool[:min(len(d.Tool), maxRef)],
		Text: strings.ToValidUTF8(d.Text, "\ufffd")}
	s := &r.deltas
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || p.Turn <= s.stored || p.Text == "" && p.Kind != event.KindReset && p.Tool == "" {
		return
	}
	s.take(p)
	switch now := time.Now(); {
	case s.taken >= deltaBytes || now.Sub(s.passed) >= deltaEvery:
		s.pass(r.e.Options.Hub)
	case s.timer == nil:
		s.wait.Add(1)
		s.timer = time.AfterFunc(deltaEvery-now.Sub(s.passed), func() {
			defer s.wait.Done()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.timer = nil
			s.pass(r.e.Options.Hub)
		})
	}
}

// held is a text of the turn of which the end may become a secret, and the part that it
// would be passed on with.
type held struct {
	mask.Stream
	part event.Part
}

// take masks a part and adds what can be shown of it by now; what it goes behind of
// another kind is complete.
func (s *deltas) take(p event.Part) {
	key := [2]string{p.Kind, p.Tool}
	switch {
	case p.Kind == event.KindReset:
		s.masks, s.order, s.taken = nil, nil, 0
	case p.Turn != s.turn || len(s.order) > 0 && s.order[len(s.order)-1] != key:
		s.flush()
	}
	s.taken += len(p.Text)
	if p.Kind == event.KindReset || p.Text == "" {
		s.gather(p)
		return
	}
	h := s.masks[key]
	if h == nil {
		h = &held{}
		if s.masks == nil {
			s.masks = map[[2]string]*held{}
		}
		s.masks[key], s.order = h, append(s.order, key)
	}
	h.part = p
	if p.Text = h.Write(p.Text); p.Text != "" {
		s.gather(p)
	}
}

// flush adds what was kept back.
func (s *deltas) flush() {
	for _, key := range s.order {
		h := s.masks[key]
		if h.part.Text = h.Flush(); h.part.Text != "" {
			s.gather(h.part)
		}
	}
	s.masks, s.order = nil, nil
}

// gather adds a part behind the others.
func (s *deltas) gather(p event.Part) {
	if p.Turn != s.turn || p.Kind == event.KindReset {
		s.turn, s.shown = p.Turn, map[[2]string]int{}
	}
	if p.Kind == event.KindReset { // what nobody has seen need not be taken back
		s.parts, s.bytes = []event.Part{p}, 0
		return
	}
	key := [2]string{p.Kind, p.Tool}
	p.Offset = s.shown[key]
	s.shown[key] += utf8.RuneCountInString(p.Text)
	s.bytes += len(p.Text)
	if n := len(s.parts); n == 0 || !s.parts[n-1].Join(p) {
		s.parts = append(s.parts, p)
	}
}

// pass shows what was gathered. The caller holds mu.
func (s *deltas) pass(hub *event.Hub) {
	for _, p := range s.parts {
		for _, piece := range p.Split(deltaMost) {
			hub.Pass(piece)
		}
	}
	s.parts, s.bytes, s.taken, s.passed = nil, 0, 0, time.Now()
}

// turnOver passes on what is left of the turns up to n, which is about to be stored.
func (r *run) turnOver(n int) {
	s := &r.deltas
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.pass(r.e.Options.Hub)
	s.stored = max(s.stored, n)
	r.e.Options.Hub.Over(r.task.ID, r.id)
}

// closeDeltas passes on what is left when the run ends, and waits for the timer.
func (r *run) closeDeltas() {
	s := &r.deltas
	s.mu.Lock()
	s.flush()
	s.pass(r.e.Options.Hub)
	s.closed = true
	if s.timer != nil && s.timer.Stop() {
		s.wait.Done()
	}
	s.timer = nil
	s.mu.Unlock()
	s.wait.Wait()
	r.e.Options.Hub.Over(r.task.ID, r.id)
}
