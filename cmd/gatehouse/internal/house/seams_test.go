package house

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// A facing is a type through which two rooms speak: what stands in it is written on one
// side and read on the other, and is lost when either side forgets it.
type facing struct {
	pkg, name string
	writes    side
	reads     side
}

// A side tells who is counted as a writer or a reader.
type side int

const (
	anyone  side = iota
	engine       // the room that runs agents: package orchestrator
	kinds        // everybody but the engine; for what it hands out, the kinds of agents
	outside      // whoever asks the API, in JSON
)

// is reports whether a package stands on the side.
func (s side) is(path string) bool {
	return s == anyone || s != outside && (s == engine) == (path == enginePath)
}

const (
	enginePath = "orchestrator"
	agentPath  = "orchestrator/agent"
	wirePath   = "web/wire"
)

// key names the type among all facings.
func (f facing) key() string {
	if f.pkg == wirePath {
		return "wire." + f.name
	}
	return f.name
}

// facings are the types between the engine and the kinds of agents, what the API takes, and
// Work, the row by which the engine's own halves speak: one makes a hop, another starts the run.
var facings = []facing{
	{agentPath, "Job", engine, kinds},
	{agentPath, "Hop", kinds, engine},
	{agentPath, "Child", engine, kinds},
	{agentPath, "Result", anyone, anyone},
	{agentPath, "Handover", kinds, anyone},
	{agentPath, "Host", engine, kinds},
	{wirePath, "Submission", outside, kinds},
	{wirePath, "Hop", outside, kinds},
	{wirePath, "Fork", outside, kinds},
	{wirePath, "Verdict", outside, kinds},
	{wirePath, "HopQuestion", outside, kinds},
	{wirePath, "NewEntry", outside, kinds},
	{wirePath, "NewHold", outside, kinds},
	{enginePath, "Submission", kinds, engine},
	{enginePath, "Work", engine, anyone},
	{enginePath, "Terms", engine, anyone},
	{enginePath, "Base", engine, anyone},
	{enginePath, "Session", engine, anyone},
	{enginePath, "Product", engine, anyone},
	{enginePath, "Provenance", engine, anyone},
	{enginePath, "ToLand", engine, anyone},
	{enginePath, "Rounds", engine, anyone},
	{enginePath, "Waits", engine, anyone},
	{enginePath, "Account", engine, anyone},
}

// inJSON are fields whose other side is a JSON text, and where that is read or written.
var inJSON = map[string]string{
	"Handover.Goto":  "prompts, accept_handoff and programs show the whole command as JSON (H2)",
	"Handover.Graph": "prompts, accept_handoff and programs show the whole command as JSON (H2)",
}

// TestEverySeamHasBothSides fails when a fact that should cross from one room to another
// has a writer and no reader, or a reader and no writer: then it is lost on the way, and
// both rooms' own tests are green. Only the product's code counts, no test. Copying a field
// into the same field of another value is neither.
func TestEverySeamHasBothSides(t *testing.T) {
	found := seams(t, loadModule(t))
	for _, f := range facings {
		names := found.members(f)
		if len(names) == 0 {
			t.Errorf("%s.%s has no fields or methods: does it have another name now?", f.pkg, f.name)
		}
		for _, name := range names {
			key := f.key() + "." + name
			if _, ok := inJSON[key]; ok {
				continue
			}
			if fault := found.fault(f, name); fault != "" {
				t.Errorf("%s: %s", key, fault)
			}
		}
	}
}

// A use is one place where a field or a method stands.
type use struct {
	pkg   string
	write bool
	at    string
}

// usage is where the members of facings are used: by type and member.
type usage struct {
	order map[string][]string
	uses  map[types.Object][]use
	objs  map[string]types.Object
}

func (u usage) members(f facing) []string { return u.order[f.key()] }

// fault says which side a member lacks, "" when it has both.
func (u usage) fault(f facing, name string) string {
	uses := u.uses[u.objs[f.key()+"."+name]]
	writers := slices.ContainsFunc(uses, func(x use) bool { return x.write && f.writes.is(x.pkg) })
	readers := slices.ContainsFunc(uses, func(x use) bool { return !x.write && f.reads.is(x.pkg) })
	if f.name == "Host" || f.writes == outside {
		writers = true // the compiler asks the engine for every method
	}
	switch {
	case !writers && !readers:
		return "nobody writes it and nobody reads it: delete it"
	case !writers:
		return "nobody writes it on the side that should: " + places(uses)
	case !readers:
		return "nobody reads it on the side that should: " + places(uses)
	}
	return ""
}

func places(uses []use) string {
	var at []string
	for _, u := range uses {
		kind := "read"
		if u.write {
			kind = "written"
		}
		at = append(at, kind+" at "+u.at)
	}
	return strings.Join(at, ", ")
}

// seams collects the uses of every member of the facings in the module.
func seams(t *testing.T, m *loaded) usage {
	t.Helper()
	u := usage{order: map[string][]string{}, uses: map[types.Object][]use{}, objs: map[string]types.Object{}}
	for _, f := range facings {
		p := m.packages[module+"/"+f.pkg]
		if p == nil {
			t.Fatalf("there is no package %s", f.pkg)
		}
		of := p.Scope().Lookup(f.name)
		if of == nil {
			t.Fatalf("%s has no %s", f.pkg, f.name)
		}
		for _, o := range membersOf(of.Type()) {
			u.order[f.key()] = append(u.order[f.key()], o.Name())
			u.objs[f.key()+"."+o.Name()] = o
			u.uses[o] = nil
		}
	}
	for path, files := range m.files {
		for _, file := range files {
			u.collect(m, path, file)
		}
	}
	return u
}

// membersOf are a struct's fields, those of embedded structs left to themselves, or an
// interface's methods.
func membersOf(t types.Type) []types.Object {
	var all []types.Object
	switch t := t.Underlying().(type) {
	case *types.Struct:
		for f := range t.Fields() {
			if !f.Embedded() {
				all = append(all, f)
			}
		}
	case *types.Interface:
		for f := range t.Methods() {
			all = append(all, f)
		}
	}
	return all
}

// collect notes the uses in one file.
func (u usage) collect(m *loaded, path string, file *ast.File) {
	short := strings.TrimPrefix(path, module+"/")
	written := map[*ast.Ident]bool{} // set, not read
	both := map[*ast.Ident]bool{}    // read and set
	copied := map[*ast.Ident]bool{}  // neither
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				id := name(left)
				if id == nil {
					continue
				}
				if len(n.Lhs) == len(n.Rhs) {
					m.same(id, n.Rhs[i], copied)
				}
				written[id] = true
				both[id] = n.Tok.String() != "=" && n.Tok.String() != ":="
			}
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok {
				m.same(id, n.Value, copied)
				written[id] = true
			}
		case *ast.IncDecStmt:
			if id := name(n.X); id != nil {
				both[id] = true
			}
		case *ast.UnaryExpr:
			if id := name(n.X); id != nil && n.Op.String() == "&" {
				both[id] = true
			}
		case *ast.CompositeLit:
			u.unkeyed(m, short, n)
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || copied[id] {
			return true
		}
		o := m.info.Uses[id]
		if _, ours := u.uses[o]; !ours {
			return true
		}
		at := m.fset.Position(id.Pos())
		where := use{pkg: short, at: strings.TrimPrefix(at.String(), m.root+"/")}
		if written[id] || both[id] {
			where.write = true
			u.uses[o] = append(u.uses[o], where)
		}
		if !written[id] || both[id] {
			where.write = false
			u.uses[o] = append(u.uses[o], where)
		}
		return true
	})
}

// unkeyed notes a literal without names, which sets every field.
func (u usage) unkeyed(m *loaded, pkg string, lit *ast.CompositeLit) {
	if len(lit.Elts) == 0 {
		return
	}
	if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed || m.info.Types[lit].Type == nil {
		return
	}
	for _, o := range membersOf(m.info.Types[lit].Type) {
		if _, ours := u.uses[o]; ours {
			u.uses[o] = append(u.uses[o], use{pkg: pkg, write: true, at: m.fset.Position(lit.Pos()).String()})
		}
	}
}

// name is the identifier of the field that an expression such as x.F, x.F.G or x.F[i] sets:
// the last field named.
func name(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.ParenExpr:
		return name(e.X)
	}
	return nil
}
