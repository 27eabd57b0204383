package agent

// End is the Goto of a command that ends the flow (H2).
const End = "END"

// Handover is the command object of handoff_to_agent: where to go and what the
// receiver must know (H2–H6). accept_handoff returns it (H7).
type Handover struct {
	Goto   string         `json:"goto"`            // an agent, or END
	Graph  string         `json:"graph,omitempty"` // "parent": control goes to a sibling
	Update HandoverUpdate `json:"update"`
}

// HandoverUpdate is the shared state that goes with a hand-over.
type HandoverUpdate struct {
	Context       HandoverContext    `json:"context"`
	Artifacts     map[string]*string `json:"artifacts,omitempty"` // name → path; null: not made yet (H4)
	WorkflowState HandoverState      `json:"workflow_state"`
	Metrics       HandoverMetrics    `json:"metrics"`
}

// HandoverContext says what was done (H3).
type HandoverContext struct {
	PreviousAgent    string   `json:"previous_agent"`
	TaskDescription  string   `json:"task_description"`
	Completed        string   `json:"completed,omitempty"`
	ArtifactsCreated []string `json:"artifacts_created,omitempty"`
}

// HandoverState is where the flow stands (H5).
type HandoverState struct {
	Phase          string   `json:"phase,omitempty"`
	NextPhase      string   `json:"next_phase,omitempty"`
	CompletedSteps []string `json:"completed_steps,omitempty"`
	RemainingSteps []string `json:"remaining_steps,omitempty"`
}

// HandoverMetrics is what it took so far (H6).
type HandoverMetrics struct {
	TokensUsed   int64 `json:"tokens_used"`
	TimeElapsed  int64 `json:"time_elapsed"` // seconds
	RetryCount   int   `json:"retry_count"`
	DeepwikiUsed bool  `json:"deepwiki_used"`
}
