package insight

import "time"

// Breaker is how the breaker of one agent stands (H11, H31).
type Breaker struct {
	Agent     string     `json:"agent"`
	State     string     `json:"state"` // closed, open or half_open
	Failures  int        `json:"failures"`
	OpenedAt  *time.Time `json:"opened_at"`
	Until     *time.Time `json:"until"` // no probe before
	Reason    string     `json:"reason"`
	ChangedAt time.Time  `json:"changed_at"`
}

// Turn is one opening or closing of a breaker, newest first in lists.
type Turn struct {
	TaskID string    `json:"task_id"` // whose run caused it
	N      int64     `json:"n"`       // of the event
	Agent  string    `json:"agent"`
	Opened bool      `json:"opened"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// State is how far the sums have come.
type State struct {
	At     time.Time // of the newest event that is counted; zero when none is
	Behind int64     // events that are not counted yet
}
