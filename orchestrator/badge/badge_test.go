package badge

import "testing"

// The signs are those of the design; a terminal without UTF-8 has a letter for each of them.
func TestTheSignsOfStates(t *testing.T) {
	for state, want := range map[string]string{
		"queued": "○ queued neutral", "running": "● running run", "waiting": "⧗ waiting neutral", "awaiting_approval": "◆ awaiting approval wait", "awaiting_answer": "◆ awaiting answer wait",
		"pending": "◆ pending wait", "landing": "⇥ landing run", "completed": "✓ completed ok", "approved": "✓ approved ok", "landed": "✓ landed ok",
		"answered": "✓ answered ok", "failed": "✕ failed bad", "rejected": "⊖ rejected bad", "changes_requested": "↩ changes requested wait", "expired": "⌛ expired neutral",
		"cancelled": "■ cancelled neutral", "superseded": "⧉ superseded special", "stale": "⧉ stale special", "reverted": "⧉ reverted special",
		"refused": "⊘ refused bad", "of_a_later_version": "· of a later version neutral",
	} {
		l := Of(state)
		if got := l.Mark + " " + l.Word + " " + l.Role; got != want || Known(state) == (l.Mark == "·") {
			t.Errorf("%s looks %q, want %q", state, got, want)
		}
	}
	if Arrived("landed", true) != "pushed" || Arrived("landed", false) != "landed" || Arrived("pending", true) != "pending" {
		t.Error("pushed stands in place of landed, and of nothing else")
	}
}

func TestWhatWasDone(t *testing.T) {
	for verdict, want := range map[string]string{"approve": "approved this", "reject": "rejected this", "edit": "edited this",
		"request_changes": "requested changes", "withdraw": "withdrew their approval", "answer": "answered this", "renew": "renew"} {
		if got := Did(verdict, "this"); got != want {
			t.Errorf("%s is %q, want %q", verdict, got, want)
		}
	}
	if got := Did("approve", ""); got != "approved" {
		t.Errorf("without an object it is %q", got)
	}
}
