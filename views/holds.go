package views

import (
	"net/url"
	"time"
)

// HoldsPath is where legal holds are listed, set and lifted.
const HoldsPath = "/audit/holds"

// HoldHref lifts a hold.
func HoldHref(id string) string { return HoldsPath + "/" + url.PathEscape(id) + "/lift" }

// HoldsPage is `/audit/holds`.
type HoldsPage struct {
	Chrome
	Flash   *Flash // of a form that was not taken; its values stand in What, Subject and Reason
	Holds   []HoldRow
	Lifted  bool // those that were lifted are listed, too
	MaySet  bool
	What    string // id, repository or everything
	Subject string
	Reason  string
	Rules   []string // what retention removes here, in sentences
}

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
