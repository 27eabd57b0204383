package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/textcut"
	"gatehouse/views"
)

// maxHandedLine is how much of one value of a hand-over its page shows, in bytes; the API
// and the receiver have the whole.
const maxHandedLine = 2000

// handedLines is the command object that came with a delegation as its page shows it. What
// says nothing is left out; the task stands above it.
func handedLines(h *agent.Handover) []views.ContextLine {
	if h == nil {
		return nil
	}
	var lines []views.ContextLine
	add := func(name, value string) {
		if value = mask.Text(strings.TrimSpace(value)); value != "" {
			lines = append(lines, views.ContextLine{Key: name, Value: textcut.Brief(value, maxHandedLine)})
		}
	}
	u := h.Update
	judged := u.Context.Judged
	switch {
	case judged.Retry:
		add("retry", "yes: "+judged.Reason)
	case judged.Validated != nil:
		add("validated", map[bool]string{true: "yes: ", false: "no: "}[*judged.Validated]+judged.Reason)
	}
	add("completed", u.Context.Completed)
	add("artifacts", strings.Join(artifactLines(u), "\n"))
	add("phase", u.WorkflowState.Phase)
	add("next phase", u.WorkflowState.NextPhase)
	add("steps done", strings.Join(u.WorkflowState.CompletedSteps, ", "))
	add("steps left", strings.Join(u.WorkflowState.RemainingSteps, ", "))
	for _, name := range slices.Sorted(maps.Keys(u.Context.More)) {
		add(orchestrator.Title(name), u.Context.More[name])
	}
	add("so far", spent(u.Metrics))
	return lines
}

// artifactLines names what was made, and where, and what is still to be made.
func artifactLines(u agent.HandoverUpdate) []string {
	var lines []string
	for _, name := range (&agent.Handover{Update: u}).ArtifactNames() {
		path, listed := u.Artifacts[name]
		switch {
		case !listed:
			lines = append(lines, name)
		case path == nil:
			lines = append(lines, name+": not made yet")
		default:
			lines = append(lines, name+": "+*path)
		}
	}
	return lines
}

// spent is what the work took before it was handed over.
func spent(m agent.HandoverMetrics) string {
	if m == (agent.HandoverMetrics{}) {
		return ""
	}
	words := fmt.Sprintf("%d tokens, %s", m.TokensUsed, time.Duration(m.TimeElapsed)*time.Second)
	if m.RetryCount > 0 {
		words += fmt.Sprintf(", %d refused tries to hand over", m.RetryCount)
	}
	return words
}
