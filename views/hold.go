package views

import (
	"time"
)

// HoldRow is one hold.
type HoldRow struct {
	ID         string
	What       string // "the repository app"
	Href       string // of the task; empty for others
	Reason     string // foreign
	By         string
	At         time.Time
	LiftedBy   string // empty while it stands
	LiftedAt   time.Time
	LiftReason string
}
