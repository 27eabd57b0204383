package policy

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

const (
	// MaxRules is how many rules a policy may have: each may look at every request.
	MaxRules = 500
	maxRange = 1000    // numbers of a range in a condition
	maxWhen  = 8 << 10 // bytes of a condition: a parser goes as deep as it has brackets
)

// functions are those that a condition may use. What makes long texts and lists of
// short ones, or lists of lists, is not among them: everybody who may read requests may
// try rules, and an evaluation cannot be stopped once it runs.
func functions() []string {
	return []string{"all", "none", "any", "one", "filter", "map", "count", "sum", "find", "findIndex", "findLast", "findLastIndex",
		"len", "first", "last", "take", "min", "max", "mean", "median", "abs", "ceil", "floor", "round", "int", "float", "type",
		"trim", "trimPrefix", "trimSuffix", "upper", "lower", "split", "splitAfter", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "sort", "reverse"}
}

// language is what compiles a condition: facts, without what could take all memory.
func language(facts any, bounds *bounds) []expr.Option {
	options := []expr.Option{expr.Env(facts), expr.AsBool(), expr.DisableAllBuiltins(), expr.Patch(bounds)}
	for _, name := range functions() {
		options = append(options, expr.EnableBuiltin(name))
	}
	if _, actions := facts.(ActionFacts); actions {
		options = append(options, textOf(), listOf(), expr.Patch(lenient{}))
	}
	return options
}

// bounds visits a condition, refuses what could grow without end, and notes what the
// number of steps depends on.
type bounds struct {
	err    *file.Error
	words  statusWords
	widest int  // of the ranges
	splits bool // texts are taken apart: their length counts, too
}

// Visit looks at one node. Types are known by then.
func (b *bounds) Visit(node *ast.Node) {
	b.words.visit(*node)
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		b.binary(n)
	case *ast.ArrayNode:
		for _, e := range n.Nodes {
			if !single(e) {
				b.refuse(e, "a list in a condition holds texts, numbers, true and false only")
			}
		}
	case *ast.MapNode:
		b.refuse(n, "a condition makes no maps")
	case *ast.BuiltinNode: // those with a predicate are there even when all builtins are off
		if !slices.Contains(functions(), n.Name) {
			b.refuse(n, "there is no function "+n.Name+" in a condition")
		}
		b.splits = b.splits || n.Name == "split" || n.Name == "splitAfter"
	case *ast.CallNode: // some functions are these until they are optimized
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			b.splits = b.splits || name.Value == "split" || name.Value == "splitAfter"
		}
	}
}

func (b *bounds) binary(n *ast.BinaryNode) {
	switch n.Operator {
	case "..":
		from, ok := n.Left.(*ast.IntegerNode)
		to, too := n.Right.(*ast.IntegerNode)
		if !ok || !too || to.Value-from.Value >= maxRange || from.Value-to.Value >= maxRange {
			b.refuse(n, fmt.Sprintf("a range goes from a number to a number, at most %d of them", maxRange))
			return
		}
		b.widest = max(b.widest, to.Value-from.Value+1)
	case "+":
		if !number(n.Left) && !number(n.Right) && !constant(n.Left) && !constant(n.Right) {
			b.refuse(n, `of two texts that are put together one is written out, as in .path + ".orig"`)
		}
	case "==", "!=", "in":
		if !single(n.Left) && !literal(n.Left) && !literal(n.Right) {
			b.refuse(n, "lists are not compared with lists; use any, all or in")
		}
	}
}

func (b *bounds) refuse(n ast.Node, why string) {
	if b.err == nil {
		b.err = &file.Error{Location: n.Location(), Message: why}
	}
}

// single reports whether n is one value: no list, map or record, nor perhaps one.
func single(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode:
		return true
	}
	t := n.Type()
	if t == nil {
		return false
	}
	switch t.Kind() {
	case reflect.Array, reflect.Slice, reflect.Map, reflect.Struct, reflect.Interface, reflect.Pointer, reflect.Func:
		return false
	default:
		return true
	}
}

func number(n ast.Node) bool {
	t := n.Type()
	if t == nil {
		return false
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64:
		return true
	default:
		return false
	}
}

func constant(n ast.Node) bool {
	_, ok := n.(*ast.StringNode)
	return ok
}

// literal reports whether n is a list that is written out, or one value.
func literal(n ast.Node) bool {
	_, ok := n.(*ast.ArrayNode)
	return ok || single(n)
}
