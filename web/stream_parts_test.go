package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// delta is the data of a message.delta.
type delta struct {
	Turn   int    `json:"turn"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Offset int    `json:"offset"`
}

func (h *house) delta(e event.Event) delta {
	h.Helper()
	var d delta
	if err := json.Unmarshal(e.Data, &d); err != nil {
		h.Errorf("%s: %v", e.Data, err)
	}
	return d
}

// write shows a piece of a text as a run of this node does.
func (h *house) write(taskID, delegationID string, turn int, text string, offset int) {
	h.engine.Hub().Pass(event.Part{TaskID: taskID, DelegationID: delegationID, Actor: "kik", At: time.Now(), Turn: turn, Kind: "text", Text: text, Offset: offset})
}

// complete stores a turn's event.
func (h *house) complete(taskID, delegationID string, turn int) {
	h.engine.Hub().Over(taskID, delegationID)
	err := h.store.InTask(h.ctx, taskID, func(tx orchestrator.Tx) error {
		return tx.Append(h.ctx, event.Event{Type: event.MessageCompleted, DelegationID: delegationID, Actor: "kik", Data: event.Data(map[string]any{"turn": turn, "text": "whole"})})
	})
	if err != nil {
		h.Error(err)
	}
}

// below makes a delegation under the root without an agent at work.
func (h *house) below(task orchestrator.Task, root orchestrator.Delegation, i int) string {
	h.Helper()
	id := orchestrator.NewID(orchestrator.DelegationPrefix, time.Now())
	return id[:len(id)-2] + fmt.Sprintf("%02d", i)
}

// K13, A32: the stream of a task carries what each of its agents writes, in its place
// among the events: no part of a turn comes behind the turn, none has a number, and
// resuming by the last id loses no event.
func TestPartsComeInTheirPlaceAmongTheEvents(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, root := h.task(dora, "Write")
	const writers, turns = 3, 15
	total := int64(2 + writers*turns)
	var ids []string
	for i := range writers {
		ids = append(ids, h.below(task, root, i))
	}
	var wg, reading, hearing sync.WaitGroup // readers that have the task's first events, and parts
	const readers = 3
	var all atomic.Bool // have heard parts
	reading.Add(readers)
	hearing.Add(readers)
	wg.Go(func() {
		hearing.Wait()
		all.Store(true)
	})
	for _, id := range ids {
		wg.Go(func() {
			reading.Wait()
			for turn := 1; turn <= turns; turn++ {
				for i := range 20 {
					h.write(task.ID, id, turn, "0123456789", 10*i)
				}
				for i := 20; turn == turns && !all.Load(); i++ { // who was behind until now comes in the middle of the last turn
					h.write(task.ID, id, turn, "0123456789", 10*i)
					time.Sleep(time.Millisecond)
				}
				h.complete(task.ID, id, turn)
			}
		})
	}
	for i := range readers {
		wg.Go(func() {
			isReading, isHearing := sync.OnceFunc(reading.Done), sync.OnceFunc(hearing.Done)
			defer isReading()
			defer isHearing()
			h.readParts(i, task, token, total, isReading, isHearing)
		})
	}
	wg.Wait()
}

// readParts reads a task's stream to its last event, with a connection that is cut again and
// again. Events come without gaps, and parts only of turns that are not over.
func (h *house) readParts(i int, task orchestrator.Task, token string, total int64, isReading, isHearing func()) {
	h.Helper()
	last, next, deltas, missed := "", int64(1), 0, 0
	over, have := map[string]int{}, map[string]int{}
	for next <= total && !h.Failed() {
		budget := 40 + 60*i // then the connection is cut
		last = h.sse("/delegation-stream?id="+task.ID, token, last, func(id, kind string, e event.Event) bool {
			budget--
			if kind != string(event.MessageDelta) {
				if e.N != next {
					h.Errorf("reader %d: event %d, want %d", i, e.N, next)
				}
				if next++; e.Type == event.MessageCompleted {
					over[e.DelegationID] = h.delta(e).Turn
				}
				if e.N == 2 {
					isReading()
				}
				return next <= total && budget > 0
			}
			d := h.delta(e)
			if id != "" || e.N != 0 || e.TaskID != task.ID || e.Actor != "kik" {
				h.Errorf("a part has id %q: %+v", id, e)
			}
			if d.Turn <= over[e.DelegationID] {
				h.Errorf("reader %d: a part of turn %d behind turn %d", i, d.Turn, over[e.DelegationID])
			}
			key := fmt.Sprint(e.DelegationID, d.Turn)
			if d.Offset > have[key] {
				missed++
			}
			have[key] = d.Offset + len(d.Text)
			deltas++
			isHearing()
			return budget > 0
		})
	}
	if deltas == 0 {
		h.Errorf("reader %d got no parts", i)
	}
	h.Logf("reader %d: %d parts, %d gaps between them", i, deltas, missed)
}

// Who opens the page in the middle of a turn sees the turn from its start; a
// delegation's stream has its own parts only, and the stream of all tasks has none.
func TestWhoComesLateSeesTheTurnFromItsStart(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, root := h.task(dora, "Write")
	child := h.below(task, root, 1)
	h.write(task.ID, root.ID, 1, "The answer ", 0)
	h.write(task.ID, root.ID, 1, "is 42", 11)
	h.write(task.ID, child, 1, "below", 0)
	for path, want := range map[string]string{
		v1 + "/delegations/" + task.ID + "/events?after=2": "The answer is 42|below",
		v1 + "/delegations/" + root.ID + "/events":         "The answer is 42|",
		"/delegation-stream?id=" + root.ID:                 "The answer is 42|",
	} {
		got := map[string]string{}
		h.sse(path, token, "", func(_, _ string, e event.Event) bool {
			if e.Type == event.MessageDelta {
				got[e.DelegationID] += h.delta(e).Text
			}
			return got[root.ID]+"|"+got[child] != want
		})
	}

	c, _, err := h.socket(token, nil)
	h.must(err)
	defer c.Close()
	h.must(c.SetReadDeadline(time.Now().Add(20 * time.Second)))
	h.must(c.WriteJSON(map[string]any{"type": "subscribe", "task_id": task.ID, "after": 2}))
	got := ""
	for got != "The answer is 42 of 42" {
		var e event.Event
		h.must(c.ReadJSON(&e))
		if e.Type != event.MessageDelta || e.N != 0 {
			t.Fatalf("the socket got %+v", e)
		}
		if e.DelegationID != root.ID {
			continue
		}
		if got += h.delta(e).Text; got == "The answer is 42" {
			h.write(task.ID, root.ID, 1, " of 42", 16)
		}
	}

	h.sse(v1+"/events?after=0", token, "", func(_, kind string, e event.Event) bool {
		if kind == string(event.MessageDelta) {
			t.Error("the stream of all tasks has parts of messages")
		}
		return e.TaskID != task.ID || e.N < 2
	})
}

// writing writes pieces of a message, one after the other, until read returns, and says how many.
func (h *house) writing(task, delegation, piece string, read func()) int {
	enough, count := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-enough:
				count <- n
				return
			case <-time.After(10 * time.Millisecond):
				h.write(task, delegation, 1, piece, len(piece)*n)
			}
		}
	}()
	read()
	close(enough)
	return <-count
}

// A reader that takes nothing for a while misses parts, and no event; it costs the
// others nothing.
func TestASlowReaderMissesPartsAndNoEvent(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, root := h.task(dora, "Write")
	slow, _, err := h.socket(token, nil)
	h.must(err)
	defer slow.Close()
	h.must(slow.WriteJSON(map[string]any{"type": "subscribe", "task_id": task.ID, "after": 2}))
	h.say(task.ID, root.ID, 1)
	var first event.Event
	h.must(slow.SetReadDeadline(time.Now().Add(60 * time.Second)))
	if h.must(slow.ReadJSON(&first)); first.N != 3 { // it listens from here on
		t.Fatalf("the socket got %+v", first)
	}
	const parts = 4000
	piece := strings.Repeat("w", 4000)
	sent := h.writing(task.ID, root.ID, piece, func() {
		var part event.Event
		if h.must(slow.ReadJSON(&part)); part.Type != event.MessageDelta {
			t.Fatalf("the socket got %+v", part)
		}
	})
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		h.sse("/delegation-stream?id="+task.ID+"&after=2", token, "", func(_, _ string, e event.Event) bool { return e.N != 103 })
	}()
	for i := range parts {
		h.write(task.ID, root.ID, 1, piece, len(piece)*(sent+i))
		if i%40 == 0 {
			h.say(task.ID, root.ID, 1)
		}
	}
	<-seen // the quick one has all events while the slow one has read nothing
	h.must(slow.SetReadDeadline(time.Now().Add(60 * time.Second)))
	got := 0
	for n := int64(4); n <= 103; {
		var e event.Event
		h.must(slow.ReadJSON(&e))
		switch {
		case e.Type == event.MessageDelta:
			got++
		case e.N != n:
			t.Fatalf("event %d, want %d", e.N, n)
		default:
			n++
		}
	}
	if got >= parts {
		t.Errorf("the slow reader got %d of %d parts", got, parts)
	}
	t.Logf("the slow reader got %d of %d parts and every event", got, parts)
}
