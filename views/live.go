package views

import (
	"github.com/a-h/templ"

	"gatehouse/orchestrator/badge"
)

// LiveAttrs make an element ask for itself again when something in its scope happens:
// "all", or "task:<id>". The script collects the events and triggers gh-refresh; the answer
// may be the whole page or only this part, and is merged in place so that focus, open
// details and typed text stay. oob names further parts of the page to take from the answer.
func LiveAttrs(id, scope, address, oob string) templ.Attributes {
	selectOOB := "#nav-approvals:morph"
	if oob != "" {
		selectOOB += "," + oob
	}
	return templ.Attributes{
		"id":            id,
		"data-live":     scope,
		"hx-get":        address,
		"hx-trigger":    "gh-refresh",
		"hx-select":     "#" + id,
		"hx-select-oob": selectOOB,
		"hx-swap":       "morph",
	}
}

// favicon is the file of the tab's icon in the colour of a state.
func favicon(state string) string {
	if state == "" {
		return "favicon-neutral.svg"
	}
	return "favicon-" + badge.Of(state).Role + ".svg"
}

// SoonAttrs make an element ask for itself again when anything happens, and each 15 s: what
// came and made no task is in no event.
func SoonAttrs(id, address string) templ.Attributes {
	attrs := LiveAttrs(id, "all", address, "")
	attrs["hx-trigger"] = "gh-refresh, every 15s"
	return attrs
}
