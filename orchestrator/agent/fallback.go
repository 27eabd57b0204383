package agent

import "strings"

// Fallback is a hand-over that failed after its program had ended for it. The program runs
// once more by itself, and is told this (H29).
type Fallback struct {
	To    string   `json:"to"` // whom the work was handed to
	ID    string   `json:"id"` // of that delegation
	Error *Failure `json:"error"`
}

// FallbackHeading is the heading under which a program without a protocol reads of it.
const FallbackHeading = "The hand-over failed"

// Told is what stands under the heading. The failure is what another agent said, so its lines
// are quoted.
func (f *Fallback) Told() string {
	return "You handed this work to " + f.To + ", which failed:\n\n> " + strings.ReplaceAll(f.Error.Error(), "\n", "\n> ") +
		"\n\nThe work is yours again, and the files are as you left them. Do it by yourself: you hand nothing on now."
}
