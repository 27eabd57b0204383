package overview

import (
	"gatehouse/views"
)

// WaitsPage is `/waits`.
type WaitsPage struct {
	views.Chrome
	Waits    []views.WaitRow
	Note     string // why there is no circle
	Used     int    // workers of this node
	Slots    int
	Landings []string // how landing stands, a sentence for each repository
	OlderURL string
	Later    bool // this is not the first page
}
