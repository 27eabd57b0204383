package views

import (
	"time"
)

// WaitRow is one delegation that lives, with what it waits for.
type WaitRow struct {
	ID    string
	Agent string
	Text  string
	State string
	Says  string
	Since time.Time
	Href  string // the request, or the one child; empty: the delegation itself
	Below []Crumb
}
