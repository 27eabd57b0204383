package telegram

import (
	"slices"

	"gatehouse/approval"
)

// standing is the yes of each person to the current revision that was not taken back.
func standing(r approval.Request) []approval.Decision { return standingOn(r, r.Revision.N) }

// standingOn is standing for any revision.
func standingOn(r approval.Request, n int) []approval.Decision {
	var out []approval.Decision
	for _, d := range r.Decisions {
		if d.Revision != n {
			continue
		}
		same := func(o approval.Decision) bool { return o.UserID == d.UserID && o.User == d.User }
		if d.Verdict == approval.Approve && !slices.ContainsFunc(out, same) {
			out = append(out, d)
		} else if d.Verdict != approval.Approve {
			out = slices.DeleteFunc(out, same)
		}
	}
	return out
}
