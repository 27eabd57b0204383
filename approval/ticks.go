package approval

import (
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/textcut"
)

// TickUnviewed is the tick of somebody who approves on the page without having opened any
// file of the revision. It stands in the history with the others.
const TickUnviewed = "unviewed"

// Ticks are the codes of what a yes to the current revision has to say that it was looked
// at: what makes the request careful.
func Ticks(r Request) []string { return RiskOf(r).Reasons }

// Unviewed reports whether a yes to r on the page, after that reading, wants the tick
// TickUnviewed. What has no file, such as a hand-over, never does.
func Unviewed(r Request, read Reading) bool { return len(r.Revision.Files) > 0 && read.read() == 0 }

// wanted are the ticks that the ballot needs.
func wanted(r Request, b Ballot) []string {
	codes := slices.Clone(Ticks(r))
	if b.Seen.Surface == SurfacePage && len(r.Revision.Files) > 0 && b.Seen.FilesOpened == 0 {
		codes = append(codes, TickUnviewed)
	}
	return codes
}

// ticked are the ticks of the ballot that are wanted; others mean nothing here.
func ticked(r Request, b Ballot) []string {
	return slices.DeleteFunc(wanted(r, b), func(code string) bool { return !slices.Contains(b.Seen.WarningsTicked, code) })
}

// maxExplained is how many missing ticks are explained; of the others there is the code.
const maxExplained = 5

// notTicked refuses a yes that does not say of everything that it was looked at.
func notTicked(r Request, b Ballot) *orchestrator.Error {
	var missing, means []string
	for _, code := range wanted(r, b) {
		if slices.Contains(b.Seen.WarningsTicked, code) {
			continue
		}
		if missing = append(missing, code); len(missing) > maxExplained {
			means = append(means, code)
			continue
		}
		means = append(means, fmt.Sprintf("%s (%s)", code, r.tickWords(code)))
	}
	if len(missing) == 0 {
		return nil
	}
	todo := "Look at " + plural(len(missing), "it, tick it", "each, tick it") + ", then approve again."
	switch b.Channel {
	case origin.CLI:
		todo = "Read it with gatehouse review, or say what you have looked at: --ticked " + strings.Join(missing, ",")
	case origin.API:
		todo = `Look at each, then send the codes in "ticked".`
	}
	return orchestrator.Errorf(orchestrator.CodeNotTicked, "Your approval was not counted, for %s not ticked: %s. %s",
		plural(len(missing), "one thing is", fmt.Sprintf("%d things are", len(missing))), strings.Join(means, ", "), todo)
}

// tickWords says what a code is about on the current revision.
func (r Request) tickWords(code string) string {
	switch code {
	case TickUnviewed:
		return fmt.Sprintf("you have opened no file of revision %d", r.Revision.N)
	case ReasonCut:
		return "it is too long for one page"
	case "checks_failed":
		for _, c := range r.Revision.Checks {
			if !c.OK {
				return "this check fails: " + named(c.Command)
			}
		}
	}
	for _, w := range r.Revision.Warnings {
		text := textcut.Characters(strings.TrimRight(w.Text, "."), maxName)
		switch {
		case w.Code != code:
			continue
		case w.Path == "":
			return text
		case text == "":
			return named(w.Path)
		}
		return named(w.Path) + ": " + text
	}
	return strings.ReplaceAll(code, "_", " ")
}
