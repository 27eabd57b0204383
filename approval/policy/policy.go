package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/patch"

	"gatehouse/orchestrator/each"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// RuleConfig is one rule of approval.rules as it was written.
type RuleConfig struct {
	Name    string
	When    string        // an expression over Facts that gives true or false
	Need    *int          // yeses needed; nil means 1, 0 passes by itself
	From    []string      // groups whose yes counts; empty: every approver
	Deny    bool          // a patch that matches is rejected
	Shadow  bool          // on trial: what it would have said is kept, and it decides nothing
	Expires time.Duration // 0: approval.expires
	OnNo    string        // of a hand-over: EndTask or TellCaller; "": approval.on_no
}

// Problem is a rule that cannot be used. Line and Column count from 1 within the
// text of When; both are 0 when the problem is elsewhere in the rule.
type Problem struct {
	Rule    int    // index in the list
	Field   string // name, when, need, from or expires
	Line    int
	Column  int
	Message string
}

// String is the problem as one line, without the place in the file.
func (p Problem) String() string { return p.Field + ": " + p.Message }

// Policy is an ordered list of compiled rules. It is a value that nobody changes;
// the zero Policy has the default rule alone.
type Policy struct {
	rules   []rule
	version string
	trial   bool // some rule is on trial
}

type rule struct {
	RuleConfig
	need    int
	program *vm.Program
	bounds  *bounds
	loops   int // how deep its predicates are nested
}

// maxSteps bounds what one rule may compute on one patch: an agent chooses how many
// files there are, and the rule runs while the task's row is locked.
const maxSteps = 5_000_000

// Ruling is what the policy says of one patch.
type Ruling struct {
	Rule    Rule
	Deny    bool
	Expires time.Duration // 0: the gateway's
	Notes   []patch.Note  // why a rule that would have decided did not
	Shadow  *Rule         // what would hold if the rules on trial were live; nil when the same
}

// Pass reports whether the patch goes through without a person.
func (r Ruling) Pass() bool { return !r.Deny && r.Rule.Need == 0 }

// CompileRules checks and compiles rules. groups are the names of people by group.
// The policy is nil when there is a problem.
func CompileRules(configs []RuleConfig, groups map[string][]string) (*Policy, []Problem) {
	return compileRules(configs, groups, Facts{})
}

// compileRules is CompileRules for conditions that look at facts of that type.
func compileRules(configs []RuleConfig, groups map[string][]string, facts any) (*Policy, []Problem) {
	var problems []Problem
	p := &Policy{}
	names := map[string]bool{}
	for i, c := range configs {
		report := func(field, format string, args ...any) {
			problems = append(problems, Problem{Rule: i, Field: field, Message: fmt.Sprintf(format, args...)})
		}
		switch {
		case strings.TrimSpace(c.Name) == "":
			report("name", "A rule needs a name: history shows which rule decided.")
		case names[c.Name]:
			report("name", "There are two rules %q. Give each its own name.", c.Name)
		}
		names[c.Name] = true
		r := rule{RuleConfig: c, need: 1}
		if c.Need != nil {
			r.need = *c.Need
		}
		checkNeed(r, groups, report)
		if c.Expires < 0 {
			report("expires", "The deadline %s is before the question. Use a positive duration such as 72h.", c.Expires)
		}
		if strings.TrimSpace(c.When) == "" {
			report("when", `Rule %q has no condition. Write "true" for a rule that always matches.`, c.Name)
		} else if len(c.When) > maxWhen {
			report("when", "The condition of rule %.80q has %d bytes; %d is the limit. Split it into several rules.", c.Name, len(c.When), maxWhen)
		} else if program, bounds, err := compile(c.When, facts); err != nil {
			problems = append(problems, whenProblem(i, err, facts))
		} else {
			r.program, r.bounds, r.loops = program, bounds, loops(program.Node())
		}
		p.trial = p.trial || c.Shadow
		p.rules = append(p.rules, r)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	p.version = version(configs)
	return p, nil
}

// version names a list of rules: the first 12 digits of the hash of all that they say.
func version(configs []RuleConfig) string {
	h := sha256.New()
	for _, c := range configs {
		need := 1
		if c.Need != nil {
			need = *c.Need
		}
		fmt.Fprintf(h, "%q %q %d %q %t %t %d\n", c.Name, c.When, need, c.From, c.Deny, c.Shadow, c.Expires)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// Version names the list of rules; "" for none.
func (p *Policy) Version() string {
	if p == nil {
		return ""
	}
	return p.version
}

// Rules lists what the policy was made of.
func (p *Policy) Rules() []RuleConfig {
	return each.Of(p.list(), func(r rule) RuleConfig { return r.RuleConfig })
}

// loops is how deep predicates are nested below n. The walk visits what is inside
// first, so that the depth of an inner one is known.
func loops(n ast.Node) int {
	w := nesting{depth: map[*ast.PredicateNode]int{}}
	ast.Walk(&n, &w)
	return w.deepest
}

type nesting struct {
	depth   map[*ast.PredicateNode]int
	deepest int
}

// Visit gives a predicate one more than the deepest inside it.
func (w *nesting) Visit(n *ast.Node) {
	p, ok := (*n).(*ast.PredicateNode)
	if !ok {
		return
	}
	if _, known := w.depth[p]; known {
		return
	}
	inner := nesting{depth: w.depth}
	ast.Walk(&p.Node, &within{&inner})
	w.depth[p] = inner.deepest + 1
	w.deepest = max(w.deepest, w.depth[p])
}

// within finds the deepest predicate of a part that was walked before.
type within struct{ *nesting }

func (w *within) Visit(n *ast.Node) {
	if p, ok := (*n).(*ast.PredicateNode); ok {
		w.deepest = max(w.deepest, w.depth[p])
	}
}

// checkNeed checks how many yeses a rule needs and from whom.
func checkNeed(r rule, groups map[string][]string, report func(field, format string, args ...any)) {
	if r.need < 0 {
		report("need", "A rule cannot need %d approvals. Use 0 to pass by itself, or 1 and more.", r.need)
	}
	if r.Deny && r.Need != nil {
		report("need", "Rule %q denies, so nobody is asked. Remove need, or remove deny.", r.Name)
	}
	members := map[string]bool{}
	known := true
	for _, g := range r.From {
		list, ok := groups[g]
		switch {
		case !ok:
			report("from", "There is no group %q. Add it to groups, or name one of: %s.", g, strings.Join(groupNames(groups), ", "))
			known = false
		case len(list) == 0:
			report("from", "Group %q has nobody in it, so nobody could approve. Add a person to it.", g)
			known = false
		}
		for _, m := range list {
			members[m] = true
		}
	}
	if known && len(r.From) > 0 && r.need > len(members) {
		report("need", "Rule %q needs %d approvals, but %s has %d. Lower need, or add people.", r.Name, r.need, strings.Join(r.From, " and "), len(members))
	}
}

func groupNames(groups map[string][]string) []string {
	if len(groups) == 0 {
		return []string{"(none is configured)"}
	}
	names := slices.Sorted(maps.Keys(groups))
	return names
}

// compile compiles one expression. now() is left out, too: a rule must give the same
// answer when it is tried again on a past request.
func compile(when string, facts any) (*vm.Program, *bounds, error) {
	b := &bounds{}
	program, err := expr.Compile(when, language(facts, b)...)
	if err == nil {
		b.words.check(b)
	}
	if err == nil && b.err != nil {
		err = b.err.Bind(file.NewSource(when))
	}
	return program, b, err
}

// whenProblem turns the compiler's error, whose columns count from 0, into a
// problem. One that is about the whole expression stands at its beginning.
func whenProblem(i int, err error, facts any) Problem {
	p := Problem{Rule: i, Field: "when", Line: 1, Column: 1, Message: err.Error()}
	if at, ok := errors.AsType[*file.Error](err); ok {
		p.Line, p.Column, p.Message = at.Line, at.Column+1, at.Message
	}
	p.Message = whenWords(p.Message, reflect.TypeOf(facts))
	return p
}

// Rule returns what the rules say. The first one that matches decides, with two
// exceptions that make it stricter, never weaker: a rule with need 0 lets nothing
// pass that has a warning or a failed check, or that moves, copies or removes a file,
// and where a rule breaks on a patch, the strictest one holds; see strictestOf. Both are
// noted, and then a further rule, or the default, says which people are asked.
func (p *Policy) Rule(f Facts) Ruling {
	live := p.rule(f, false)
	if p == nil || !p.trial {
		return live
	}
	if would := p.rule(f, true); !would.Rule.Same(live.Rule) {
		live.Shadow = &would.Rule
	}
	return live
}

// rule is Rule with, or without, the rules on trial.
func (p *Policy) rule(f Facts, trial bool) Ruling {
	var notes []patch.Note
	broken := false
	for _, r := range p.list() {
		if r.Shadow && !trial {
			continue
		}
		match, err := r.matches(f)
		if err != nil {
			broken = true
			notes = append(notes, ruleError(r, err))
		}
		if !match {
			continue
		}
		if !r.Deny && r.need == 0 {
			why := f.unread()
			if f.Careful() {
				why = "with a warning or a failed check"
			}
			if why != "" {
				notes = append(notes, patch.Note{Code: "rule_not_applied", Text: fmt.Sprintf("Rule %q passes no change %s, so a person decides.", r.Name, why)})
			}
			if broken || why != "" {
				continue
			}
		}
		said := Ruling{Rule: r.said(p.version), Deny: r.Deny, Expires: r.Expires, Notes: notes}
		if broken {
			return p.strictestOf(said, trial)
		}
		return said
	}
	said := Ruling{Rule: Default(), Notes: notes}
	said.Rule.Version = p.Version()
	if broken {
		return p.strictestOf(said, trial)
	}
	return said
}

// Hints names the rules that can be used but that some requester could never
// satisfy: with four eyes a member of the groups who asks leaves too few others.
func (p *Policy) Hints(groups map[string][]string, fourEyes bool) []Problem {
	var hints []Problem
	for i, r := range p.list() {
		members := map[string]bool{}
		for _, g := range r.From {
			for _, m := range groups[g] {
				members[m] = true
			}
		}
		if fourEyes && len(members) > 0 && r.need == len(members) {
			hints = append(hints, Problem{Rule: i, Field: "need", Message: fmt.Sprintf(
				"Rule %q needs all %d people of %s. With four_eyes a change that one of them asked for can never be approved. Lower need, or add a person.",
				r.Name, r.need, strings.Join(r.From, " and "))})
		}
	}
	return hints
}

// list allows a nil policy.
func (p *Policy) list() []rule {
	if p == nil {
		return nil
	}
	return p.rules
}

// matches runs the rule; expr turns what goes wrong inside it into an error.
func (r rule) matches(f Facts) (bool, error) {
	widest := max(len(f.Patch.Files), len(f.Unseen), len(f.Checks), len(f.Warnings), len(f.Agents), len(f.Owners), r.bounds.widest, 2)
	if r.bounds.splits {
		for _, x := range f.Patch.Files {
			widest = max(widest, len(x.Path), len(x.OldPath))
		}
	}
	if steps := r.steps(widest); steps > maxSteps {
		return false, fmt.Errorf("it would take %.0g steps on a patch of %d files, and %.0g is the limit", steps, len(f.Patch.Files), float64(maxSteps))
	}
	return r.run(f)
}

// steps is how many a condition takes at most where no list is longer than widest.
func (r rule) steps(widest int) float64 { return math.Pow(float64(widest), float64(r.loops)) }

// run evaluates the condition on facts of the type that it was compiled for.
func (r rule) run(facts any) (bool, error) {
	out, err := expr.Run(r.program, facts)
	if err != nil {
		if at, ok := errors.AsType[*file.Error](err); ok {
			return false, errors.New(at.Message)
		}
		return false, err
	}
	match, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("the condition gave %T instead of true or false", out)
	}
	return match, nil
}
