package diff

import (
	"strings"
	"unicode"
)

// mostPaired bounds the work on one run of changed lines.
const mostPaired = 400

// markSpace marks the lines of which nothing but whitespace changed: a removed line that
// stands among the added ones after it but for its spaces, and empty lines. They can be
// dimmed and are never hidden.
func markSpace(raw []RawLine, lines []DiffLine) {
	for i := 0; i < len(raw); {
		if raw[i].Op == OpContext {
			i++
			continue
		}
		added := i
		for added < len(raw) && raw[added].Op == OpRemoved {
			added++
		}
		end := added
		for end < len(raw) && raw[end].Op == OpAdded {
			end++
		}
		pairSpace(raw, lines, i, added, end)
		i = end
	}
}

// pairSpace pairs the removed lines from first with the added ones, in their order. Each
// line is read once, for all of them may be compared with each other.
func pairSpace(raw []RawLine, lines []DiffLine, first, added, end int) {
	texts := make([]string, end-first)
	for i := range texts {
		if texts[i] = bare(raw[first+i].Text); texts[i] == "" {
			lines[first+i].Space = true
		}
	}
	from := added
	for i := first; i < added && i-first < mostPaired; i++ {
		want := texts[i-first]
		if want == "" {
			continue
		}
		for k := from; k < end && k-from < mostPaired; k++ {
			if texts[k-first] == want {
				lines[i].Space, lines[k].Space = true, true
				from = k + 1
				break
			}
		}
	}
}

// bare is a line without its whitespace, as far as lines are compared.
func bare(s string) string {
	const most = 2000 // bytes; a longer line counts as changed
	if len(s) > most {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}
