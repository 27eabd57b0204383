package handlers

import (
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/views"
)

// limitsOf says what a run may use, and the most that it used. What it was started with
// counts, not what the agent would be given now.
func limitsOf(spec agent.Spec, c *agent.Confinement) (limits, used string) {
	var parts []string
	if spec.Timeout > 0 {
		parts = append(parts, "stops after "+views.Duration(spec.Timeout))
	}
	if c == nil { // it has not begun, or is at it
		c = &agent.Confinement{Limits: spec.Limits, Network: spec.Network}
	}
	if l := c.Limits.String(); l != "" {
		parts = append(parts, l)
	}
	if c.Network == agent.NetworkOff {
		parts = append(parts, "no network")
	}
	return strings.Join(parts, ", "), c.Most.String()
}
