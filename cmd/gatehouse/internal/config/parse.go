package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/nearest"

	"go.yaml.in/yaml/v3"
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
	return strings.Join(each.Of(ps, (*Problem).Error), "\n")
}

// document is a parsed file that still knows where everything stands.
type document struct {
	name  string
	lines []string
	root  *yaml.Node            // nil when the file is empty
	raw   map[*yaml.Node]string // texts as they were before the environment came in, of those that it changed
	from  sources
	unset map[*yaml.Node]Unset // what could not be put in, where that is allowed
	files []string             // that ${file:…} names, absolute
	loose []string             // what deserves a look about them
}

// parse reads the text, puts the environment and files in, and decodes it strictly.
func parse(name string, text []byte, from sources) (*document, File, error) {
	d, err := read(name, text)
	if err != nil {
		return nil, File{}, err
	}
	return d.decode(from)
}

// read parses the text, which must be one document.
func read(name string, text []byte) (*document, error) {
	d := &document{name: name, lines: strings.Split(string(text), "\n"), raw: map[*yaml.Node]string{}, unset: map[*yaml.Node]Unset{}}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return d, nil
	} else if err != nil {
		return nil, d.syntax(err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, Problems{d.at(&second, "a second document starts here; put everything into one.")}
	} else if !errors.Is(err, io.EOF) {
		return nil, d.syntax(err)
	}
	if len(first.Content) > 0 && !isNull(first.Content[0]) {
		d.root = first.Content[0]
	}
	return d, nil
}

// decode puts the environment and files in and makes a File of the document, strictly.
func (d *document) decode(from sources) (*document, File, error) {
	var f File
	d.from = from
	if d.root == nil {
		return d, f, nil
	}
	if problems := append(d.expand(d.root, ""), d.judge(d.root, reflect.TypeFor[File](), "")...); len(problems) > 0 {
		return nil, f, problems
	}
	if err := d.root.Decode(&f); err != nil {
		return nil, f, d.syntax(err)
	}
	return d, f, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// judge compares a node with the type that it should be, so that every mistake has
// its place. key is where it stands, as in engine.workers.
func (d *document) judge(n *yaml.Node, t reflect.Type, key string) Problems {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.AliasNode {
		return Problems{d.at(n, "anchors and aliases are not read here. Write the value itself.")}
	}
	if isNull(n) {
		return nil
	}
	if t.Kind() == reflect.Interface { // any value
		return d.judgeAny(n)
	}
	want := yaml.ScalarNode
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		want = yaml.MappingNode
	case reflect.Slice:
		want = yaml.SequenceNode
	}
	if n.Kind != want || want == yaml.ScalarNode && !fits(n, t) {
		where := ""
		if key != "" {
			where = "`" + key + "`: "
		}
		return Problems{d.at(n, fmt.Sprintf("%sexpected %s here, found %s.", where, kindName(t), foundName(n)))}
	}
	var problems Problems
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		problems = d.judgeKeys(n, t, key)
	case reflect.Slice:
		for i, c := range n.Content {
			problems = append(problems, d.judge(c, t.Elem(), fmt.Sprintf("%s[%d]", key, i))...)
		}
	}
	return problems
}

// fits reports whether a scalar is of the type. The library would cut 1.5 to a whole number.
func fits(n *yaml.Node, t reflect.Type) bool {
	if whole := t.Kind() == reflect.Int || t.Kind() == reflect.Int64; whole && n.ShortTag() == "!!float" {
		return false
	}
	return n.Decode(reflect.New(t).Interface()) == nil
}

// judgeAny looks below a value of any shape for what is never read.
func (d *document) judgeAny(n *yaml.Node) Problems {
	var problems Problems
	for i, c := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			problems = append(problems, d.judge(c, reflect.TypeFor[any](), "")...)
		}
	}
	return problems
}

// judgeKeys looks at each key of a mapping, and at its value.
func (d *document) judgeKeys(n *yaml.Node, t reflect.Type, at string) Problems {
	var problems Problems
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			problems = append(problems, d.at(key, fmt.Sprintf("the key `%s` stands here twice. Keep one.", key.Value)))
			continue
		}
		seen[key.Value] = true
		if t.Kind() == reflect.Map {
			problems = append(problems, d.judge(value, t.Elem(), strings.TrimPrefix(at+"."+key.Value, "."))...)
			continue
		}
		field, known := fieldOf(t, key.Value)
		if !known {
			message := fmt.Sprintf("unknown key `%s`.", key.Value)
			if near := Nearest(key.Value, keys(t)); near != "" {
				message += fmt.Sprintf(" Did you mean `%s`?", near)
			}
			problems = append(problems, d.at(key, message+" Nothing was started."))
			continue
		}
		problems = append(problems, d.judge(value, field, strings.TrimPrefix(at+"."+key.Value, "."))...)
	}
	return problems
}

// fieldOf is the type that the key of a struct has.
func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if keyOf(f) == key {
			return f.Type, true
		}
	}
	return nil, false
}

// keys lists the keys that a struct may have.
func keys(t reflect.Type) []string {
	return each.Of(reflect.VisibleFields(t), keyOf)
}

// at is a problem at a node; without one, at the start of the file.
func (d *document) at(n *yaml.Node, message string) *Problem {
	p := &Problem{File: d.name, Line: 1, Column: 1, Message: message}
	if n != nil && n.Line > 0 {
		p.Line, p.Column = n.Line, n.Column
	}
	return p
}

var lineOf = regexp.MustCompile(`line (\d+): `)

// syntax is text that is no YAML. The library names the line only.
func (d *document) syntax(err error) Problems {
	p := d.at(nil, strings.TrimPrefix(err.Error(), "yaml: ")+".")
	if m := lineOf.FindStringSubmatch(p.Message); m != nil {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			p.Line = n
		}
		p.Message = strings.Replace(p.Message, m[0], "", 1)
	}
	d.tab(p)
	return Problems{p}
}

// tab says in plain words that a line is indented by a tab, which the library's sentence
// hides. It names the line before, too.
func (d *document) tab(p *Problem) {
	for n := p.Line; n <= min(p.Line+1, len(d.lines)); n++ {
		text := d.lines[n-1]
		blank := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if i := strings.IndexByte(blank, '\t'); i >= 0 {
			p.Line, p.Column = n, i+1
			p.Message = "this line is indented with a tab. YAML takes only spaces there: write two for each level."
			return
		}
	}
}

// foundName is what stands there, for a person.
func foundName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", n.Value)
	}
}

// kindName is a type in the words of a person who writes YAML.
func kindName(t reflect.Type) string {
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

// Nearest returns the candidate that word most probably meant, or "".
func Nearest(word string, candidates []string) string {
	lower := each.Of(candidates, strings.ToLower)
	best := nearest.Within(strings.ToLower(word), lower, max(1, len(word)/3))
	if best == "" {
		return ""
	}
	return candidates[slices.Index(lower, best)]
}

// find returns the node at a path of keys (string) and indexes (int), or the
// deepest one on the way there.
func (d *document) find(path ...any) *yaml.Node {
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

func child(n *yaml.Node, step any) *yaml.Node {
	if n == nil {
		return nil
	}
	switch step := step.(type) {
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	case int:
		if n.Kind == yaml.SequenceNode && step < len(n.Content) {
			return n.Content[step]
		}
	}
	return nil
}

// inside finds the place in the file of a place in a text that the file holds: line and
// column count from 1, in characters. YAML joins the lines of most texts with a space, so
// that what is one line to the reader of the value may be several in the file. Escapes
// within quotation marks move the column.
func (d *document) inside(n *yaml.Node, line, column int) (fileLine, fileColumn int) {
	lines := strings.Split(n.Value, "\n")
	if n.Style&yaml.LiteralStyle != 0 {
		if at := n.Line + line; at <= len(d.lines) {
			return at, indent(d.lines[n.Line]) + column // the first line sets the indentation
		}
		return n.Line, n.Column
	}
	left := column - 1 // characters of the value before the place
	for _, l := range lines[:min(line-1, len(lines))] {
		left += utf8.RuneCountInString(l) + 1
	}
	at, start := n.Line, n.Column
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		start++
	}
	if n.Style&yaml.FoldedStyle != 0 && at < len(d.lines) {
		at++
		start = indent(d.lines[at-1]) + 1
	}
	for at <= len(d.lines) {
		text := []rune(strings.TrimRight(d.lines[at-1], " \t\r"))
		if here := len(text) - start + 1; left < here || at == len(d.lines) {
			return at, start + left
		} else if left -= here + 1; left < 0 {
			left = 0 // the space that stands for the end of the line
		}
		at++
		if at <= len(d.lines) {
			start = indent(d.lines[at-1]) + 1
		}
	}
	return n.Line, n.Column
}

// indent is how many blanks a line begins with.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
