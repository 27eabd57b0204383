package orchestrator

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every transition has a name, and all of them stand together: what sets a state, or
// writes a row with one, is in transition.go.
func TestOnlyTransitionsSetAState(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "transition.go" {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, found := range strayMoves(t, name, string(source)) {
			t.Error(found + ". Give the transition a name in transition.go")
		}
	}
	if read < 30 {
		t.Fatalf("only %d files were read", read)
	}
}

// Each way around the transitions is found, and what only looks like one is not.
func TestStrayMovesAreFound(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`d.State = Queued`, "sets a state"},
		{`d.ID, d.State = "x", Queued`, "sets a state"},
		{`(*d).State = Queued`, "sets a state"},
		{`s := &d.State; *s = Queued`, "sets a state"},
		{`x := Delegation{State: Queued}; use(x)`, "makes a delegation with a state"},
		{`x := []*Delegation{{State: Queued}}; use(x)`, "makes a delegation with a state"},
		{`use(&Delegation{ID: "x", State: Queued})`, "makes a delegation with a state"},
		{`use(move(ctx, tx, d, Queued))`, "calls move"},
		{`use(tx.Move(ctx, d, Queued, 1))`, "calls Move"},
		{`m := tx.Move; use(m)`, "calls Move"},
		{`m := move; use(m)`, "calls move"},
		{`use(d.State == Queued, Ref{State: d.State}, goOn(ctx, tx, d))`, ""},
	} {
		found := strayMoves(t, "x.go", "package orchestrator\nfunc f() { "+c.code+" }\n")
		if c.want == "" && len(found) > 0 || c.want != "" && !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, c.want) }) {
			t.Errorf("%s: found %q, want %q", c.code, found, c.want)
		}
	}
}

// strayMoves lists what in a file outside of the transitions sets a state by hand.
func strayMoves(t *testing.T, name, source string) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	say := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s %s", fset.Position(n.Pos()), what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if ofState(to) {
					say(to, "sets a state")
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND && ofState(n.X) {
				say(n, "sets a state by its address")
			}
		case *ast.CompositeLit:
			if makesDelegation(n) {
				say(n, "makes a delegation with a state")
			}
		case *ast.SelectorExpr:
			if n.Sel.Name == "Move" {
				say(n, "calls Move")
			}
		case *ast.Ident:
			if n.Name == "move" {
				say(n, "calls move")
			}
		}
		return true
	})
	return found
}

func ofState(x ast.Expr) bool {
	s, is := x.(*ast.SelectorExpr)
	return is && s.Sel.Name == "State"
}

// makesDelegation reports whether a literal is a Delegation, or a list of them, with a state.
func makesDelegation(lit *ast.CompositeLit) bool {
	named := false
	if lit.Type != nil {
		ast.Inspect(lit.Type, func(n ast.Node) bool {
			id, is := n.(*ast.Ident)
			named = named || is && id.Name == "Delegation"
			return true
		})
	}
	if !named {
		return false
	}
	sets := false
	for _, e := range lit.Elts {
		ast.Inspect(e, func(n ast.Node) bool {
			kv, is := n.(*ast.KeyValueExpr)
			if is {
				key, is := kv.Key.(*ast.Ident)
				sets = sets || is && key.Name == "State"
			}
			return true
		})
	}
	return sets
}
