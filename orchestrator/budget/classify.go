package budget

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The tiers of complexity (H19–H21), and Auto, which has the classifier choose (H24).
const (
	Simple  = "simple"
	Medium  = "medium"
	Complex = "complex"
	Auto    = "auto"
)

// Class is how complex a task is taken to be, and why.
type Class struct {
	Tier string
	Why  string // "" where somebody said it
}

// What the classifier looks at. The figures are ours: the source asks for a classifier and
// names none.
var (
	bigWords   = regexp.MustCompile(`(?i)\b(redesign|rewrite|refactor|migrate|migration|architect\w*|port|overhaul|end[- ]to[- ]end|across|throughout|everywhere|whole|entire|all (?:files|packages|services|modules))\b`)
	workWords  = regexp.MustCompile(`(?i)\b(add|build|implement|fix|change|create|write|update|remove|test|review|research|analy[sz]e|compare|plan|document|deploy|optimi[sz]e|integrate|investigate)\b`)
	smallWords = regexp.MustCompile(`(?i)^\W*(what|who|when|where|why|how|is|are|does|do|can|list|show|explain|say|tell|count|rename|typo)\b`)
	fileNames  = regexp.MustCompile(`[\w./-]+\.[A-Za-z][A-Za-z0-9]{0,7}\b`)
	partMarks  = regexp.MustCompile(`(?mi)^\s*(?:[-*•]|\d+[.)])\s+\S|\b(?:then|afterwards|after that|finally|and also)\b`)
)

// maxRead is how many bytes of a text are looked at: what stands behind them does not
// make a long task simpler.
const maxRead = 16 << 10

// Classify guesses from its text how complex a task is. It is pure: the same text always
// gives the same class, with the reason in words.
func Classify(text string) Class {
	text = strings.TrimSpace(text)
	length := utf8.RuneCountInString(text)
	read := text[:min(len(text), maxRead)]
	big, verbs, files, parts := len(distinct(bigWords, read)), len(distinct(workWords, read)), len(distinct(fileNames, read)), len(partMarks.FindAllString(read, -1))
	points := 0
	var why []string
	count := func(add int, reason string, args ...any) {
		points += add
		why = append(why, fmt.Sprintf(reason, args...))
	}
	switch {
	case length > 1500:
		count(3, "%d characters long", length)
	case length > 300:
		count(1, "%d characters long", length)
	}
	if big > 0 {
		count(1+big, "%d words of wide changes (%s)", big, strings.Join(first(distinct(bigWords, read), 3), ", "))
	}
	if verbs > 1 {
		count(min(verbs-1, 3), "%d kinds of work", verbs)
	}
	if files > 1 {
		count(min(files-1, 3), "%d files named", files)
	}
	if parts > 0 {
		count(min(parts, 3), "%d parts", parts)
	}
	if points > 0 && smallWords.MatchString(read) && verbs <= 1 && big == 0 {
		count(-1, "asked as one question")
	}
	if len(why) == 0 {
		why = []string{"short, with one thing to do"}
	}
	tier := Simple
	switch {
	case points >= 4:
		tier = Complex
	case points >= 1:
		tier = Medium
	}
	return Class{Tier: tier, Why: strings.Join(why, ", ")}
}

// distinct lists what a pattern finds, each once, in lower case.
func distinct(pattern *regexp.Regexp, text string) []string {
	seen := map[string]bool{}
	var found []string
	for _, m := range pattern.FindAllString(text, -1) {
		if m = strings.ToLower(m); !seen[m] {
			seen[m] = true
			found = append(found, m)
		}
	}
	return found
}

func first(words []string, n int) []string { return words[:min(n, len(words))] }
