package workflow

import (
	"text/template/parse"

	"gatehouse/orchestrator/agent"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// read is one place where a condition or template reads a step: steps.ID.field.
type read struct{ id, field string }

// readStates are the ids whose state the conditions of these steps read.
func readStates(steps []agent.Step) map[string]bool {
	states := map[string]bool{}
	for _, s := range steps {
		for _, r := range conditionReads(s.If) {
			if r.field == "state" {
				states[r.id] = true
			}
		}
		for id := range readStates(s.Parallel) {
			states[id] = true
		}
	}
	return states
}

// conditionReads finds steps.ID.field and steps["ID"]["field"] in a condition. One
// that does not parse reads nothing; running it fails with the reason.
func conditionReads(condition string) []read {
	tree, err := parser.Parse(condition)
	if err != nil {
		return nil
	}
	var v memberVisitor
	ast.Walk(&tree.Node, &v)
	return v.reads
}

type memberVisitor struct{ reads []read }

// Visit is called for the inner nodes first: steps.a, and then steps.a.state.
func (v *memberVisitor) Visit(node *ast.Node) {
	id, property, ok := member(*node)
	if !ok {
		return
	}
	if base, ok := unchain(id).(*ast.IdentifierNode); ok && base.Value == "steps" {
		v.reads = append(v.reads, read{id: property})
		return
	}
	inner, step, ok := member(id)
	if !ok {
		return
	}
	if base, ok := unchain(inner).(*ast.IdentifierNode); ok && base.Value == "steps" {
		v.reads = append(v.reads, read{id: step, field: property})
	}
}

// member takes x.name or x["name"] apart.
func member(node ast.Node) (of ast.Node, name string, ok bool) {
	m, ok := unchain(node).(*ast.MemberNode)
	if !ok {
		return nil, "", false
	}
	property, ok := m.Property.(*ast.StringNode)
	if !ok {
		return nil, "", false
	}
	return m.Node, property.Value, true
}

// unchain looks through the node that optional chaining (?.) adds.
func unchain(node ast.Node) ast.Node {
	if c, ok := node.(*ast.ChainNode); ok {
		return c.Node
	}
	return node
}

// templateReads finds the fields of the root that a template reads, as paths such as
// [Steps research Text]. Inside with and range the dot is something else, and only
// $ still is the root.
func templateReads(root parse.Node) [][]string {
	var paths [][]string
	var walk func(n parse.Node, rootDot bool)
	pipe := func(p *parse.PipeNode, rootDot bool) {
		for _, c := range p.Cmds {
			for _, a := range c.Args {
				walk(a, rootDot)
			}
		}
	}
	branch := func(b *parse.BranchNode, rootDot, inside bool) {
		pipe(b.Pipe, rootDot)
		walk(b.List, inside)
		if b.ElseList != nil {
			walk(b.ElseList, rootDot)
		}
	}
	walk = func(n parse.Node, rootDot bool) {
		switch n := n.(type) {
		case *parse.ListNode:
			for _, sub := range n.Nodes {
				walk(sub, rootDot)
			}
		case *parse.ActionNode:
			pipe(n.Pipe, rootDot)
		case *parse.PipeNode:
			pipe(n, rootDot)
		case *parse.IfNode:
			branch(&n.BranchNode, rootDot, rootDot)
		case *parse.WithNode:
			branch(&n.BranchNode, rootDot, false)
		case *parse.RangeNode:
			branch(&n.BranchNode, rootDot, false)
		case *parse.FieldNode:
			if rootDot {
				paths = append(paths, n.Ident)
			}
		case *parse.VariableNode:
			if n.Ident[0] == "$" && len(n.Ident) > 1 {
				paths = append(paths, n.Ident[1:])
			}
		case *parse.ChainNode:
			walk(n.Node, rootDot)
		}
	}
	walk(root, true)
	return paths
}
