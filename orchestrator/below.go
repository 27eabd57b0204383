package orchestrator

import "time"

// Below is a live child of a delegation, as far as a wait for it is told.
type Below struct {
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	State   State     `json:"state"`
	Since   time.Time `json:"since"` // when State was entered
	Spawned bool      `json:"spawned,omitempty"`
}
