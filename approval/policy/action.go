package policy

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

// ActionFacts is what the condition of a rule about calls of tools may look at:
//
//	tool in ["read_file", "search"] || hints.read_only
//	tool == "Bash" && not (input.command matches "^(go|npm|git status)( |$)")
//	input.command contains "rm -rf /" || server == "deploy" && hour > 17
//
// A field that the input does not have is no text and no number: what is looked for in it is
// not there.
type ActionFacts struct {
	Tool         string         `expr:"tool"`
	Input        map[string]any `expr:"input"`  // what the tool would be called with
	Server       string         `expr:"server"` // the MCP server whose tool it is, "" for none
	Hints        HintFacts      `expr:"hints"`
	Agent        string         `expr:"agent"`
	Chain        []string       `expr:"chain"`         // agents from the root to this one
	Requester    string         `expr:"requester"`     // name of the person who asked for the task
	Repository   string         `expr:"repository"`    // configured name, "" for none
	AnalysisOnly bool           `expr:"analysis_only"` // the agent changes nothing
	Hour         int            `expr:"hour"`          // 0 to 23, in server.timezone
	Weekday      string         `expr:"weekday"`       // monday to sunday
}

// HintFacts are what the tool's server says of it. Where it says nothing they are what the
// MCP specification (2025-06-18, ToolAnnotations) takes for granted: the worst.
type HintFacts struct {
	ReadOnly    bool `expr:"read_only"`
	Destructive bool `expr:"destructive"`
	OpenWorld   bool `expr:"open_world"`
}

// ActionPolicy is an ordered list of compiled rules about calls of tools. It is a value that
// nobody changes; nil has no rules.
type ActionPolicy struct{ list Policy }

// CompileActions checks and compiles rules about calls of tools, as CompileRules does.
func CompileActions(configs []RuleConfig, groups map[string][]string) (*ActionPolicy, []Problem) {
	p, problems := compileRules(configs, groups, ActionFacts{})
	if p == nil || len(configs) == 0 {
		return nil, problems
	}
	return &ActionPolicy{*p}, nil
}

// Hints names the rules that some requester could never satisfy, as Policy.Hints does.
func (p *ActionPolicy) Hints(groups map[string][]string, fourEyes bool) []Problem {
	if p == nil {
		return nil
	}
	return p.list.Hints(groups, fourEyes)
}

// Version names the list of rules; "" for none.
func (p *ActionPolicy) Version() string {
	if p == nil {
		return ""
	}
	return p.list.version
}

// InAnyCase is the name of the rule that holds where a person is asked about a call whatever
// the rules say, and none of them says whom.
const InAnyCase = "analysis-only"

// Rule returns the first rule that matches, and whether people are asked. first is set where
// that is so in any case: a rule then says whom, and cannot pass the call. A rule that cannot
// be evaluated passes nothing. Ruling.Shadow is what the rules on trial would have said.
func (p *ActionPolicy) Rule(f ActionFacts, first bool) (Ruling, bool) {
	live, asks := p.rule(f, first, false)
	if p != nil && p.list.trial {
		if would, _ := p.rule(f, first, true); !would.Rule.Same(live.Rule) {
			live.Shadow = &would.Rule
		}
	}
	return live, asks
}

func (p *ActionPolicy) rule(f ActionFacts, first, trial bool) (said Ruling, asks bool) {
	if p == nil {
		p = &ActionPolicy{}
	}
	broken := false
	said.Rule.Version = p.list.version
	for _, r := range p.list.rules {
		if r.Shadow && !trial {
			continue
		}
		match, err := r.matchesAction(f)
		if err != nil {
			said.Notes = append(said.Notes, ruleError(r, err))
			first, broken = true, true
		}
		if !match || !r.Deny && r.need == 0 && first {
			continue // what would pass it, too: a person is asked in any case
		}
		said.Rule, said.Deny, said.Expires = r.said(p.list.version), r.Deny, r.Expires
		if broken {
			said = p.list.strictestOf(said, trial)
		}
		return said, !said.Deny && said.Rule.Need > 0
	}
	if first {
		said.Rule.Name, said.Rule.Need, said.Rule.From = InAnyCase, 1, []string{}
	}
	if broken {
		said.Rule.Name = Default().Name
		said = p.list.strictestOf(said, trial)
	}
	return said, first
}

// matchesAction runs the condition of a rule.
func (r rule) matchesAction(f ActionFacts) (bool, error) {
	widest := max(len(f.Chain), r.bounds.widest, 2, widestOf(f.Input, r.bounds.splits))
	if steps := r.steps(widest); steps > maxSteps {
		return false, fmt.Errorf("it would take %.0g steps on this input, and %.0g is the limit", steps, float64(maxSteps))
	}
	return r.run(f)
}

// widestOf is the length of the longest list in an input, and of its longest text where texts
// are taken apart.
func widestOf(v any, texts bool) int {
	most := 0
	switch v := v.(type) {
	case string:
		if texts {
			most = len(v)
		}
	case []any:
		most = len(v)
		for _, e := range v {
			most = max(most, widestOf(e, texts))
		}
	case map[string]any:
		most = len(v)
		for _, e := range v {
			most = max(most, widestOf(e, texts))
		}
	}
	return most
}

// lenient makes texts and lists of what is known only once there is an input: around an
// operator on texts nothing is "", and what is no text is its JSON; what is gone through as a
// list is one of one where it is none. So a field that is not there breaks no rule.
type lenient struct{}

// Visit looks at one node.
func (lenient) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "contains", "startsWith", "endsWith", "matches":
			wrap(&n.Left, "text")
			wrap(&n.Right, "text")
		}
	case *ast.BuiltinNode:
		if len(n.Arguments) == 2 {
			wrap(&n.Arguments[0], "list")
		}
	}
}

func wrap(n *ast.Node, function string) {
	if t := (*n).Type(); t != nil && t.Kind() == reflect.Interface {
		ast.Patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: []ast.Node{*n}})
	}
}

// textOf and listOf are the functions that lenient calls, and rules may.
func textOf() expr.Option {
	return expr.Function("text", func(params ...any) (any, error) {
		switch v := params[0].(type) {
		case nil:
			return "", nil
		case string:
			return v, nil
		}
		b, err := json.Marshal(params[0])
		return string(b), err
	}, new(func(any) string))
}

func listOf() expr.Option {
	return expr.Function("list", func(params ...any) (any, error) {
		switch v := params[0].(type) {
		case nil:
			return []any{}, nil
		case []any:
			return v, nil
		}
		return []any{params[0]}, nil
	}, new(func(any) []any))
}
