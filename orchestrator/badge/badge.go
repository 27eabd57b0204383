// Package badge has the table of states and what was done: the one word, sign and colour that every face shows.
//
// The room imports only the standard library.
package badge

import (
	"slices"
	"strings"
)

// Badge is how one state reads and looks.
type Badge struct {
	Word string // the badge
	Mark string // one character: in a terminal, a message and a tab's title
	Icon string // symbol of the pages' sprite; its shape differs in grey
	Role string // colour role of the stylesheet and the terminal
}

// Pushed is shown in place of landed where a yes pushes the agent's branch: nothing is on the target then.
const Pushed = "pushed"

// looks follows the table of states in the design's "Tokens".
var looks = map[string]Badge{
	"queued":            {"queued", "○", "queued", "neutral"},
	"running":           {"running", "●", "running", "run"},
	"waiting":           {"waiting", "⧗", "waiting", "neutral"},
	"checking":          {"checking", "●", "running", "run"},
	"awaiting_approval": {"awaiting approval", "◆", "diamond", "wait"},
	"awaiting_answer":   {"awaiting answer", "◆", "diamond", "wait"}, // what a question of an agent does
	"pending":           {"pending", "◆", "diamond", "wait"},
	"landing":           {"landing", "⇥", "landing", "run"},
	"completed":         {"completed", "✓", "tick", "ok"},
	"approved":          {"approved", "✓", "tick", "ok"},
	"answered":          {"answered", "✓", "tick", "ok"},
	"landed":            {"landed", "✓", "tick", "ok"},
	Pushed:              {Pushed, "✓", "tick", "ok"},
	"failed":            {"failed", "✕", "cross", "bad"},
	"rejected":          {"rejected", "⊖", "reject", "bad"},
	"changes_requested": {"changes requested", "↩", "back", "wait"},
	"expired":           {"expired", "⌛", "expired", "neutral"},
	"cancelled":         {"cancelled", "■", "square", "neutral"},
	"superseded":        {"superseded", "⧉", "sheets", "special"},
	"stale":             {"stale", "⧉", "sheets", "special"},
	"reverted":          {"reverted", "⧉", "curved", "special"},
	"refused":           {"refused", "⊘", "refused", "bad"},
	"idle":              {"idle", "○", "queued", "neutral"},
	"closed":            {"closed", "○", "queued", "neutral"},
	"open":              {"open", "⊘", "refused", "bad"},
	"half_open":         {"half open", "⧗", "waiting", "wait"},
	"allowed":           {"allowed", "✓", "tick", "ok"},
}

// Of looks a state up; an unknown one is shown as it is, in grey.
func Of[S ~string](state S) Badge {
	if l, known := looks[string(state)]; known {
		return l
	}
	return Badge{Word: strings.ReplaceAll(string(state), "_", " "), Mark: "·", Icon: "queued", Role: "neutral"}
}

// Known reports whether a state has a look of its own.
func Known[S ~string](state S) bool { _, known := looks[string(state)]; return known }

// Arrived is the state to show of a request: pushed in place of landed, where its branch is pushed.
func Arrived(state string, pushes bool) string {
	if pushes && state == "landed" {
		return Pushed
	}
	return state
}

// Live reports whether something still happens in this state.
func Live(state string) bool {
	return slices.Contains([]string{"queued", "running", "waiting", "checking", "awaiting_approval", "landing", "pending", "approved"}, state)
}

// Did is a verdict as something that was done to what object names, which may be "": approved this.
func Did[V ~string](verdict V, object string) string {
	if object != "" {
		object = " " + object
	}
	switch verdict {
	case "approve":
		return "approved" + object
	case "reject":
		return "rejected" + object
	case "edit":
		return "edited" + object
	case "request_changes":
		return "requested changes"
	case "answer":
		return "answered" + object
	case "withdraw":
		return "withdrew their approval"
	}
	return string(verdict)
}

// Nobody says that no yes can come to a request that has so many, and what to do.
func Nobody(have int) string {
	if have > 0 {
		return "nobody else can say yes: add an approver or change the rule"
	}
	return "nobody can say yes: add an approver or change the rule"
}
