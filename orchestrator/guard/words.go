package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/nearest"
	"gatehouse/orchestrator/textcut"
)

// maxShown is how many bytes of a name a message repeats. Names come from agents,
// and a refusal is stored, shown on pages and sent back into a model.
const maxShown = agent.MaxName

// maxListed is how many names a message lists.
const maxListed = 8

// route is the chain with the refused target at its end (O7).
func (h Hop) route() string {
	names := []string{}
	for i, s := range h.Chain.Steps() {
		if i == 0 {
			names = append(names, safe(s.From))
		}
		names = append(names, safe(s.To))
	}
	if len(names) == 0 && !h.byPerson() {
		names = append(names, safe(h.from()))
	}
	return strings.Join(append(names, safe(h.to())), " → ")
}

// safe returns a name fit for a sentence: what is not printable is escaped, what is
// too long is cut and says so.
func safe(name string) string { return safeUpTo(name, maxShown) }

// safeUpTo is safe with another limit.
func safeUpTo(name string, most int) string {
	shown, all := textcut.Bytes(name, most)
	rest := ""
	if !all {
		rest = fmt.Sprintf("… (%d bytes)", len(name))
	}
	if strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		q := strconv.Quote(shown)
		shown = q[1 : len(q)-1]
	}
	return shown + rest
}

// quoted is safe with quotation marks around it.
func quoted(name string) string { return `"` + safe(name) + `"` }

// list joins names for a sentence.
func list(names []string) string {
	shown := each.Of(names[:min(len(names), maxListed)], safe)
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}

// suggest says which agents there are, the likely ones first.
func suggest(asked string, known []string) string {
	if len(known) == 0 {
		return "No agent is configured."
	}
	if near := Nearest(asked, known); len(near) > 0 {
		return "Did you mean " + strings.Join(near, " or ") + "?"
	}
	sorted := slices.Sorted(slices.Values(known))
	return "Known agents: " + list(sorted) + "."
}

// Nearest returns up to 3 of the known names that asked could be a slip for, the
// closest first: at most a third of its letters differ, or one begins the other.
func Nearest(asked string, known []string) []string {
	if len(asked) > 2*maxShown {
		return nil
	}
	key := agent.Key(asked)
	if key == "" {
		return nil
	}
	type near struct {
		name string
		far  int
	}
	var found []near
	for _, name := range known {
		k := agent.Key(name)
		far := nearest.Distance(key, k)
		begins := len(key) >= 3 && (strings.HasPrefix(k, key) || strings.HasPrefix(key, k))
		if limit := max(1, utf8.RuneCountInString(k)/3); far <= limit || begins {
			found = append(found, near{safe(name), far})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name))
	})
	return each.Of(found[:min(len(found), 3)], func(n near) string { return n.name })
}
