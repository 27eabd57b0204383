package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// People read "hand over" and "hand-over". The other word for it is only in what programs know
// by its name, which scripts and configurations rely on, and in five sentences that the systems
// which Gatehouse unites already say.
var (
	otherWord   = regexp.MustCompile(`(?i)hand-?offs?\b`)
	identifiers = regexp.MustCompile(strings.Join([]string{
		`handoff_to_agent|accept_handoff`,                                       // tools
		`max_handoffs|engine\.handoffs|budget\.handoffs|handoffs: (true|\d|%d)`, // keys of gatehouse.yaml, and the code of a refusal
		`gatehouse handoff\b|[-—–]enable-handoffs|handoffs=\d`,                  // of the command line, also as phones write it
		`name:"enable-handoffs"|(json|yaml):"handoffs?(,omitempty)?"`,           // and where these are declared
		`"handoffs?": true|"type":"handoff"|` + "`handoffs?`",                   // fields and lines of JSON, in sentences between backquotes
		`, handoffs, last_seq|handoffs = \?`,                                    // a column
		`^handoff:$`,                                                            // begins a namespace of the shared context
		`handoffs_total|handoff_(latency|duration)_seconds`,                     // series of /metrics
		`\| handoffs \|`, // the guard, in the README's table
		`Maximum handoffs reached|Agent handoffs temporarily disabled|Circular handoff: |Approve handoff to |Handoff limit reached`, // quoted by requirements H9, H12, H15, H18, H22
		`\benableHandoffs\b|name="handoffs"|\bhandoffs: (!!m\.handoffs|m\.handoffs|form\.)|(elements|m)\.handoffs\b`,                // of forms and scripts
		`\.Handoffs\b|\bhandoff\.go\b`, // of the code itself
	}, "|"))
	// oneWord are whole texts that are a name: a key of a budget and of JSON, a measure, a
	// guard, a column of an export, a command, a line of JSON, an anchor of a page.
	oneWord = regexp.MustCompile(`^(c-)?handoffs?$`)
)

// forPeople is what is wrong with a text that people may read, "" where nothing is.
func forPeople(text string) string {
	if !otherWord.MatchString(text) || oneWord.MatchString(text) {
		return ""
	}
	return otherWord.FindString(identifiers.ReplaceAllString(text, ""))
}

// TestPeopleReadHandOver reads all that becomes a sentence somewhere: the texts in programs,
// pages, scripts and what models are told, the README, and what is said of settings and rooms.
func TestPeopleReadHandOver(t *testing.T) {
	root := moduleRoot(t)
	read := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "vendor" || name == "node_modules" || path != root && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		}
		at, err := filepath.Rel(root, path)
		if err != nil || d.IsDir() || withinAny(at, testRooms) { // nobody reads what only tests say
			return err
		}
		switch filepath.Ext(name) {
		case ".go":
			if !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, "_templ.go") { // a page is read where it is written
				read++
				inGo(t, path, at)
			}
		case ".templ", ".js", ".css", ".md":
			read++
			inText(t, path, at)
		}
		return nil
	})
	if err != nil || read < 500 {
		t.Errorf("%d files were read: %v", read, err)
	}
}

// inGo looks at the texts of a file, and at the comments where they describe settings or a room.
func inGo(t *testing.T, path, at string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	say := func(pos token.Pos, found string) {
		if found != "" {
			t.Errorf("%s:%d says %q to people: write hand over or hand-over", at, fset.Position(pos).Line, found)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(at, err)
			}
			say(lit.Pos(), forPeople(text))
		}
		return true
	})
	if !strings.HasPrefix(at, "cmd/gatehouse/internal/config/") && filepath.Base(at) != "doc.go" {
		return
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			say(c.Pos(), forPeople(c.Text))
		}
	}
}

func inText(t *testing.T, path, at string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if n++; forPeople(line) != "" {
			t.Errorf("%s:%d says %q to people: write hand over or hand-over", at, n, forPeople(line))
		}
	}
}

func TestTheOtherWordIsSeen(t *testing.T) {
	for text, want := range map[string]string{
		"Too many handoffs: the task has made %d of %d":               "handoffs",
		"Maximum handoffs reached: the task has made %d of %d":        "",
		"Approve handoff to %s? Context: %s":                          "",
		"Circular handoff: a → b; no other handoff was made":          "handoff",
		"Hand-off limit reached":                                      "Hand-off",
		"Write tokens and handoffs of 0 or more":                      "handoffs",
		"Maximum hand-overs reached, or raise `engine.max_handoffs`.": "",
		"give it away with handoff_to_agent":                          "",
		"Set `handoff`, or leave them out.":                           "",
		"tokens=20000,usd=0.5,handoffs=2":                             "",
		"handoffs":                                                    "",
		"a handoff: it is made":                                       "handoff",
		"what a handoff is, and what engine.handoffs says":            "handoff",
	} {
		if got := forPeople(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
