package orchestrator

import (
	"encoding/json"
	"maps"
	"slices"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
)

// How much of a hand-over's context its command object repeats. The shared context has the
// whole, in the namespace of the task's hand-overs.
const (
	maxCarriedValue = 2000     // characters of one value
	maxCarried      = 16 << 10 // bytes of all
)

// carried is the command object of a hop as the child has it: with the context that came
// beside it, and without what looks like a secret. Nil where none was handed over. The
// question to people has it as it was sent, so that a secret in it is seen.
func carried(h *agent.Handover, context map[string]string) *agent.Handover {
	if h == nil {
		return nil
	}
	c := *h
	c.Update.Context.More = nil
	size := 0
	for _, name := range slices.Sorted(maps.Keys(context)) {
		value := []rune(context[name])
		if len(value) > maxCarriedValue {
			value = append(value[:maxCarriedValue:maxCarriedValue], '…')
		}
		if size += len(name) + len(string(value)); size > maxCarried {
			break
		}
		if c.Update.Context.More == nil {
			c.Update.Context.More = map[string]string{}
		}
		c.Update.Context.More[name] = string(value)
	}
	return maskedHandover(&c)
}

// maskedHandover is h without its secrets.
func maskedHandover(h *agent.Handover) *agent.Handover {
	raw, err := json.Marshal(h)
	if err != nil {
		return h // texts and numbers always marshal
	}
	var masked agent.Handover
	if err := json.Unmarshal(mask.JSON(raw), &masked); err != nil {
		return h
	}
	return &masked
}
