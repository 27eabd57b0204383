package store

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/orchestrator/record/event"
)

func TestNoticesAreMergedAndCut(t *testing.T) {
	n := newNotices("node\none", nil)
	n.add(event.Notice{TaskID: "tsk_a", First: 3, Last: 4})
	n.add(event.Notice{TaskID: "tsk_a", First: 5, Last: 9})
	n.put(positions, 0, 0)
	if got := n.take(); len(got) != 1 || got[0] != "node one\n@ tsk_a:3:9" {
		t.Errorf("payloads %q", got)
	}
	if got := n.take(); len(got) != 0 {
		t.Errorf("taken twice: %q", got)
	}
	for i := range 2000 {
		n.add(event.Notice{TaskID: fmt.Sprintf("tsk_%026d", i), First: 1, Last: 2})
	}
	parts := 0
	for _, payload := range n.take() {
		if len(payload) > maxPayload {
			t.Errorf("a payload of %d bytes", len(payload))
		}
		_, rest, _ := strings.Cut(payload, "\n")
		for part := range strings.FieldsSeq(rest) {
			if _, err := parseRange(part); err != nil {
				t.Error(err)
			}
			parts++
		}
	}
	if parts != 2000 {
		t.Errorf("%d parts", parts)
	}
	for i := range maxTold + 5 { // the server is away and nobody sends
		n.add(event.Notice{TaskID: fmt.Sprint("tsk_", i), First: 1, Last: 1})
	}
	if got := strings.Join(n.take(), ""); !strings.Contains(got, lookAgain) || len(got) > maxPayload {
		t.Errorf("too many notices became %.200q", got)
	}
}

func TestHostilePayloads(t *testing.T) {
	for _, part := range []string{"", "x", "a:b:c", "a:1", "a:1:2:3", "a:1:", ":99999999999999999999:1"} {
		if n, err := parseRange(part); err == nil {
			t.Errorf("%q was read as %+v", part, n)
		}
	}
}
