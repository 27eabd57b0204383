package house

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loaded is the product's code with the types of its names, read from the source: nothing
// is compiled for it, so it takes seconds also where nothing was built yet. What comes from
// other modules has no types here; a rule about our own types does not need them.
type loaded struct {
	root     string
	fset     *token.FileSet
	info     *types.Info
	packages map[string]*types.Package
	files    map[string][]*ast.File // by package, those whose bodies were looked at

	list  map[string]pkg
	known types.Importer
}

// plain are the packages of Go itself through which our own types pass as type parameters
// or as they are; the others are left out.
var plain = []string{"slices", "maps", "cmp", "iter", "sync", "context", "errors", "time", "sort", "strings", "encoding/json", "sync/atomic"}

// read is the module as it was read first: two tests ask for it.
var read *loaded

// loadModule reads all packages that know the contract of agents, with their bodies, and
// the others of ours that those import, without.
func loadModule(t *testing.T) *loaded {
	t.Helper()
	if read != nil {
		return read
	}
	m := &loaded{root: moduleRoot(t), fset: token.NewFileSet(), packages: map[string]*types.Package{}, files: map[string][]*ast.File{}, list: map[string]pkg{},
		info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}}
	build.Default.CgoEnabled = false // the source of Go's packages, without a C compiler
	m.known = importer.ForCompiler(m.fset, "source", nil)
	for _, p := range modulePackages(t) {
		m.list[p.ImportPath] = p
	}
	for path, p := range m.list {
		if m.inSeams(p) {
			if _, err := m.Import(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	read = m
	return m
}

// inSeams reports whether a package of the product knows agents.
func (m *loaded) inSeams(p pkg) bool {
	return (p.path() == agentPath || slices.Contains(p.Imports, module+"/"+agentPath)) &&
		!withinAny(p.path(), testRooms) && !withinAny(p.path(), testPrograms)
}

// Import is types.Importer.
func (m *loaded) Import(path string) (*types.Package, error) {
	if p, ok := m.packages[path]; ok {
		return p, nil
	}
	listed, ours := m.list[path]
	if !ours {
		if slices.Contains(plain, path) {
			return m.known.Import(path)
		}
		p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
		p.MarkComplete()
		m.packages[path] = p
		return p, nil
	}
	var files []*ast.File
	for _, name := range listed.GoFiles {
		file, err := parser.ParseFile(m.fset, filepath.Join(listed.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		files = append(files, file)
	}
	check := types.Config{Importer: m, FakeImportC: true, Error: func(error) {}, IgnoreFuncBodies: !m.inSeams(listed)}
	info := m.info
	if check.IgnoreFuncBodies {
		info = nil
	} else {
		m.files[path] = files
	}
	p, err := check.Check(path, m.fset, files, info)
	if p == nil {
		return nil, fmt.Errorf("understand %s: %w", path, err)
	}
	p.MarkComplete()
	m.packages[path] = p
	return p, nil
}

// same notes both names when a field is copied into the same field of another value.
func (m *loaded) same(to *ast.Ident, from ast.Expr, copied map[*ast.Ident]bool) {
	if id := name(from); id != nil && m.info.Uses[to] != nil && m.info.Uses[to] == m.info.Uses[id] {
		copied[to], copied[id] = true, true
	}
}
