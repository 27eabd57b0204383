package event_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"gatehouse/orchestrator/event"
)

// Pages and filters know the types from this list alone, so none may be missing.
func TestEveryTypeIsInTheList(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known, found := event.Types(), 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Type" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if one := event.Type(text); one != event.MessageDelta && one != event.Gap {
			found++
			if !slices.Contains(known, one) {
				t.Errorf("%s is not in Types: no page would hear it", one)
			}
		}
		return true
	})
	if found != len(known) {
		t.Errorf("%d types are declared, %d listed", found, len(known))
	}
}
