package patch

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// Overtaken says that a branch changed under a revision, so that a yes to it lands nothing.
type Overtaken struct {
	Branch string   `json:"branch"`
	Head   string   `json:"head"`  // where the branch was when that was found
	Files  []string `json:"files"` // of the change that the branch changed, too
	// Why is what happened, to stand within a sentence: "main changed core/a.go meanwhile".
	Why string `json:"why"`
}

// Overtaken is what m means for the revision that was approved.
func (m *Moved) Overtaken() Overtaken {
	o := Overtaken{Branch: m.Branch, Head: m.To, Files: append([]string{}, m.Files...)}
	branch := cmp.Or(m.Branch, "its branch")
	switch {
	case m.Why == MovedRewound:
		o.Why = branch + " was rewound or rewritten" + meanwhile
	case m.Why != "":
		o.Why = Clause(m.Error())
	case len(m.Files) > 0:
		o.Why = branch + " changed " + someFiles(m.Files) + meanwhile
	default:
		o.Why = branch + " moved" + meanwhile
	}
	return o
}

// meanwhile ends each Why but those that quote an error.
const meanwhile = " meanwhile"

// Briefly is Why where there is little room.
func (o Overtaken) Briefly() string { return strings.TrimSuffix(o.Why, meanwhile) }

// Clause is the first sentence of text, to stand within another.
func Clause(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), ". ")
	return strings.TrimRight(first, ".")
}

// someFiles names the first two; a long path is named by its end.
func someFiles(files []string) string {
	const most, long = 2, 40
	var names []string
	for _, f := range files[:min(len(files), most)] {
		if len(f) > long {
			f = "…/" + path.Base(f)
		}
		if len(f) > 2*long {
			f = f[:2*long] + "…"
		}
		if q := fmt.Sprintf("%q", f); q != `"`+f+`"` {
			f = q // what cannot be seen
		}
		names = append(names, f)
	}
	if more := len(files) - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, " and ")
}
