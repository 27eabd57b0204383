package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/record/event"

	"github.com/lib/pq"
)

const (
	channel    = "gatehouse"
	maxPayload = 7900   // bytes; PostgreSQL refuses 8,000
	maxTold    = 10_000 // tasks with notices that were not sent; more become "look again"
	// tellEvery is the least time between two notifications of one node: what is
	// committed meanwhile goes out together.
	tellEvery = 5 * time.Millisecond
	pingEvery = 30 * time.Second

	lookAgain = "*" // parts of a payload beside ranges
	positions = "@"
)

// notices collects what this node has committed for the other nodes. Each payload is
// the node's name, a line break, and parts separated by spaces: task:first:last, or
// one of the signs above. Nothing is promised: a node that misses one polls.
type notices struct {
	node string
	side *handle // a connection of its own, never in a transaction's way
	wake chan struct{}

	mu    sync.Mutex
	parts map[string][2]int64 // by task, or by sign
}

func newNotices(node string, side *handle) *notices {
	return &notices{node: strings.ReplaceAll(node, "\n", " "), side: side, wake: make(chan struct{}, 1), parts: map[string][2]int64{}}
}

func (n *notices) add(e event.Notice) { n.put(e.TaskID, e.First, e.Last) }

func (n *notices) put(what string, first, last int64) {
	n.mu.Lock()
	if known, ok := n.parts[what]; ok {
		first, last = min(first, known[0]), max(last, known[1])
	}
	if len(n.parts) >= maxTold {
		n.parts = map[string][2]int64{}
		what, first, last = lookAgain, 0, 0
	}
	n.parts[what] = [2]int64{first, last}
	n.mu.Unlock()
	wake(n.wake)
}

// wake makes whoever waits for c look, now or when it next waits.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take empties n into payloads.
func (n *notices) take() []string {
	n.mu.Lock()
	parts := n.parts
	n.parts = map[string][2]int64{}
	n.mu.Unlock()
	var items []string
	for what, r := range parts {
		if what != lookAgain && what != positions {
			what = what + ":" + strconv.FormatInt(r[0], 10) + ":" + strconv.FormatInt(r[1], 10)
		}
		items = append(items, what)
	}
	sort.Strings(items)
	var payloads []string
	head := n.node + "\n"
	for current := ""; len(items) > 0; items = items[1:] {
		current = strings.TrimPrefix(current+" "+items[0], " ")
		if len(items) == 1 || len(head)+len(current)+1+len(items[1]) > maxPayload {
			payloads = append(payloads, head+current)
			current = ""
		}
	}
	return payloads
}

// run sends until ctx ends. What cannot be sent becomes "look again" once it can.
func (n *notices) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		pause := tellEvery
		for _, payload := range n.take() {
			if _, err := n.side.exec(ctx, "select pg_notify(?, ?)", channel, payload); err != nil {
				n.put(lookAgain, 0, 0)
				pause = time.Second
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// hear turns what other nodes send into notices until ctx ends.
func (s *Store) hear(ctx context.Context) {
	listener := pq.NewListener(s.url, 100*time.Millisecond, 5*time.Second, func(_ pq.ListenerEventType, err error) {
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the connection that hears other nodes broke; trying again", "err", err)
		}
	})
	var wg sync.WaitGroup
	// Listen waits for the connection, if need be until Close.
	wg.Go(func() {
		for _, name := range []string{channel, partsChannel} {
			if err := listener.Listen(name); err != nil && ctx.Err() == nil {
				s.log.Error("cannot listen to other nodes; polling instead", "err", err)
			}
		}
		s.lookAgain()
	})
	defer wg.Wait()
	defer listener.Close()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-listener.NotificationChannel():
			if n == nil { // it was away and is back: what was sent meanwhile is lost
				s.lookAgain()
				continue
			}
			if n.Channel == partsChannel {
				s.relay.heard(n.Extra)
				continue
			}
			s.heard(n.Extra)
		case <-ping.C:
			if err := listener.Ping(); err != nil && ctx.Err() == nil {
				s.log.Warn("the connection that hears other nodes broke; trying again", "err", err)
			}
		}
	}
}

// lookAgain tells every watcher that it may have missed something.
func (s *Store) lookAgain() {
	s.tasks.clear()
	s.hub.Publish(event.Notice{})
	s.ordered.poke()
	wake(s.seq.wake)
}

// heard publishes one payload of another node.
func (s *Store) heard(payload string) {
	node, parts, ok := strings.Cut(payload, "\n")
	if !ok || node == s.told.node {
		return
	}
	for part := range strings.FieldsSeq(parts) {
		switch part {
		case lookAgain:
			s.lookAgain()
			continue
		case positions:
			s.ordered.poke()
			continue
		}
		n, err := parseRange(part)
		if err != nil {
			s.log.Warn("a notice of another node cannot be read", "err", err)
			continue
		}
		s.tasks.drop(n.TaskID)
		s.hub.Publish(n)
		wake(s.seq.wake)
	}
}

func parseRange(part string) (event.Notice, error) {
	f := strings.Split(part, ":")
	if len(f) != 3 {
		return event.Notice{}, fmt.Errorf("notice %q has no task:first:last", part)
	}
	first, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return event.Notice{}, fmt.Errorf("notice %q: %w", part, err)
	}
	last, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return event.Notice{}, fmt.Errorf("notice %q: %w", part, err)
	}
	return event.Notice{TaskID: f[0], First: first, Last: last}, nil
}

const (
	partsChannel = "gatehouse_parts"
	// wantEvery is how often a node says which tasks somebody listens to there, and
	// wantedFor how long it counts for the others.
	wantEvery = 10 * time.Second
	wantedFor = 25 * time.Second
	// relayEvery is the least time between two sends of parts, and relayMost how many
	// bytes wait for one at most; further parts are dropped.
	relayEvery = 50 * time.Millisecond
	relayMost  = 64 << 10
	// relayText is how many bytes of text one part carries: JSON may make six of each.
	relayText = 1200
)

// relay shows the parts of messages that runs of this node write to the nodes where
// somebody listens to their task, and only to those. Nothing is promised: parts are
// merged, late or dropped, and the whole message is stored. A payload is the node's
// name, a line break, and a JSON array: of strings, the tasks that the node wants, or
// of parts.
type relay struct {
	node string
	hub  *event.Hub
	side *handle
	now  func() time.Time
	wake chan struct{}

	mu     sync.Mutex
	wants  map[string]struct{}  // to be said
	wanted map[string]time.Time // by other nodes: by task, until when
	parts  []event.Part         // to be sent, neighbours joined
	bytes  int
}

func newRelay(s *Store, side *handle) *relay {
	return &relay{node: strings.ReplaceAll(s.node, "\n", " "), hub: s.hub, side: side, now: s.clock, wake: make(chan struct{}, 1),
		wants: map[string]struct{}{}, wanted: map[string]time.Time{}}
}

// Want implements event.Relay.
func (r *relay) Want(taskID string) {
	r.mu.Lock()
	if len(r.wants) < maxTold {
		r.wants[taskID] = struct{}{}
	}
	r.mu.Unlock()
	wake(r.wake)
}

// Send implements event.Relay.
func (r *relay) Send(p event.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until, ok := r.wanted[p.TaskID]; !ok || r.now().After(until) {
		delete(r.wanted, p.TaskID)
		return
	}
	r.queue(p)
}

// queue adds a part, unless too much waits. The caller holds mu.
func (r *relay) queue(p event.Part) {
	if r.bytes+len(p.Text) > relayMost || len(r.parts) > relayMost/64 {
		return
	}
	for _, piece := range p.Split(relayText) {
		r.bytes += len(piece.Text)
		if n := len(r.parts); n == 0 || len(r.parts[n-1].Text)+len(piece.Text) > relayText || !r.parts[n-1].Join(piece) {
			r.parts = append(r.parts, piece)
		}
	}
	wake(r.wake)
}

// take empties r into payloads.
func (r *relay) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var items [][]byte
	var payloads []string
	size := 0
	flush := func() {
		if len(items) > 0 {
			payloads = append(payloads, r.node+"\n["+string(join(items))+"]")
		}
		items, size = nil, 0
	}
	add := func(v any) {
		b, err := json.Marshal(v)
		if err != nil || len(r.node)+len(b)+3 > maxPayload {
			return
		}
		if len(r.node)+size+len(b)+3 > maxPayload {
			flush()
		}
		items, size = append(items, b), size+len(b)+1
	}
	for task := range r.wants {
		add(task)
	}
	flush()
	for _, p := range r.parts {
		add(p)
	}
	flush()
	r.wants, r.parts, r.bytes = map[string]struct{}{}, nil, 0
	return payloads
}

func join(items [][]byte) []byte {
	var all []byte
	for i, b := range items {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, b...)
	}
	return all
}

// run sends until ctx ends. What cannot be sent is dropped.
func (r *relay) run(ctx context.Context) {
	again := time.NewTicker(wantEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			for _, task := range r.hub.Listened() {
				r.Want(task)
			}
			continue
		case <-r.wake:
		}
		for _, payload := range r.take() {
			if _, err := r.side.exec(ctx, "select pg_notify(?, ?)", partsChannel, payload); err != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(relayEvery):
		}
	}
}

// heard takes one payload of another node.
func (r *relay) heard(payload string) {
	node, body, ok := strings.Cut(payload, "\n")
	if !ok || node == r.node {
		return
	}
	var wants []string
	if json.Unmarshal([]byte(body), &wants) == nil {
		for _, task := range wants {
			r.want(task)
		}
		return
	}
	var parts []event.Part
	if json.Unmarshal([]byte(body), &parts) != nil {
		return
	}
	for _, p := range parts {
		r.hub.PassOn(p)
	}
}

// want notes that another node listens to a task, and sends it what was written so far.
// Parts that are passed on meanwhile wait for mu; they come behind that and may be in
// it, too, which readers see by their offsets.
func (r *relay) want(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wanted) >= maxTold {
		r.wanted = map[string]time.Time{}
	}
	r.wanted[task] = r.now().Add(wantedFor)
	for _, p := range r.hub.Drafts(task) {
		r.queue(p)
	}
}
