package views

import "gatehouse/orchestrator/record/retention"

// HoldSubject is what a hold keeps, and the page of it; "" where it has none.
func HoldSubject(h retention.Hold) (what, href string) {
	switch {
	case h.Kind == retention.Repository:
		return "The repository " + h.Subject, ""
	case h.Kind != retention.Task:
		return "Everything", ""
	case h.RequestID != "":
		return "The request " + h.RequestID + " with its task", DelegationHref(h.Subject)
	}
	return "The task " + h.Subject, DelegationHref(h.Subject)
}
