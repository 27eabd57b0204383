package intake_test

import (
	"encoding/json"

	"gatehouse/orchestrator/record/event"
)

// number reads a figure of an event's data.
func number(w *world, e event.Event, name string) float64 {
	w.Helper()
	var data map[string]any
	w.must(json.Unmarshal(e.Data, &data))
	n, _ := data[name].(float64)
	return n
}
