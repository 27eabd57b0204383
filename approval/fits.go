package approval

import (
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
)

// FitsCard reports whether a card of the chat shows all of what r asks, every changed line
// of every file. It is decided by what is stored with the revision, so that the card and
// the judge of a verdict cannot differ. What is not text, what moved here from another
// place with all its content, and what nobody measured does not fit.
func (r Request) FitsCard() bool {
	files := r.Revision.Files
	if r.IsHandover() { // files that travel with it are shown on its page
		return len(files) == 0 && len(r.Question.Whole()) <= CutQuestion
	}
	if len(files) == 0 || len(files) > patch.CardFiles {
		return false
	}
	lines, bytes := 0, int64(0)
	for _, f := range files {
		changed := f.Added + f.Removed
		if f.Binary || f.Moved() || f.TooLarge() || changed > 0 && f.Bytes == 0 {
			return false
		}
		lines, bytes = lines+changed, bytes+f.Bytes
	}
	return lines <= patch.CardLines && bytes <= patch.CardBytes
}

// tooLongFor refuses a yes from a card that cannot show all of the change.
func (r Request) tooLongFor(channel origin.Channel) *orchestrator.Error {
	if channel != origin.Chat || r.FitsCard() {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeForbidden, "To approve this, open the diff: a card in the chat cannot show all of it. It can be rejected here.")
}
