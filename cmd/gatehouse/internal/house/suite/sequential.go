package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// folder is a package as go list knows it.
type folder struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// list asks which packages the patterns name.
func list(ctx context.Context, patterns []string) ([]folder, error) {
	fields := "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles"
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", fields}, patterns)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages %v: %w", patterns, err)
	}
	var all []folder
	for from := json.NewDecoder(bytes.NewReader(out)); ; {
		var one folder
		err := from.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		all = append(all, one)
	}
}

// shared are the imports by which a package has more than one goroutine, or a test has.
var shared = []string{`"sync"`, `"sync/atomic"`, `"golang.org/x/sync/errgroup"`, `"testing/synctest"`, `"net/http/httptest"`}

// sequential tells whether nothing in a package and in its tests happens at the same time as something else: they start
// no goroutine, lock nothing, serve nobody and run no tests beside one another. The race detector has nothing to see there,
// and makes what computes five times slower. What such a package uses of others is watched in their own tests.
func (f folder) sequential() (bool, error) {
	for _, name := range slices.Concat(f.GoFiles, f.TestGoFiles, f.XTestGoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(f.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, fmt.Errorf("look for goroutines: %w", err)
		}
		for _, imported := range file.Imports {
			if slices.Contains(shared, imported.Path.Value) {
				return false, nil
			}
		}
		if starts(file) {
			return false, nil
		}
	}
	return true, nil
}

// starts tells whether a file starts a goroutine, or a test beside others.
func starts(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Go" || n.Sel.Name == "Parallel" || n.Sel.Name == "AfterFunc"
		}
		return !found
	})
	return found
}

// stories are packages whose tests look at the program, and at it in a browser: processes of their own, so that there is
// nothing else to watch in the tests' process. The servers on SQLite are watched. Tests in files that do not import
// starter call functions of the program themselves, and run with the detector.
var stories = []string{program, program + "/internal/browser"}

// starter is the package that starts the program for tests.
const starter = `"gatehouse/cmd/gatehouse/internal/placetest"`

// parts are packages by how their tests run.
type parts struct {
	watched, plain, stories []string
	within                  string // a pattern of the program's tests that are watched
}

// split divides packages into those whose tests the race detector watches and the others.
func split(all []folder) (parts, error) {
	var p parts
	for _, f := range all {
		alone, err := f.sequential()
		if err != nil {
			return parts{}, err
		}
		switch {
		case slices.Contains(stories, f.ImportPath):
			p.stories = append(p.stories, f.ImportPath)
			if f.ImportPath != program {
				continue // it has tests alone
			}
			if p.within, err = f.within(); err != nil {
				return parts{}, err
			}
		case alone:
			p.plain = append(p.plain, f.ImportPath)
		default:
			p.watched = append(p.watched, f.ImportPath)
		}
	}
	p.watched, p.plain, p.stories = ordered(p.watched), ordered(p.plain), ordered(p.stories)
	return p, nil
}

// within is a pattern of the tests that call functions of their package; "" without any.
func (f folder) within() (string, error) {
	var names []string
	for _, name := range f.TestGoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(f.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", fmt.Errorf("look for tests: %w", err)
		}
		if slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == starter }) {
			continue
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
				names = append(names, fn.Name.Name)
			}
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return "^(" + strings.Join(names, "|") + ")$", nil
}

// unwatched are the flags without the race detector.
func unwatched(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return flag == "-race" || strings.HasPrefix(flag, "-gcflags=")
	})
}
