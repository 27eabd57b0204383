package house

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources reads texts out of Go files without their types: it is quick, and sees what is
// not exported.
type sources struct {
	t       *testing.T
	root    string
	folders map[string]*sourceFolder
}

// sourceFolder is one package, and its constants by name.
type sourceFolder struct {
	files  []*ast.File
	consts map[string]sourceConst
}

type sourceConst struct {
	file  *ast.File
	kind  string // as declared, "" without
	value ast.Expr
}

func newSources(t *testing.T) *sources {
	return &sources{t: t, root: moduleRoot(t), folders: map[string]*sourceFolder{}}
}

// read is a file of any kind.
func (s *sources) read(name string) string {
	b, err := os.ReadFile(filepath.Join(s.root, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *sources) folder(dir string) *sourceFolder {
	if f := s.folders[dir]; f != nil {
		return f
	}
	f := &sourceFolder{consts: map[string]sourceConst{}}
	s.folders[dir] = f
	names, err := filepath.Glob(filepath.Join(s.root, dir, "*.go"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go") {
			continue
		}
		_, file, err := parse(name, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		f.files = append(f.files, file)
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
				f.declare(file, d)
			}
		}
	}
	return f
}

func (f *sourceFolder) declare(file *ast.File, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		kind := ""
		switch is := spec.Type.(type) {
		case *ast.Ident:
			kind = is.Name
		case *ast.SelectorExpr:
			kind = is.Sel.Name
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				f.consts[name.Name] = sourceConst{file, kind, spec.Values[i]}
			}
		}
	}
}

// text is a literal, or a constant of ours, as it reads; false for what is known only when
// it runs.
func (s *sources) text(dir string, file *ast.File, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		c, ok := s.folder(dir).consts[e.Name]
		if !ok {
			return "", false
		}
		return s.text(dir, c.file, c.value)
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		for _, i := range file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			to, ours := strings.CutPrefix(path, module+"/")
			if name := filepath.Base(to); ok && ours && (i.Name == nil && name == x.Name || i.Name != nil && i.Name.Name == x.Name) {
				return s.text(to, nil, e.Sel)
			}
		}
	}
	return "", false
}

// texts are the constants of a package that match.
func (s *sources) texts(dir string, match func(name string, c sourceConst) bool) []string {
	var all []string
	f := s.folder(dir)
	for _, name := range slices.Sorted(maps.Keys(f.consts)) {
		c := f.consts[name]
		if !match(name, c) {
			continue
		}
		if text, ok := s.text(dir, c.file, c.value); ok {
			all = append(all, text)
		}
	}
	return all
}

// typed are the constants of a type.
func (s *sources) typed(dir, kind string) []string {
	return s.texts(dir, func(_ string, c sourceConst) bool { return c.kind == kind })
}

// named are the constants without a type whose names begin so.
func (s *sources) named(dir, prefix string) []string {
	return s.texts(dir, func(name string, c sourceConst) bool { return c.kind == "" && strings.HasPrefix(name, prefix) })
}

// each visits all of a package with the file that it stands in.
func (s *sources) each(dir string, visit func(file *ast.File, n ast.Node) bool) {
	for _, file := range s.folder(dir).files {
		ast.Inspect(file, func(n ast.Node) bool { return visit(file, n) })
	}
}

// literal finds the first composite literal of a variable or in a function.
func (s *sources) literal(dir, name string) (file *ast.File, found *ast.CompositeLit) {
	within := func(at *ast.File, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && found == nil && !isSet(lit) {
				file, found = at, lit
			}
			return found == nil
		})
	}
	s.each(dir, func(at *ast.File, n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if id.Name == name && i < len(n.Values) {
					within(at, n.Values[i])
				}
			}
		case *ast.FuncDecl:
			if n.Name.Name == name {
				within(at, n.Body)
			}
			return false
		}
		return true
	})
	if found == nil {
		s.t.Fatalf("%s has no list %s", dir, name)
	}
	return file, found
}

// isSet knows map[string]bool{}, which a function fills later.
func isSet(lit *ast.CompositeLit) bool { return len(lit.Elts) == 0 }

// table is a list by its name: keys go down into nested ones.
func (s *sources) table(dir, name string, down ...string) []string {
	file, lit := s.literal(dir, name)
	for _, key := range down {
		lit = s.below(dir, file, lit, key)
		if lit == nil {
			s.t.Fatalf("%s: %s has no list of %s", dir, name, key)
		}
	}
	var all []string
	for _, e := range lit.Elts {
		if inner, ok := e.(*ast.CompositeLit); ok && len(inner.Elts) > 0 {
			e = inner.Elts[0]
		}
		if text, ok := s.text(dir, file, e); ok {
			all = append(all, text)
		}
	}
	return all
}

func (s *sources) below(dir string, file *ast.File, lit *ast.CompositeLit, key string) *ast.CompositeLit {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if text, ok := s.text(dir, file, kv.Key); ok && text == key {
				inner, _ := kv.Value.(*ast.CompositeLit)
				return inner
			}
		}
	}
	return nil
}

// rows is a map by its name: its keys, with the texts of each value.
func (s *sources) rows(dir, name string) map[string][]string {
	file, lit := s.literal(dir, name)
	all := map[string][]string{}
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, ok := s.text(dir, file, kv.Key)
		if !ok {
			s.t.Fatalf("%s: %s has a key that is no constant", dir, name)
		}
		all[key] = nil
		if inner, ok := kv.Value.(*ast.CompositeLit); ok {
			for _, e := range inner.Elts {
				text, _ := s.text(dir, file, e)
				all[key] = append(all[key], text)
			}
		}
	}
	return all
}

func keys(rows map[string][]string) []string { return slices.Sorted(maps.Keys(rows)) }

// cases are the texts that the switches of a function know; of all functions without a name.
func (s *sources) cases(dir, function string) []string {
	return s.found(dir, function, func(n ast.Node) []ast.Expr {
		if c, ok := n.(*ast.CaseClause); ok {
			return c.List
		}
		return nil
	})
}

// returned are the texts that a function returns.
func (s *sources) returned(dir, function string) []string {
	return s.found(dir, function, func(n ast.Node) []ast.Expr {
		if r, ok := n.(*ast.ReturnStmt); ok {
			return r.Results
		}
		return nil
	})
}

// given are the texts that calls of a function have as their i-th argument.
func (s *sources) given(dir, function string, i int) []string {
	return s.found(dir, "", func(n ast.Node) []ast.Expr {
		if c, ok := n.(*ast.CallExpr); ok && len(c.Args) > i && called(c.Fun) == function {
			return c.Args[i : i+1]
		}
		return nil
	})
}

// check is one call of a function that takes only some words at a place of the configuration.
type check struct {
	at    string // "*" is any name or place; behind "…" only the end is known
	words []string
}

// checks are the calls of a function with a place, a value, and the words that it may be.
func (s *sources) checks(dir, function string) []check {
	var all []check
	s.each(dir, func(file *ast.File, n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || called(c.Fun) != function || len(c.Args) < 3 {
			return true
		}
		one := check{at: s.place(dir, file, c.Args[0])}
		for _, e := range c.Args[2:] {
			word, ok := s.text(dir, file, e)
			if !ok {
				s.t.Fatalf("%s: %s at %s takes a word that is known only when it runs", dir, function, one.at)
			}
			one.words = append(one.words, word)
		}
		all = append(all, one)
		return true
	})
	return all
}

// place is at("engine", "cycle") as engine.cycle, and append(where, "role") as ….role.
func (s *sources) place(dir string, file *ast.File, e ast.Expr) string {
	c, ok := e.(*ast.CallExpr)
	if !ok {
		return "…"
	}
	parts, args := []string{"…"}, c.Args
	switch called(c.Fun) {
	case "at":
		parts = nil
	case "append":
		args = c.Args[1:]
	}
	for _, arg := range args {
		part, ok := s.text(dir, file, arg)
		if !ok {
			part = "*"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ".")
}

// is reports whether the check is one of a key.
func (c check) is(key string) bool {
	if end, open := strings.CutPrefix(c.at, "…"); open {
		return strings.HasSuffix(key, end)
	}
	return key == c.at
}

// coded are the codes of what is made of a type: Warning{Code: …}, []Note{{Code: …}}, Note{…, …}.
func (s *sources) coded(dir, kind string) []string {
	return s.found(dir, "", func(n ast.Node) []ast.Expr {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return nil
		}
		if list, ok := lit.Type.(*ast.ArrayType); ok && called(list.Elt) == kind {
			var all []ast.Expr
			for _, e := range lit.Elts {
				if one, ok := e.(*ast.CompositeLit); ok {
					all = append(all, codeOf(one)...)
				}
			}
			return all
		}
		if called(lit.Type) == kind {
			return codeOf(lit)
		}
		return nil
	})
}

func codeOf(lit *ast.CompositeLit) []ast.Expr {
	for i, e := range lit.Elts {
		kv, keyed := e.(*ast.KeyValueExpr)
		if keyed && called(kv.Key) == "Code" {
			return []ast.Expr{kv.Value}
		}
		if !keyed && i == 0 {
			return []ast.Expr{e}
		}
	}
	return nil
}

// called is the last part of a name: Warning of patch.Warning.
func called(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// found are the texts of what pick takes within a function, or anywhere where it has no name.
func (s *sources) found(dir, function string, pick func(n ast.Node) []ast.Expr) []string {
	var all []string
	s.each(dir, func(file *ast.File, n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok && function != "" && f.Name.Name != function {
			return false
		}
		for _, e := range pick(n) {
			if text, ok := s.text(dir, file, e); ok {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}
