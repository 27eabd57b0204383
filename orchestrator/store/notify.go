package store

import (
	"context"
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
	tellEvery = 2 * time.Millisecond
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
