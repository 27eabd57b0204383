package trigger

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

const (
	maxWhen = 8 << 10 // bytes of a condition: a parser goes as deep as it has brackets
	// maxSteps bounds what an evaluation may cost, in pieces of 256 bytes that are looked
	// at: an evaluation cannot be stopped once it runs.
	maxSteps = 5_000_000
	piece    = 256
)

// Facts are what a condition and a template know of a delivery.
type Facts struct {
	Event    map[string]any `expr:"event"`    // the payload; of a schedule empty
	Name     string         `expr:"name"`     // the sender's name of what happened: workflow_run
	Delivery string         `expr:"delivery"` // the sender's id; of a schedule its time
	Trigger  string         `expr:"trigger"`
	Source   string         `expr:"source"`
}

// condition is a compiled condition; nil is always true.
type condition struct {
	program *vm.Program
	loops   int // how deep predicates are nested
	bounds  bounds
}

// functions are those that a condition may use: none makes a long text or list out of
// short ones, and none answers differently from call to call.
func functions() []string {
	return []string{"all", "none", "any", "one", "count", "len", "first", "last", "abs", "int", "float", "type",
		"trim", "trimPrefix", "trimSuffix", "upper", "lower", "indexOf", "hasPrefix", "hasSuffix"}
}

func compileWhen(when string) (*condition, *Problem) {
	if strings.TrimSpace(when) == "" {
		return nil, nil
	}
	if len(when) > maxWhen {
		return nil, &Problem{Field: "when", Index: -1, Message: fmt.Sprintf("The condition has %d bytes; %d is the limit.", len(when), maxWhen)}
	}
	bounds := &bounds{}
	options := []expr.Option{expr.Env(Facts{}), expr.AsBool(), expr.DisableAllBuiltins(), expr.Patch(bounds)}
	for _, name := range functions() {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(when, options...)
	if err == nil && bounds.err != nil {
		err = bounds.err.Bind(file.NewSource(when))
	}
	if err != nil {
		return nil, whenProblem(err)
	}
	return &condition{program: program, loops: loops(program.Node()), bounds: *bounds}, nil
}

// whenProblem makes a problem of the compiler's error, whose columns count from 0.
func whenProblem(err error) *Problem {
	p := &Problem{Field: "when", Index: -1, Message: err.Error()}
	if at, ok := errors.AsType[*file.Error](err); ok {
		p.Line, p.Column, p.Message = at.Line, at.Column+1, at.Message
	}
	if p.Line == 0 { // about the whole of it
		p.Line, p.Column = 1, 1
	}
	line, _, _ := strings.Cut(p.Message, "\n")
	if name, ok := strings.CutPrefix(line, "unknown name "); ok {
		name, _, _ = strings.Cut(name, " (")
		line = fmt.Sprintf("there is no %s here. A condition knows event (the payload, as in event.action), name, delivery, trigger and source%s", name, near(name))
	}
	p.Message = "The condition is not understood: " + strings.TrimRight(line, ".") + "."
	return p
}

// near proposes what a name was probably meant to be.
func near(name string) string {
	for _, known := range []string{"event", "name", "delivery", "trigger", "source"} {
		if strings.HasPrefix(known, name) || strings.HasPrefix(name, known) || strings.EqualFold(known, name) {
			return fmt.Sprintf("; did you mean %s?", known)
		}
	}
	return ""
}

// holds decides. What is not there is no match: the error says what it was.
func (c *condition) holds(f Facts, size int) (bool, error) {
	if c == nil {
		return true, nil
	}
	if c.loops > 0 {
		wide, long := extent(f.Event)
		steps := math.Pow(float64(wide), float64(c.loops))
		switch {
		case c.bounds.compares:
			steps *= float64(size/piece + 1)
		case c.bounds.reads:
			steps *= float64(long/piece + 1)
		}
		if steps > maxSteps {
			return false, fmt.Errorf("it would look at too much of a payload of %d bytes. Nest any and all less deeply, or look at less", size)
		}
	}
	answer, err := expr.Run(c.program, f)
	if err != nil {
		if at, ok := errors.AsType[*file.Error](err); ok {
			err = errors.New(at.Message)
		}
		line, _, _ := strings.Cut(err.Error(), "\n")
		return false, errors.New(line)
	}
	yes, ok := answer.(bool)
	if !ok {
		return false, fmt.Errorf("it gave %T in place of true or false", answer)
	}
	return yes, nil
}

// extent is the length of the longest list or object in a payload, and that of its
// longest text.
func extent(value any) (wide, long int) {
	wide = 1
	deeper := func(v any) {
		w, l := extent(v)
		wide, long = max(wide, w), max(long, l)
	}
	switch value := value.(type) {
	case string:
		long = len(value)
	case map[string]any:
		wide = max(wide, len(value))
		for _, v := range value {
			deeper(v)
		}
	case []any:
		wide = max(wide, len(value))
		for _, v := range value {
			deeper(v)
		}
	}
	return wide, long
}

// bounds refuses what could grow without end, and notes what costs more than it looks like.
type bounds struct {
	err      *file.Error
	reads    bool // whole texts are looked at
	compares bool // two values of the payload are compared, which may be lists
}

func (b *bounds) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		b.binary(n)
	case *ast.MapNode:
		b.refuse(n, "a condition makes no maps")
	case *ast.BuiltinNode: // those with a predicate are there even when all builtins are off
		b.reads = true
		if !slices.Contains(functions(), n.Name) {
			b.refuse(n, "there is no function "+n.Name+" here")
		}
	case *ast.CallNode:
		b.reads = true
	}
}

func (b *bounds) binary(n *ast.BinaryNode) {
	switch n.Operator {
	case "..":
		b.refuse(n, "a condition makes no ranges")
	case "+":
		if !written(n.Left) && !written(n.Right) {
			b.refuse(n, `of two values that are put together one is written out, as in event.ref + "/x"`)
		}
	case "**":
		b.refuse(n, "a condition raises to no power")
	case "==", "!=", "in", "<", ">", "<=", ">=":
		b.reads = true
		b.compares = b.compares || !literal(n.Left) && !literal(n.Right)
	case "contains", "startsWith", "endsWith":
		b.reads = true
	case "matches":
		b.reads = true
		if !written(n.Right) {
			b.refuse(n, "the pattern behind matches is written out")
		}
	}
}

func (b *bounds) refuse(n ast.Node, why string) {
	if b.err == nil {
		b.err = &file.Error{Location: n.Location(), Message: why}
	}
}

// written reports whether n is a text or a number that stands in the condition itself.
func written(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
		return true
	}
	t := n.Type()
	return t != nil && (t.Kind() == reflect.Int || t.Kind() == reflect.Float64)
}

// literal reports whether n stands in the condition itself.
func literal(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode, *ast.ConstantNode:
		return true
	case *ast.ArrayNode:
		return !slices.ContainsFunc(n.Nodes, func(e ast.Node) bool { return !literal(e) })
	case *ast.UnaryNode:
		return literal(n.Node)
	}
	return false
}

// loops is how deep predicates are nested in n.
func loops(n ast.Node) int {
	deepest := 0
	ast.Walk(&n, visit(func(inner *ast.Node) {
		if p, ok := (*inner).(*ast.PredicateNode); ok {
			deepest = max(deepest, 1+loops(p.Node))
		}
	}))
	return deepest
}

type visit func(*ast.Node)

func (v visit) Visit(n *ast.Node) { v(n) }
