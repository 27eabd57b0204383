package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/record/event"
)

func testRelay(node string) (*relay, *event.Hub) {
	hub := &event.Hub{}
	r := newRelay(&Store{node: node, hub: hub, clock: func() time.Time { return time.Unix(1000, 0) }}, nil)
	hub.Connect(r)
	return r, hub
}

// Nothing is sent for a task that nobody elsewhere listens to; who listens gets what
// was written so far and what follows, in order.
func TestPartsGoWhereSomebodyListens(t *testing.T) {
	one, writes := testRelay("one")
	two, hears := testRelay("two")
	at := 0
	write := func(s string) {
		writes.Pass(event.Part{TaskID: "tsk_a", DelegationID: "dlg_a", Turn: 1, Kind: "text", Text: s, Offset: at})
		at += len(s)
	}
	write("so far ")
	if got := one.take(); len(got) != 0 {
		t.Errorf("nobody listens, and sent was %q", got)
	}
	l := hears.Listen("tsk_a", 100)
	defer l.Close()
	if len(l.SoFar()) != 0 {
		t.Error("the other node knows what it was not told")
	}
	for _, payload := range two.take() {
		one.heard(payload)
		two.heard(payload) // its own comes back, too
	}
	write("and more")
	for _, payload := range one.take() {
		one.heard(payload)
		two.heard(payload)
	}
	got := ""
	for len(l.C) > 0 {
		p := <-l.C
		if p.Offset > len(got) {
			t.Errorf("offset %d after %q", p.Offset, got)
		}
		got = got[:p.Offset] + p.Text
	}
	if got != "so far and more" {
		t.Errorf("the other node heard %q", got)
	}
	one.now = func() time.Time { return time.Unix(1000, 0).Add(wantedFor + time.Second) }
	write(" later")
	if got := one.take(); len(got) != 0 {
		t.Errorf("nobody has listened for long, and sent was %q", got)
	}
}

// However much is written and in whatever characters, a payload is never longer than
// PostgreSQL takes, and what waits is bounded.
func TestRelayedPartsFitAndAreDropped(t *testing.T) {
	r, hub := testRelay(strings.Repeat("n", 60))
	r.want("tsk_a")
	for i := range 5000 {
		hub.Pass(event.Part{TaskID: "tsk_a", DelegationID: fmt.Sprint("dlg_", i%7), Actor: "kik", Turn: 1, Kind: "text", Text: strings.Repeat("\x01\u202e<", 100+i%900), Offset: i})
	}
	if r.bytes > relayMost {
		t.Errorf("%d bytes wait", r.bytes)
	}
	payloads, size := r.take(), 0
	for _, p := range payloads {
		size += len(p)
		if len(p) > maxPayload {
			t.Errorf("a payload has %d bytes", len(p))
		}
		_, body, _ := strings.Cut(p, "\n")
		var parts []event.Part
		if err := json.Unmarshal([]byte(body), &parts); err != nil || len(parts) == 0 {
			t.Errorf("%.60q: %v", p, err)
		}
	}
	if len(payloads) < 2 || size > 8*relayMost {
		t.Errorf("%d payloads of %d bytes", len(payloads), size)
	}
	for range 3 * maxTold {
		r.Want(fmt.Sprint("tsk_", len(r.wants)))
	}
	for _, p := range r.take() {
		if len(p) > maxPayload {
			t.Errorf("a payload of wishes has %d bytes", len(p))
		}
	}
	for i := range 2 * maxTold {
		r.want(fmt.Sprint("tsk_", i))
	}
	if len(r.wanted) > maxTold {
		t.Errorf("%d wishes are kept", len(r.wanted))
	}
}

func TestHostilePartsAreIgnored(t *testing.T) {
	r, hub := testRelay("one")
	l := hub.Listen("tsk_a", 10)
	defer l.Close()
	for _, payload := range []string{"", "x", "two\n", "two\n{}", "two\n[1]", "two\nnull", "two\n[{\"task_id\":5}]", "two\n[[]]", "one\n[{\"task_id\":\"tsk_a\"}]"} {
		r.heard(payload)
	}
	if n := len(l.C); n != 0 {
		t.Errorf("%d parts were heard", n)
	}
}
