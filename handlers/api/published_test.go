package api

import (
	"slices"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/trigger"
	"gatehouse/web/wire"
)

// The published types know no room of the engine, so what they say of its values is written there once more.
func TestPublishedWordsAreThoseOfTheEngine(t *testing.T) {
	made := []trigger.DeliveryState{trigger.Stored, trigger.Started}
	for _, s := range trigger.States() {
		if got := (wire.Delivery{State: string(s)}).Made(); got != slices.Contains(made, s) {
			t.Errorf("a delivery that is %s makes a task: %t", s, got)
		}
	}
	if wire.MaxPayload != trigger.MaxBody {
		t.Errorf("a payload has at most %d bytes, a body %d", wire.MaxPayload, trigger.MaxBody)
	}
	if wire.RequestPrefix != orchestrator.RequestPrefix {
		t.Errorf("a request begins with %s, and is taken for one at %s", orchestrator.RequestPrefix, wire.RequestPrefix)
	}
}
