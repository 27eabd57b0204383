package views

import (
	"strings"

	"gatehouse/orchestrator/badge"
)

// StateWord is the word of a state on every face: `awaiting approval`.
func StateWord(state string) string { return badge.Of(state).Word }

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
	"unread":           "Said too late for it",
	"may_have_run":     "May have run before",
}

// WarningName is the title of a warning or note code.
func WarningName(code string) string {
	if n, ok := warningNames[code]; ok {
		return n
	}
	return strings.ReplaceAll(code, "_", " ")
}
