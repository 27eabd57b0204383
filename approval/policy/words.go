package policy

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gatehouse/orchestrator/guard"
)

var (
	noField = regexp.MustCompile(`^type (\S+) has no field (\S+)$`)
	noName  = regexp.MustCompile(`^unknown name (\S+)$`)
)

// whenWords says what is wrong with a condition in the words of who wrote it: the compiler
// speaks of the types of this package.
func whenWords(message string, facts reflect.Type) string {
	if m := noName.FindStringSubmatch(message); m != nil {
		if facts == reflect.TypeFor[Facts]() && slices.Contains(tags(reflect.TypeFor[FileFacts]()), m[1]) {
			return fmt.Sprintf("unknown name %s. Of a file write .%s, as in any(patch.files, .%s …).", m[1], m[1], m[1])
		}
		return fmt.Sprintf("unknown name %s.%s", m[1], meant("", m[1], append(tags(facts), functions()...)))
	}
	if m := noField.FindStringSubmatch(message); m != nil {
		switch m[1] {
		case "policy.PatchFacts":
			return fmt.Sprintf("there is no patch.%s.%s", m[2], meant("patch.", m[2], tags(reflect.TypeFor[PatchFacts]())))
		case "policy.FileFacts":
			return fmt.Sprintf("a file has no .%s.%s", m[2], meant(".", m[2], tags(reflect.TypeFor[FileFacts]())))
		case "policy.CheckFacts":
			return fmt.Sprintf("a check has no .%s.%s", m[2], meant(".", m[2], tags(reflect.TypeFor[CheckFacts]())))
		}
		return fmt.Sprintf("a %s has no .%s.", kindWords.Replace(m[1]), m[2])
	}
	return kindWords.Replace(message)
}

// kindWords has the longer names first: the first that fits is taken.
var kindWords = strings.NewReplacer("[]policy.FileFacts", "list of files", "[]policy.CheckFacts", "list of checks", "[]string", "list of texts",
	"policy.PatchFacts", "patch", "policy.FileFacts", "file", "policy.CheckFacts", "check", "bool,", "true or false,", "array", "list", "string", "text", " int", " number")

// tags are the names that a condition has for the fields of t.
func tags(t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		all = append(all, t.Field(i).Tag.Get("expr"))
	}
	return all
}

// meant offers the nearest of the names that there are, or all of a few.
func meant(before, word string, known []string) string {
	if near := guard.Nearest(word, known); len(near) > 0 {
		return fmt.Sprintf(" Did you mean %s%s?", before, near[0])
	}
	const few = 10
	if len(known) > few {
		return ""
	}
	all := make([]string, len(known))
	for i, k := range known {
		all[i] = before + k
	}
	return " There is " + Join(all, "and") + "."
}
