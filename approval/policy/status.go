package policy

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/patch"
)

// statusWords finds what a condition compares .status with. A word that no file ever has
// would never match, and nobody would notice that the rule holds nothing back: so it is a
// problem of the rule. "deleted" is such a word, which rules had before there was "removed".
type statusWords struct {
	used     bool                         // the condition looks at .status
	compared []compared                   // with .status itself
	texts    []*ast.StringNode            // every text that is written out
	others   map[*ast.StringNode]struct{} // those that are compared with another field
}

type compared struct {
	operator string
	with     ast.Node
}

// visit notes one node; what is inside it comes first.
func (w *statusWords) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.MemberNode:
		w.used = w.used || isStatus(n)
	case *ast.StringNode:
		w.texts = append(w.texts, n)
	case *ast.BinaryNode:
		w.pair(n.Operator, n.Left, n.Right)
		w.pair(n.Operator, n.Right, n.Left)
	}
}

// pair notes that what is compared with a text or a list of texts.
func (w *statusWords) pair(operator string, what, with ast.Node) {
	if isStatus(what) {
		w.compared = append(w.compared, compared{operator, with})
		return
	}
	if !isField(what) {
		return
	}
	for _, t := range texts(with) {
		if w.others == nil {
			w.others = map[*ast.StringNode]struct{}{}
		}
		w.others[t] = struct{}{}
	}
}

// check reports the first word that no status is.
func (w *statusWords) check(b *bounds) {
	for _, c := range w.compared {
		for _, t := range texts(c.with) {
			if !matchesStatus(c.operator, t.Value) {
				b.refuse(t, noStatus(t.Value))
			}
		}
	}
	if !w.used {
		return
	}
	for _, t := range w.texts {
		if _, other := w.others[t]; !other && strings.EqualFold(t.Value, string(patch.Deleted)) {
			b.refuse(t, noStatus(t.Value))
		}
	}
}

// noStatus says what to write in place of a word that no status is.
func noStatus(word string) string {
	if strings.Contains(strings.ToLower(word), string(patch.Deleted)) {
		return `no file has the status "deleted": write "removed", which is also what a file is where it was moved away from`
	}
	return fmt.Sprintf("no file has the status %q: a status is %s", word, Join(statuses(), "or"))
}

// matchesStatus reports whether some status fits a word in the way of the operator.
func matchesStatus(operator, word string) bool {
	if strings.Contains(strings.ToLower(word), string(patch.Deleted)) {
		return false
	}
	fits := func(string) bool { return true }
	switch operator {
	case "==", "!=", "in":
		fits = func(s string) bool { return s == word }
	case "startsWith":
		fits = func(s string) bool { return strings.HasPrefix(s, word) }
	case "endsWith":
		fits = func(s string) bool { return strings.HasSuffix(s, word) }
	case "contains":
		fits = func(s string) bool { return strings.Contains(s, word) }
	case "matches":
		if re, err := regexp.Compile(word); err == nil { // else the compiler says so
			fits = re.MatchString
		}
	}
	return slices.ContainsFunc(statuses(), fits)
}

// isStatus reports whether n is the .status of something: nothing but a file has one.
func isStatus(n ast.Node) bool {
	m, ok := n.(*ast.MemberNode)
	if !ok {
		return false
	}
	p, ok := m.Property.(*ast.StringNode)
	return ok && p.Value == "status"
}

func isField(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.MemberNode:
		return true
	case *ast.IdentifierNode:
		return slices.Contains(tags(reflect.TypeFor[Facts]()), n.Value)
	}
	return false
}

// texts are the texts that n is, or that the list n holds.
func texts(n ast.Node) []*ast.StringNode {
	switch n := n.(type) {
	case *ast.StringNode:
		return []*ast.StringNode{n}
	case *ast.ArrayNode:
		var all []*ast.StringNode
		for _, e := range n.Nodes {
			all = append(all, texts(e)...)
		}
		return all
	}
	return nil
}

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
	all := each.Of(known, func(k string) string { return before + k })
	return " There is " + Join(all, "and") + "."
}
