package event

import (
	"fmt"
	"time"
)

// What becomes of a patch, and of the breaker of an agent.
const (
	PatchRejected  Type = "patch.rejected"
	PatchValidated Type = "patch.validated"
	PatchLanded    Type = "patch.landed"
	PatchReverted  Type = "patch.reverted"
	BreakerOpened  Type = "breaker.opened"
	BreakerClosed  Type = "breaker.closed"
)

type PatchRejectedData struct {
	Code    string   `json:"code"`
	Path    string   `json:"path"`
	Message string   `json:"message"`
	Files   []string `json:"files"`
}

func (d PatchRejectedData) sentence(Event, Words) string {
	return first(d.Message, "its change was not taken")
}

type PatchValidatedData struct {
	BaseTree   string `json:"base_tree"`
	Tree       string `json:"tree"`
	Repository string `json:"repository"`
}

func (PatchValidatedData) sentence(Event, Words) string { return "the changed files are allowed" }

type PatchLandedData struct {
	Commit     string   `json:"commit"`
	Repository string   `json:"repository"`
	Branch     string   `json:"branch"`
	Deliver    string   `json:"deliver"` // merge, or branch: it was pushed and not merged
	Digest     string   `json:"digest"`
	ApprovedBy []string `json:"approved_by"`
	// CarriedOver says that the branch had moved, so the commit was made on its new head.
	CarriedOver bool     `json:"carried_over"`
	Declined    []string `json:"declined,omitempty"` // files that people left out
	Reverts     string   `json:"reverts,omitempty"`
}

// Pushed reports whether it was pushed, so that nothing is on the target branch.
func (d PatchLandedData) Pushed() bool { return d.Deliver == "branch" }

func (d PatchLandedData) sentence(Event, Words) string {
	if d.Pushed() {
		return fmt.Sprintf("pushed %.7s%s", d.Commit, Prefixed(" to ", d.Branch))
	}
	return fmt.Sprintf("landed %.7s%s", d.Commit, Prefixed(" on ", d.Branch))
}

type PatchRevertedData struct {
	About
	By     string `json:"by"` // the request that undid it
	Task   string `json:"task"`
	Commit string `json:"commit"`
}

func (d PatchRevertedData) sentence(Event, Words) string {
	return "its change was undone" + Prefixed(" by ", fmt.Sprintf("%.7s", d.Commit))
}

type BreakerOpenedData struct {
	Agent    string    `json:"agent"`
	Failures int       `json:"failures"`
	Until    time.Time `json:"until"`
	Reason   string    `json:"reason"`
}

func (d BreakerOpenedData) sentence(Event, Words) string {
	return "hand-overs to " + d.Agent + " rest" + Prefixed(": ", oneOf(d.Reason))
}

type BreakerClosedData struct {
	Agent string `json:"agent"`
}

func (d BreakerClosedData) sentence(Event, Words) string {
	return "hand-overs to " + d.Agent + " go on"
}
