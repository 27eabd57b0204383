package views

import (
	"strings"
	"testing"
)

// A higher limit helps where hops are counted, and nowhere else.
func TestTheStepAfterARefusedHandover(t *testing.T) {
	for reason, want := range map[string]string{
		"Maximum handoffs reached: the task has made 5 of 5; kik → coder was refused.":                                                        "raise engine.max_handoffs",
		"Maximum handoffs reached: the task works in independent mode, where agents hand nothing on; kik → coder was refused.":                "with hand-overs enabled",
		"Maximum handoffs reached: the hand-over to coder failed, so kik works by itself now; kik → coder was refused. Do the work yourself.": "the hand-over before failed",
	} {
		if got := nextStep(DelegationRow{Code: "max_handoffs", State: "refused", Reason: reason}); !strings.Contains(got, want) || want != "raise engine.max_handoffs" && strings.Contains(got, "raise") {
			t.Errorf("%s\n%s", reason, got)
		}
	}
}
