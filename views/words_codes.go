package views

import (
	"gatehouse/orchestrator/guard"
)

// steps are what a person can do about the code of a failure or refusal. What agents are
// told stands with the guards; this is for whoever looks at the page.
var steps = map[string]string{
	// refusals of guards
	"unknown_agent":   "Name an agent that is configured.",
	"self":            "An agent does its own work itself; let it name another.",
	"not_allowed":     "Let it hand to another agent, or allow it with delegates_to.",
	"cycle":           "Nothing to do if the answer is good; else send it to another agent.",
	"repeat":          "The agents go in a circle: look at what they ask each other.",
	"max_depth":       "Split the task instead of going deeper, or raise engine.max_depth; between systems, engine.max_remote_hops.",
	"max_handoffs":    "Split the task, or raise engine.max_handoffs.",
	"breaker_open":    "Mend what made the agent fail; after its rest one try is let through.",
	"budget_exceeded": "Send a smaller task, or give it a larger budget.",
	"no_capacity":     "Wait until others end, or raise engine.workers.",
	"human_refused":   "A person said no to this hand-over; their words are in the task.",
	// failures of runs
	"protocol":       "Correct what the agent writes: it does not keep to its protocol. Then Retry.",
	"no_checkout":    "Check the repository in gatehouse.yaml, its path and its access; then Retry.",
	"unavailable":    "Put the agent back into gatehouse.yaml, or send the task to another.",
	"overflow":       "Send a smaller task, or give the agent a model that takes more.",
	"exit":           "Read the last lines that the program wrote, then Retry.",
	"start":          "Do what the reason says. Mostly the program is not installed on the server's PATH.",
	"timeout":        "Retry with a longer timeout, or send a smaller task.",
	"lost":           "The run was lost several times: look at the server's log, then Retry.",
	"model":          "Check the provider's key and limits, then Retry.",
	"max_turns":      "Send a smaller task, or raise max_turns.",
	"loop":           "The model repeated itself: say the task in other words.",
	"output_limit":   "Let the program write less, or raise output_limit.",
	"no_ack":         "Nobody took it up in time: check that the agent runs and that workers are free.",
	"remote":         "Look at the other system, then Retry.",
	"step_failed":    "Look at the step that failed; an if can catch it.",
	"bad_output":     "Correct the agent, or what output: asks for in gatehouse.yaml.",
	"bad_artifact":   "Let the agent name a file in its checkout, within the limits.",
	"bad_attachment": "Send a new task with the file, under a plain name.",
	"input_required": "The agent asked back: send the task again with the answer.",
	// what confines a run
	"sandbox_missing":    "Install bubblewrap or use a kernel with Landlock, or give the agent sandbox: auto.",
	"out_of_memory":      "Send a smaller task, or raise limits: {memory: …} of the agent.",
	"too_many_processes": "Let it start fewer at once, or raise limits: {processes: …} of the agent.",
	"disk_full":          "Make room on the disk, or raise limits: {files: …} of the agent; then retry.",
	// patches that were not offered
	"path_protected":   "Ask a maintainer to change protect, or keep the change away from there.",
	"path_outside":     "The agent may not write there: change writes, or the task.",
	"too_large":        "Ask for the change in parts.",
	"secret":           "Take the secret out and put it where no patch goes.",
	"context_mismatch": "The files changed meanwhile: Retry makes the change on the new ones.",
	"analysis_only":    "This agent only analyses: send the work to one that may change files.",
	"path_alias":       "Let the agent use the name that is there, or a plain one that nothing else reads as.",
	"bad_mode":         "Only plain files, programs and links are taken: let the agent remove the rest, then Retry.",
	"symlink":          "Let the agent's links point to places inside the repository, by relative paths.",
	"git_internal":     "This belongs to git: keep the change away from there.",
	"gitlink":          "Agents may not make or change submodules: do that by hand.",
	"duplicate_file":   "The patch changes one file twice: Retry, or let the agent change files itself.",
	"bad_ref":          "Send the task with a branch that is there.",
	"malformed":        "The patch cannot be read: Retry, or let the agent change files itself.",
}

// nextStep is what to do about a row that went wrong; empty where nothing is known.
func nextStep(r DelegationRow) string {
	switch r.Case { // nothing was counted, so a higher limit changes nothing
	case guard.ReasonIndependent:
		return "Nothing to do if the answer is good; else send it again with hand-overs enabled."
	case guard.ReasonFallback:
		return "Nothing to do if the answer is good; else see why the hand-over before failed."
	}
	if s := steps[r.Code]; s != "" {
		return s
	}
	switch r.State {
	case "rejected":
		return "Read why, then send it again in other words, or let it be."
	case "expired":
		return "Nobody decided in time: Retry asks again."
	case "failed":
		return "Open it; Retry runs it again."
	}
	return ""
}

// VerdictWord says what somebody did: approved, asked for changes.
func VerdictWord(v string) string {
	switch v {
	case "approve":
		return "approved"
	case "reject":
		return "rejected"
	case "request_changes":
		return "asked for changes"
	case "withdraw":
		return "withdrew"
	case "edit":
		return "edited it"
	case "answer":
		return "answered"
	}
	return v
}

func WarningNamesOf(codes []string) []string {
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = WarningName(VisibleText(c))
	}
	return names
}
