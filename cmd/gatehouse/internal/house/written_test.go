package house

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// eventRoom has the payloads of all events.
const eventRoom = "orchestrator/record/event"

// unwritten are the fields of payloads that no program writes, each with the reason why it stays.
var unwritten = map[string]string{
	"ContextReadData.Namespace": "data of before one event was for several entries",
	"ContextReadData.Key":       "data of before one event was for several entries",
}

// A field that is read and never written is a defect that no reader sees: it is empty, as it may well be.
func TestEveryFieldOfAnEventHasAWriter(t *testing.T) {
	var payloads []*ast.File
	w := newWriters()
	for _, p := range modulePackages(t) {
		for _, name := range p.GoFiles {
			fset, file, err := parse(filepath.Join(p.Dir, name), nil)
			switch {
			case err != nil:
				t.Fatal(err)
			case p.path() == eventRoom:
				payloads = append(payloads, file)
			case !withinAny(p.path(), testRooms):
				w.files = append(w.files, file)
				for _, call := range callsOf(file, "event", "Data") {
					t.Errorf("%s: a program appends the struct of a type; event.Data is for tests, which write what other versions wrote", fset.Position(call.Pos()))
				}
			}
		}
	}
	w.declare(payloads)
	fields := w.reached(payloads)
	if len(fields) < 200 {
		t.Fatalf("%d fields: the payloads are not where this test looks for them", len(fields))
	}
	given := w.given()
	for _, file := range payloads { // an event that is passed on and not stored
		for _, call := range callsOf(file, "", "Of") {
			if lit, ok := call.Args[len(call.Args)-1].(*ast.CompositeLit); ok {
				w.literal(lit, innermost(lit.Type), given)
			}
		}
	}
	for _, field := range fields {
		switch reason := unwritten[field]; {
		case given[field] && reason != "":
			t.Errorf("%s is written: take it off the list of those that are not", field)
		case !given[field] && reason == "":
			t.Errorf("no program writes %s of package event: write it, or name it in unwritten with a reason", field)
		}
	}
	for field := range unwritten {
		if !slices.Contains(fields, field) {
			t.Errorf("%s is no field of a payload", field)
		}
	}
}

// callsOf are those of one function, of a package or of the file's own.
func callsOf(file *ast.File, pkg, name string) []*ast.CallExpr {
	var all []*ast.CallExpr
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			if x, ok := f.X.(*ast.Ident); ok && x.Name == pkg && f.Sel.Name == name {
				all = append(all, call)
			}
		case *ast.Ident:
			if pkg == "" && f.Name == name {
				all = append(all, call)
			}
		}
		return true
	})
	return all
}

// writers finds out of sources which fields of the structs of one package are given a value.
type writers struct {
	files   []*ast.File
	structs map[string][]structField
	returns map[string]string // functions that return one of the structs, by name
}

type structField struct {
	name, of string // of: the struct of the package that it holds, "" for another type
	embedded bool
}

func newWriters() *writers {
	return &writers{structs: map[string][]structField{}, returns: map[string]string{}}
}

// declare reads the structs of the package.
func (w *writers) declare(files []*ast.File) {
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			w.structs[spec.Name.Name] = nil
			for _, f := range s.Fields.List {
				of := innermost(f.Type)
				for _, name := range f.Names {
					w.structs[spec.Name.Name] = append(w.structs[spec.Name.Name], structField{name: name.Name, of: of})
				}
				if len(f.Names) == 0 {
					w.structs[spec.Name.Name] = append(w.structs[spec.Name.Name], structField{name: of, of: of, embedded: true})
				}
			}
			return true
		})
	}
}

// innermost is the name of a type without pointers, lists and Maybe; "" for those of other packages.
func innermost(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return innermost(e.X)
	case *ast.ArrayType:
		return innermost(e.Elt)
	case *ast.IndexExpr:
		return innermost(e.Index)
	}
	return ""
}

// reached are the fields of all payloads and of the structs within them, as Type.Field.
func (w *writers) reached(files []*ast.File) []string {
	fields := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		for _, f := range w.structs[name] {
			if !f.embedded {
				fields[name+"."+f.name] = true
			}
			reach(f.of)
		}
	}
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "sentence" {
				reach(innermost(f.Recv.List[0].Type))
			}
		}
	}
	return slices.Sorted(maps.Keys(fields))
}

// outside is the struct that a type names from another package; "" for every other type.
func (w *writers) outside(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok && pkg.Name == "event" {
			if _, ok := w.structs[e.Sel.Name]; ok {
				return e.Sel.Name
			}
		}
	case *ast.StarExpr:
		return w.outside(e.X)
	case *ast.ArrayType:
		return w.outside(e.Elt)
	}
	return ""
}

// given are the fields that the files write, as Type.Field.
func (w *writers) given() map[string]bool {
	fields := map[string]bool{}
	w.functions()
	for _, file := range w.files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body == nil {
				continue
			}
			known := map[string]string{} // the structs that variables hold
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncType:
					w.params(n, known)
				case *ast.ValueSpec:
					for _, name := range n.Names {
						known[name.Name] = w.outside(n.Type)
					}
				case *ast.CompositeLit:
					w.literal(n, w.outside(n.Type), fields)
				case *ast.AssignStmt:
					w.assigned(n, known, fields)
				}
				return true
			})
		}
	}
	return fields
}

// functions notes which of them return a struct of the package.
func (w *writers) functions() {
	for _, file := range w.files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Type.Results != nil {
				if of := w.outside(f.Type.Results.List[0].Type); of != "" {
					w.returns[f.Name.Name] = of
				}
			}
		}
	}
}

func (w *writers) params(f *ast.FuncType, known map[string]string) {
	for _, list := range []*ast.FieldList{f.Params, f.Results} {
		if list == nil {
			continue
		}
		for _, p := range list.List {
			for _, name := range p.Names {
				known[name.Name] = w.outside(p.Type)
			}
		}
	}
}

// literal notes what a composite literal of the struct sets. In a list the type stands once.
func (w *writers) literal(lit *ast.CompositeLit, of string, fields map[string]bool) {
	if of == "" {
		return
	}
	_, list := lit.Type.(*ast.ArrayType)
	for i, e := range lit.Elts {
		switch e := e.(type) {
		case *ast.KeyValueExpr:
			if key, ok := e.Key.(*ast.Ident); ok {
				w.set(of, key.Name, fields)
			}
		case *ast.CompositeLit:
			if list && e.Type == nil {
				w.literal(e, of, fields)
			}
		default:
			if !list && i < len(w.structs[of]) {
				w.set(of, w.structs[of][i].name, fields)
			}
		}
	}
}

// assigned notes x.Field = … and what new variables hold.
func (w *writers) assigned(a *ast.AssignStmt, known map[string]string, fields map[string]bool) {
	for i, left := range a.Lhs {
		switch left := left.(type) {
		case *ast.SelectorExpr:
			w.set(w.held(left.X, known), left.Sel.Name, fields)
		case *ast.Ident:
			if len(a.Rhs) == len(a.Lhs) {
				if of := w.held(a.Rhs[i], known); of != "" {
					known[left.Name] = of
				}
			}
		}
	}
}

// held is the struct that an expression has, as far as names tell.
func (w *writers) held(e ast.Expr, known map[string]string) string {
	switch e := e.(type) {
	case *ast.Ident:
		return known[e.Name]
	case *ast.UnaryExpr:
		return w.held(e.X, known)
	case *ast.CompositeLit:
		return w.outside(e.Type)
	case *ast.SelectorExpr:
		for _, f := range w.structs[w.held(e.X, known)] {
			if f.name == e.Sel.Name {
				return f.of
			}
		}
	case *ast.CallExpr:
		switch f := e.Fun.(type) {
		case *ast.Ident:
			return w.returns[f.Name]
		case *ast.SelectorExpr:
			return w.returns[f.Sel.Name]
		}
	}
	return ""
}

// set notes a field, also one that the struct has from an embedded one.
func (w *writers) set(of, name string, fields map[string]bool) {
	for _, f := range w.structs[of] {
		switch {
		case f.name == name:
			fields[of+"."+name] = true
		case f.embedded:
			w.set(f.of, name, fields)
		}
	}
}

// The rule passes on a tidy house, so this shows that it can fail.
func TestUnwrittenFieldsAreSeen(t *testing.T) {
	_, payloads, err := parse("event.go", `package event
		type About struct { ID string; Kind string }
		type Call struct { Name, Input string }
		type Said struct { About; Text Maybe[string]; Calls []Call; Lost bool; Count int }
		func (Said) sentence(Event, Words) string { return "said" }
		type Hub struct { people int }`)
	if err != nil {
		t.Fatal(err)
	}
	_, writer, err := parse("writer.go", `package a
		func about() event.About { return event.About{ID: "x"} }
		func f(later *event.Said) event.Payload {
			said := event.Said{About: about(), Calls: []event.Call{{Name: "go"}}}
			if true { said.Text = event.Given("x") }
			other.Lost = true
			later.Count = 5
			return said
		}`)
	if err != nil {
		t.Fatal(err)
	}
	w := newWriters()
	w.files = []*ast.File{writer}
	w.declare([]*ast.File{payloads})
	given := w.given()
	missing := slices.DeleteFunc(w.reached([]*ast.File{payloads}), func(field string) bool { return given[field] })
	if got, want := strings.Join(missing, " "), "About.Kind Call.Input Said.Lost"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
