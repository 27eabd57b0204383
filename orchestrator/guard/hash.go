package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"gatehouse/orchestrator/agent"
)

// Content is what a hop hands on.
type Content struct {
	Text     string            `json:"text"`
	Context  map[string]string `json:"context"`
	Handover *agent.Handover   `json:"handover"`
	Round    int               `json:"round"` // tells a repetition that a plan means from a loop (H26)
	Epoch    int               `json:"epoch"` // how often people had the callers run again
	Tree     string            `json:"tree"`  // the caller's files
	// Anew tells a spawn that is meant to be made again from a loop: the call that says so, or
	// the child that was forgotten since.
	Anew string `json:"anew,omitempty"`
}

// Hash is the canonical hash of what is handed on (H15, H17): SHA-256 over JSON whose
// object keys are sorted, so that the same content in another order is the same.
func Hash(c Content) (string, error) {
	if len(c.Context) == 0 {
		c.Context = nil // none and empty are the same
	}
	if c.Handover != nil {
		h := *c.Handover
		h.Update.Metrics = agent.HandoverMetrics{} // they grow with every try
		c.Handover = &h
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("hash what is handed on: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
