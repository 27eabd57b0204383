package views

import "time"

// WaitsPath is the page of who waits for whom.
const WaitsPath = "/waits"

// WaitsPage is `/waits`.
type WaitsPage struct {
	Chrome
	Waits    []WaitRow
	Note     string // why there is no circle
	Used     int    // workers of this node
	Slots    int
	Landings []string // how landing stands, a sentence for each repository
	OlderURL string
	Later    bool // this is not the first page
}

// WaitRow is one delegation that lives, with what it waits for.
type WaitRow struct {
	ID, TaskID string
	Agent      string
	Text       string
	State      string
	Says       string
	Since      time.Time
	Href       string // the request, or the one child; empty: the delegation itself
	Below      []Crumb
}
