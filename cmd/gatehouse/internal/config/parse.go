package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Problem is one mistake in the file.
type Problem struct {
	File    string
	Line    int
	Column  int
	Message string
}

// Error is the problem as one line.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Problems is every mistake that was found, in the order of the file. Nothing was
// started.
type Problems []*Problem

// Error has one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// document is a parsed file that still knows where everything stands.
type document struct {
	name string
	root ast.Node
}

// parse reads the text, puts the environment in, and decodes it strictly.
func parse(name string, text []byte, env func(string) (string, bool)) (*document, File, error) {
	var f File
	d := &document{name: name}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, f, d.explain(err)
	}
	if len(tree.Docs) > 1 {
		return nil, f, Problems{d.at(tree.Docs[1].Body, "a second document starts here; put everything into one")}
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return d, f, nil
	}
	d.root = tree.Docs[0].Body
	if problems := d.expand(env); len(problems) > 0 {
		return nil, f, problems
	}
	if err := yaml.NodeToValue(d.root, &f, yaml.Strict()); err != nil {
		return nil, f, d.explain(err)
	}
	return d, f, nil
}

var variable = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// expand replaces ${NAME} in every text of the file; $${NAME} stays as ${NAME}.
func (d *document) expand(env func(string) (string, bool)) Problems {
	var problems Problems
	ast.Walk(walker(func(n ast.Node) {
		s, ok := n.(*ast.StringNode)
		if !ok || !strings.Contains(s.Value, "${") {
			return
		}
		s.Value = variable.ReplaceAllStringFunc(s.Value, func(m string) string {
			if strings.HasPrefix(m, "$$") {
				return m[1:]
			}
			name := m[2 : len(m)-1]
			value, ok := env(name)
			if !ok {
				problems = append(problems, d.at(s, fmt.Sprintf("the environment variable %s is not set. Set it before the start, or write the value here.", name)))
			}
			return value
		})
	}), d.root)
	return problems
}

type walker func(ast.Node)

// Visit makes a walker an ast.Visitor.
func (w walker) Visit(n ast.Node) ast.Visitor {
	w(n)
	return w
}

// at is a problem at a node.
func (d *document) at(n ast.Node, message string) *Problem {
	if n == nil {
		return &Problem{File: d.name, Line: 1, Column: 1, Message: message}
	}
	return d.atToken(n.GetToken(), message)
}

func (d *document) atToken(t *token.Token, message string) *Problem {
	p := &Problem{File: d.name, Line: 1, Column: 1, Message: message}
	if t != nil && t.Position != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	return p
}

// explain puts the library's errors into our words.
func (d *document) explain(err error) error {
	var e yaml.Error
	if !errors.As(err, &e) {
		return Problems{d.at(nil, err.Error())}
	}
	message := e.GetMessage()
	t := e.GetToken()
	var unknown *yaml.UnknownFieldError
	var wrong *yaml.TypeError
	var unexpected *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &unknown) && t != nil:
		message = fmt.Sprintf("unknown key `%s`.", t.Value)
		if near := Nearest(t.Value, keys(reflect.TypeFor[File](), map[reflect.Type]bool{})); near != "" {
			message += fmt.Sprintf(" Did you mean `%s`?", near)
		}
		message += " Nothing was started."
	case errors.As(err, &wrong):
		message = fmt.Sprintf("expected %s here, found %q.", kindName(wrong.DstType), tokenText(t))
	case errors.As(err, &unexpected):
		message = fmt.Sprintf("expected %s here, found %s.", strings.ToLower(unexpected.Expected.YAMLName()), strings.ToLower(unexpected.Actual.YAMLName()))
	}
	return Problems{d.atToken(t, message)}
}

func tokenText(t *token.Token) string {
	if t == nil {
		return ""
	}
	return t.Value
}

// kindName is a type in the words of a person who writes YAML.
func kindName(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "keys with values"
	default:
		return "a text"
	}
}

// keys lists every key that the file may have.
func keys(t reflect.Type, seen map[reflect.Type]bool) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		all = append(all, f.Tag.Get("yaml"))
		all = append(all, keys(f.Type, seen)...)
	}
	return all
}

// Nearest returns the candidate that word most probably meant, or "".
func Nearest(word string, candidates []string) string {
	best, most := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if n := distance(strings.ToLower(word), strings.ToLower(c)); n < most {
			best, most = c, n
		}
	}
	return best
}

// distance is how many letters have to be changed, added or left out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost = 1 + min(prev, row[j], row[j+1])
			}
			prev, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// find returns the node at a path of keys (string) and indexes (int), or the
// deepest one on the way there.
func (d *document) find(path ...any) ast.Node {
	n := d.root
	for _, step := range path {
		next := child(n, step)
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func child(n ast.Node, step any) ast.Node {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if key, ok := step.(string); ok && keyText(v.Key) == key {
				return v.Value
			}
		}
	case *ast.MappingValueNode:
		if key, ok := step.(string); ok && keyText(n.Key) == key {
			return n.Value
		}
	case *ast.SequenceNode:
		if i, ok := step.(int); ok && i < len(n.Values) {
			return n.Values[i]
		}
	case *ast.AnchorNode:
		return child(n.Value, step)
	case *ast.TagNode:
		return child(n.Value, step)
	}
	return nil
}

func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return k.GetToken().Value
}
