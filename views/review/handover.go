package review

import (
	"fmt"

	"gatehouse/views"
)

// HandoverAsk is the question of a request that asks whether work may be handed on.
type HandoverAsk struct {
	From    string
	To      string
	Text    string // what To would be asked to do; foreign
	Context []views.ContextLine
	Command string // the command object as JSON, empty without one; foreign
	Files   []views.Attached
	Travels bool // files go with it, which the page shows as they differ from Place
	Place   string
	Stands  string // the branch, repository and commit that To starts from, where no file differs
}

// handed is what becomes of a hand-over, for the line below its outcome.
func (a *HandoverAsk) handed(o *Outcome, who string) string {
	switch o.State {
	case "rejected":
		return who + " rejected this · " + a.To + " was not asked to work"
	case "expired":
		return "It expired, not approved. " + a.To + " was not asked to work."
	case "cancelled":
		return "The task ended before a decision. " + a.To + " was not asked to work."
	case "failed":
		return "The task failed before a decision. " + a.To + " was not asked to work."
	}
	if o.Channel != "" {
		who += " approved " + o.Channel.Words()
	} else {
		who += " approved"
	}
	return who + " · the work was handed to " + a.To
}

// yesCount is how far a rule is: 1 of 2 yes.
func yesCount(r RuleLine) string { return fmt.Sprintf("%d of %d yes", len(r.Yes), r.Need) }

// anchor is the id of the question's panel. Where files go with it, they are what a page's
// link to its files leads to.
func (a HandoverAsk) anchor() string {
	if a.Travels {
		return "question"
	}
	return "files"
}
