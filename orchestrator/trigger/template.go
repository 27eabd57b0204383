package trigger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	maxTemplate = 16 << 10 // bytes of a template
	// MaxText is the longest text that a template makes, with what it quotes, in bytes.
	MaxText = 32 << 10
)

// text is a compiled template. It is a part of Go's: fields, variables, if, with, range
// that is not nested, and functions that neither call nor grow anything.
type text struct {
	root   *template.Template
	loops  bool
	writes bool // json writes out objects
	marks  bool // what comes from the payload is marked as somebody else's
}

// allowed are the functions of a template. get reads what may be missing, json writes
// out an object; event and delivery are the sender's names of what happened and of this.
func allowed() []string {
	return []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "get", "json", "event", "delivery"}
}

// funcs are those that Go's templates have not. mark takes a value on its way into the
// text; where it was read says label.
func funcs(f Facts, mark func(label string, value any) (string, error)) template.FuncMap {
	return template.FuncMap{"get": get, "json": toJSON, "mark": mark,
		"event": func() string { return f.Name }, "delivery": func() string { return f.Delivery }}
}

// get walks down a payload; nil where something on the way is not there.
func get(value any, path ...string) any {
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

func toJSON(value any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// parseText compiles a template.
func parseText(field, source string, marks bool) (*text, *Problem) {
	if len(source) > maxTemplate {
		return nil, &Problem{Field: field, Index: -1, Message: fmt.Sprintf("The template has %d bytes; %d is the limit.", len(source), maxTemplate)}
	}
	nothing := func(string, any) (string, error) { return "", nil }
	root, err := template.New(field).Option("missingkey=error").Funcs(funcs(Facts{}, nothing)).Parse(source)
	if err != nil {
		return nil, templateProblem(field, source, err)
	}
	c := &subset{field: field, source: source, marks: marks}
	for _, t := range root.Templates() {
		if t.Name() != field {
			c.refuse(0, "a template defines no others")
		}
	}
	t := &text{root: root, marks: marks}
	if root.Tree == nil {
		return t, nil // nothing but a definition
	}
	c.list(root.Root, false)
	t.loops, t.writes = c.loops, c.writes
	return t, c.problem
}

var atLine = regexp.MustCompile(`^template: \w+:(\d+): `)

// templateProblem is text that is no template. The library names the line only.
func templateProblem(field, source string, err error) *Problem {
	p := &Problem{Field: field, Index: -1, Message: err.Error()}
	if m := atLine.FindStringSubmatch(p.Message); m != nil {
		p.Line, _ = strconv.Atoi(m[1]) // digits
		p.Message = strings.TrimPrefix(p.Message, m[0])
		lines := strings.Split(source, "\n")
		if p.Line >= 1 && p.Line <= len(lines) {
			p.Column = max(strings.Index(lines[p.Line-1], "{{"), 0) + 1
		}
	}
	p.Message = "The template is not understood: " + strings.TrimRight(p.Message, ".") + "."
	return p
}

// subset walks a template, refuses what is not part of it, and puts the mark behind
// everything that is printed.
type subset struct {
	field, source string
	marks, loops  bool
	writes        bool
	problem       *Problem
}

func (c *subset) refuse(pos parse.Pos, why string) {
	if c.problem != nil {
		return
	}
	before := c.source[:min(int(pos), len(c.source))]
	line := strings.Count(before, "\n")
	c.problem = &Problem{Field: c.field, Index: -1, Line: line + 1, Column: len(before) - strings.LastIndex(before, "\n"),
		Message: "The template is not taken: " + why + "."}
}

func (c *subset) list(list *parse.ListNode, looped bool) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode, *parse.BreakNode, *parse.ContinueNode:
		case *parse.ActionNode:
			c.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, c.mark(n.Pipe))
			}
		case *parse.IfNode:
			c.branch(&n.BranchNode, looped)
		case *parse.WithNode:
			c.branch(&n.BranchNode, looped)
		case *parse.RangeNode:
			if c.loops = true; looped {
				c.refuse(n.Pos, "a range stands in no other range")
			}
			c.branch(&n.BranchNode, true)
		default:
			c.refuse(n.Position(), "it knows fields, if, with and range")
		}
	}
}

func (c *subset) branch(b *parse.BranchNode, looped bool) {
	c.pipe(b.Pipe)
	c.list(b.List, looped)
	c.list(b.ElseList, looped)
}

// mark is the command `mark LABEL`, to which the value comes last.
func (c *subset) mark(p *parse.PipeNode) *parse.CommandNode {
	label := p.String()
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: p.Pos, Args: []parse.Node{
		parse.NewIdentifier("mark").SetPos(p.Pos), &parse.StringNode{NodeType: parse.NodeString, Pos: p.Pos, Quoted: strconv.Quote(label), Text: label}}}
}

func (c *subset) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, command := range p.Cmds {
		for _, arg := range command.Args {
			c.argument(arg)
		}
	}
}

func (c *subset) argument(n parse.Node) {
	switch n := n.(type) {
	case *parse.IdentifierNode:
		c.writes = c.writes || n.Ident == "json"
		if !slices.Contains(allowed(), n.Ident) {
			c.refuse(n.Pos, fmt.Sprintf("there is no function %s. Functions are: %s", n.Ident, strings.Join(allowed(), ", ")))
		}
	case *parse.PipeNode:
		c.pipe(n)
	case *parse.ChainNode:
		c.argument(n.Node)
	}
}

// render writes the text for a delivery; size is the length of its payload.
func (t *text) render(f Facts, size int) (string, error) {
	if wide, long := extent(f.Event); t.loops && (wide*(long/piece+1) > maxSteps || t.writes && wide*(size/piece+1) > maxSteps) {
		return "", fmt.Errorf("its range would look at too much of a payload of %d bytes", size)
	}
	q := &quotes{f: f, plain: !t.marks || f.Source == ""}
	root, err := t.root.Clone()
	if err != nil {
		return "", err
	}
	out := limited{left: MaxText}
	if err := root.Funcs(funcs(f, q.take)).Execute(&out, f.Event); err != nil {
		return "", readable(err)
	}
	if strings.TrimSpace(out.String()) == "" {
		return "", errors.New("it came out empty")
	}
	whole := strings.TrimRight(out.String(), " \t\r\n") + q.String()
	if len(whole) > MaxText {
		return "", errTooLong
	}
	return whole, nil
}

var (
	errTooLong = fmt.Errorf("it came out longer than %d bytes", MaxText)
	atField    = regexp.MustCompile(`at <([^<>]*)>: (.*)$`)
)

// readable is what a template could not do, in the words of whoever wrote it.
func readable(err error) error {
	if errors.Is(err, errTooLong) {
		return errTooLong
	}
	m := atField.FindStringSubmatch(err.Error())
	if m == nil {
		return errors.New("it could not be filled in")
	}
	if strings.Contains(m[2], "no entry for key") || strings.Contains(m[2], "nil ") || strings.Contains(m[2], "can't evaluate field") {
		return fmt.Errorf("it reads %s, which the payload does not have. Narrow when, or write {{get . %s}}, which is empty then", m[1], path(m[1]))
	}
	return fmt.Errorf("it could not fill in %s", m[1])
}

// path is .a.b as the arguments of get.
func path(field string) string {
	var quoted []string
	for part := range strings.SplitSeq(strings.Trim(field, "."), ".") {
		quoted = append(quoted, strconv.Quote(part))
	}
	return strings.Join(quoted, " ")
}

// limited is a buffer that refuses to grow past its limit.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, errTooLong
	}
	return l.Buffer.Write(b)
}
