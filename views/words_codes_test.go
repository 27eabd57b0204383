package views

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/guard"
)

// A higher limit helps where hops are counted, and nowhere else.
func TestTheStepAfterARefusedHandover(t *testing.T) {
	for want, hop := range map[string]guard.Hop{
		"raise engine.max_handoffs":    {Handoffs: 5, MaxHandoffs: 5},
		"with hand-overs enabled":      {Independent: true, MaxHandoffs: 5},
		"the hand-over before failed":  {Fallback: "coder", MaxHandoffs: 5},
		"answer is good; else send it": {Independent: true, Fallback: "coder", Handoffs: 5, MaxHandoffs: 5},
	} {
		hop.From.Name, hop.To.Name, hop.Known = "kik", "coder", true
		hop.From.DelegatesTo = []string{"coder"}
		_, refused := guard.Check(hop)
		if refused == nil || refused.Code != guard.CodeMaxHandoffs {
			t.Fatalf("%s: %+v", want, refused)
		}
		row := DelegationRow{Code: refused.Code, Case: refused.Reason, State: "refused", Reason: refused.Message}
		if got := nextStep(row); !strings.Contains(got, want) || want != "raise engine.max_handoffs" && strings.Contains(got, "raise") {
			t.Errorf("%s\n%s", refused.Message, got)
		}
	}
}
