package event

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// plain are words of a face that has no tables.
var plain = Words{
	State:   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	Verdict: func(v string, _ bool) string { return v },
	Steered: func(string, bool) string { return "taken from the branch" },
}

// Streams, filters, pages and sentences know the types by the table alone, so none may be missing.
func TestEveryTypeIsInTheTable(t *testing.T) {
	declared, structs := declarations(t)
	for text := range declared {
		if _, ok := KindOf(text); !ok {
			t.Errorf("the type %s is not in the table of kinds.go", text)
		}
	}
	for _, k := range kinds {
		delete(structs, reflect.TypeOf(k.empty).Name())
		if _, ok := declared[k.Type]; !ok {
			t.Errorf("%s of the table is not declared", k.Type)
		}
		if utf8.RuneCountInString(k.Icon) != 1 {
			t.Errorf("%s has the icon %q", k.Type, k.Icon)
		}
		e := Event{Type: k.Type, Actor: "coder", Data: []byte("{}")}
		if said := Sentence(e, plain); strings.TrimSpace(said) == "" || strings.HasSuffix(said, ".") {
			t.Errorf("%s says %q of empty data", k.Type, said)
		}
		// Data of another shape never breaks a sentence.
		e.Data = []byte(`{"agent":5,"to":{},"text":[],"files":"x","turn":"y","children":7,"ok":"z","until":1,"calls":"c","usd":"u"}`)
		Sentence(e, plain)
	}
	for name := range structs {
		t.Errorf("%s is in no line of the table of kinds.go", name)
	}
	if len(byType) != len(kinds) || len(kinds) != len(declared) {
		t.Errorf("%d types are declared, %d are in the table, %d of them different", len(declared), len(kinds), len(byType))
	}
}

// declarations are the constants of Type and the structs that say a type, in this package.
func declarations(t *testing.T) (types map[Type]bool, structs map[string]bool) {
	t.Helper()
	types, structs = map[Type]bool{}, map[string]bool{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "sentence" && n.Recv != nil {
					structs[n.Recv.List[0].Type.(*ast.Ident).Name] = true
				}
			case *ast.ValueSpec:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "Type" && len(n.Values) == 1 {
					text, err := strconv.Unquote(n.Values[0].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					types[Type(text)] = true
				}
			}
			return true
		})
	}
	return types, structs
}

// A type that another version of the program wrote is shown by what such data mostly has.
func TestAnUnknownTypeHasASentence(t *testing.T) {
	e := Event{Type: "task.teleported", Data: []byte(`{"text":"to the moon","state":"gone"}`)}
	if got := Sentence(e, plain); got != "to the moon" || e.Payload() != nil || !e.Type.Heard() {
		t.Errorf("%q, %v, heard %t", got, e.Payload(), e.Type.Heard())
	}
}
