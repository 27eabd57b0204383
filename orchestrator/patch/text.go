package patch

import (
	"slices"
	"strings"
)

// TextRisks lists what may deceive the reader of a text of several lines, each kind
// once: the same words as the warnings, in their order.
func TextRisks(text string) []string {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for _, p := range Visible(line) {
			found[p.Risk] = found[p.Risk] || p.Risk != ""
		}
		found[RiskLookalike] = found[RiskLookalike] || lookalike(line)
	}
	order := []string{RiskBidi, RiskInvisible, RiskLookalike, RiskControl}
	return slices.DeleteFunc(order, func(code string) bool { return !found[code] })
}
