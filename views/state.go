package views

import "strings"

// stateLook is how one state reads and looks; the word is the same on every face.
type stateLook struct {
	Word string // the badge
	Mark string // one character, for the tab's title
	Icon string // symbol of the sprite; its shape differs in grey
	Role string // colour role of the stylesheet
}

// looks follows the table of states in the design's "Tokens".
var looks = map[string]stateLook{
	"queued":            {"queued", "○", "queued", "neutral"},
	"running":           {"running", "●", "running", "run"},
	"waiting":           {"waiting", "⧗", "waiting", "neutral"},
	"checking":          {"checking", "●", "running", "run"},
	"awaiting_approval": {"awaiting approval", "◆", "diamond", "wait"},
	"pending":           {"pending", "◆", "diamond", "wait"},
	"landing":           {"landing", "⇥", "landing", "run"},
	"completed":         {"completed", "✓", "tick", "ok"},
	"approved":          {"approved", "✓", "tick", "ok"},
	"landed":            {"landed", "✓", "tick", "ok"},
	pushed:              {pushed, "✓", "tick", "ok"},
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

// stateOf looks a state up; an unknown one is shown as it is, in grey.
func stateOf(state string) stateLook {
	if l, ok := looks[state]; ok {
		return l
	}
	return stateLook{Word: strings.ReplaceAll(state, "_", " "), Mark: "·", Icon: "queued", Role: "neutral"}
}

// StateWord is the word of a state on every face: `awaiting approval`.
func StateWord(state string) string { return stateOf(state).Word }

// pushed is shown in place of landed where a yes pushes the agent's branch: nothing is on
// the target then.
const pushed = "pushed"

// arrived is the state to show of a request; pushes says that its branch is pushed.
func arrived(state string, pushes bool) string {
	if pushes && state == "landed" {
		return pushed
	}
	return state
}

// live says whether something still happens in this state.
func live(state string) bool {
	switch state {
	case "queued", "running", "waiting", "checking", "awaiting_approval", "landing", "pending", "approved":
		return true
	}
	return false
}

// warningNames gives the warnings and notes of the review their words.
var warningNames = map[string]string{
	"mode_change":    "File mode changed",
	"mass_deletion":  "Many files deleted",
	"binary":         "Binary file changed",
	"symlink":        "Symbolic link",
	"agent_config":   "Agent configuration changed",
	"ci_file":        "CI file changed",
	"lock_file":      "Lock file changed",
	"submodule":      "Submodule changed",
	"bidi":           "Text direction is overridden",
	"invisible":      "Invisible characters",
	"lookalike":      "Look-alike characters",
	"control_chars":  "Control characters",
	"large":          "Large change",
	"checks_failed":  "A check failed",
	"secret_like":    "Looks like a secret",
	"git_attributes": "Git attributes changed",
	"copy":           "File copied",
	"cut":            "Cut where it is shown",
	"agent_program":  "Program of an agent that asks first",
	"renamed_unseen": "Moved content nobody approved here",
	"case_collision": "Names differ only in case",
	"autorun":        "Runs by itself when opened",
	"no_sandbox":     "Ran without a sandbox",
	"no_checks":      "No checks are set up",
	"diff_cut":       "Too long for one page",
	"unviewed":       "Approved without opening a file",
	"need_two":       "More than one person decides",
	"deletion":       "Files deleted",
	"line_endings":   "Line endings changed",

	// of hand-overs and rules
	"steering_files":   "Steers programs, left behind",
	"trust_checkout":   "Steers programs, taken as it is",
	"rule_error":       "A rule could not be evaluated",
	"rule_not_applied": "A rule could not pass this",
	"rule_of_agent":    "Another agent's rule holds",
	"asked_again":      "Asked again",
}

// WarningName is the title of a warning or note code.
func WarningName(code string) string {
	if n, ok := warningNames[code]; ok {
		return n
	}
	return strings.ReplaceAll(code, "_", " ")
}
