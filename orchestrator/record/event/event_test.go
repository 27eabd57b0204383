package event

import (
	"testing"
	"time"
)

// sealed is a task's history of n events.
func sealed(n int) []Event {
	prev, all := "", make([]Event, n)
	for i := range all {
		all[i] = Event{TaskID: "tsk_1", N: int64(i + 1), ID: "evt_" + string(rune('a'+i)), Type: Progress, Actor: "coder",
			At: time.UnixMicro(int64(1000 + i)).UTC(), Data: Data(map[string]any{"text": "line", "n": i})}
		all[i].Seal(prev)
		prev = all[i].Hash
	}
	return all
}

func verify(all []Event) error {
	prev := ""
	for _, e := range all {
		if err := e.Verify(prev); err != nil {
			return err
		}
		prev = e.Hash
	}
	return nil
}

func TestAnUntouchedHistoryVerifies(t *testing.T) {
	if err := verify(sealed(5)); err != nil {
		t.Fatal(err)
	}
}

func TestEveryChangeOfTheHistoryIsFound(t *testing.T) {
	tampering := map[string]func([]Event) []Event{
		"data":      func(a []Event) []Event { a[2].Data = Data(map[string]any{"text": "another"}); return a },
		"actor":     func(a []Event) []Event { a[2].Actor = "mallory"; return a },
		"type":      func(a []Event) []Event { a[2].Type = Completed; return a },
		"time":      func(a []Event) []Event { a[2].At = a[2].At.Add(time.Microsecond); return a },
		"number":    func(a []Event) []Event { a[2].N = 7; return a },
		"task":      func(a []Event) []Event { a[2].TaskID = "tsk_2"; return a },
		"removed":   func(a []Event) []Event { return append(a[:2], a[3:]...) },
		"reordered": func(a []Event) []Event { a[2], a[3] = a[3], a[2]; return a },
		"field border": func(a []Event) []Event {
			a[2].ID, a[2].Type = a[2].ID+"d", "elegation.progress"
			return a
		},
	}
	for name, tamper := range tampering {
		t.Run(name, func(t *testing.T) {
			if verify(tamper(sealed(5))) == nil {
				t.Error("nobody noticed")
			}
		})
	}
}

func TestWatchersHearOfTheirTaskAndOfAll(t *testing.T) {
	var h Hub
	all, one, two := h.Watch("", 4), h.Watch("tsk_1", 4), h.Watch("tsk_2", 4)
	h.Publish(Notice{TaskID: "tsk_1", First: 1, Last: 2})
	h.Publish(Notice{})
	for name, c := range map[string]struct {
		s    *Subscription
		want int
	}{"all": {all, 2}, "its task": {one, 2}, "another task": {two, 1}} {
		if got := len(c.s.C); got != c.want {
			t.Errorf("the watcher of %s heard %d notices, want %d", name, got, c.want)
		}
		c.s.Close()
		c.s.Close()
	}
	h.Publish(Notice{TaskID: "tsk_1"})
	if len(one.C) != 2 {
		t.Error("a closed watcher still hears")
	}
}

// Whoever is slow loses notices and is told so; nobody waits for them.
func TestASlowWatcherLagsAndKnows(t *testing.T) {
	var h Hub
	s := h.Watch("tsk_1", 1)
	defer s.Close()
	for range 3 {
		h.Publish(Notice{TaskID: "tsk_1"})
	}
	select {
	case <-s.Lagged():
	default:
		t.Error("a watcher that lost notices is not told")
	}
	if len(s.C) != 1 {
		t.Errorf("%d notices wait, want the one that fits", len(s.C))
	}
}
