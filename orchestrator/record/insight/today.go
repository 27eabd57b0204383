package insight

import (
	"time"

	"gatehouse/orchestrator/guard"
)

// Today is what happened since a moment, as the overview counts it.
type Today struct {
	Tasks     int           // made since then
	More      bool          // there were more tasks than are counted; USD is of those that are
	USD       *float64      // what these tasks used; nil: nobody reported a price
	Landed    int           // requests
	Rejected  int           // requests
	MedianYes time.Duration // from a request to the yes of a person; 0: there was none
}

// Refusal is a hand-over that a guard refused.
type Refusal struct {
	TaskID       string
	N            int64  // of the event
	DelegationID string // of the caller
	Task         string // what the task asks for
	From, To     string
	Code         string
	Reason       guard.Reason // which case of the code
	Message      string
	At           time.Time
}
