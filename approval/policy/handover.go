package policy

import (
	"fmt"

	"gatehouse/orchestrator/patch"
)

// HandoverFacts is what the condition of a rule about hand-overs may look at:
//
//	to == "deployer" || text contains "production"
//	"intern" in chain && depth > 1
//	any(files, .path startsWith "infra/") || context_text contains "password" || "plan" in artifacts
type HandoverFacts struct {
	From        string            `expr:"from"`         // the agent that asks, or "webhook NAME" and "schedule NAME"
	To          string            `expr:"to"`           // the agent that would work
	Text        string            `expr:"text"`         // what it would be asked to do
	Context     map[string]string `expr:"context"`      // what goes with it, by key
	ContextText string            `expr:"context_text"` // all of it as text, keys sorted, and the command object
	Files       []FileFacts       `expr:"files"`        // that travel and differ from the branch, as patch.files of rules about patches
	Artifacts   []string          `expr:"artifacts"`    // names of those that the command object carries
	Chain       []string          `expr:"chain"`        // agents from the root to the one that would work
	Requester   string            `expr:"requester"`    // name of the person who asked for the task
	Depth       int               `expr:"depth"`        // 1 for a hand-over of the root
	Repository  string            `expr:"repository"`   // configured name, "" for none
	Complexity  string            `expr:"complexity"`   // of the task, "" for none
	Hour        int               `expr:"hour"`         // 0 to 23, in server.timezone
	Weekday     string            `expr:"weekday"`      // monday to sunday
}

// HandoverPolicy is an ordered list of compiled rules about hand-overs. It is a value
// that nobody changes; nil has no rules.
type HandoverPolicy struct{ list Policy }

// CompileHandovers checks and compiles rules about hand-overs, as CompileRules does.
func CompileHandovers(configs []RuleConfig, groups map[string][]string) (*HandoverPolicy, []Problem) {
	p, problems := compileRules(configs, groups, HandoverFacts{})
	if p == nil || len(configs) == 0 {
		return nil, problems
	}
	return &HandoverPolicy{*p}, nil
}

// Hints names the rules that some requester could never satisfy, as Policy.Hints does.
func (p *HandoverPolicy) Hints(groups map[string][]string, fourEyes bool) []Problem {
	if p == nil {
		return nil
	}
	return p.list.Hints(groups, fourEyes)
}

// Version names the list of rules; "" for none.
func (p *HandoverPolicy) Version() string {
	if p == nil {
		return ""
	}
	return p.list.version
}

// AskFirst is the name of the rule that holds where an agent has ask_first and no rule
// about hand-overs says whom to ask.
const AskFirst = "ask_first"

// Rule returns the first rule that matches, and whether people are asked. first is set
// where the agent wants that in any case: a rule then says whom, and cannot pass it. A
// rule that cannot be evaluated passes nothing: one approver is asked, and a note says why.
func (p *HandoverPolicy) Rule(f HandoverFacts, first bool) (Ruling, bool) {
	var said Ruling
	broken := false
	if p != nil {
		said.Rule.Version = p.list.version
		for _, r := range p.list.rules {
			match, err := r.matchesHandover(f)
			if err != nil {
				said.Notes = append(said.Notes, ruleError(r, err))
				first, broken = true, true
				continue
			}
			if !match {
				continue
			}
			if !r.Deny && r.need == 0 && first {
				said.Notes = append(said.Notes, patch.Note{Code: "rule_not_applied", Text: fmt.Sprintf("Rule %q would pass this, but a person is asked in any case.", r.Name)})
				break
			}
			said.Rule, said.Deny, said.Expires = r.said(p.list.version), r.Deny, r.Expires
			if broken {
				said = p.list.strictestOf(said, true)
			}
			return said, !said.Deny && said.Rule.Need > 0
		}
	}
	if first {
		said.Rule.Name, said.Rule.Need, said.Rule.From = AskFirst, 1, []string{}
	}
	if broken {
		said = p.list.strictestOf(said, true)
	}
	return said, first
}

// matchesHandover runs the condition of a rule.
func (r rule) matchesHandover(f HandoverFacts) (bool, error) {
	widest := max(len(f.Chain), len(f.Context), len(f.Files), len(f.Artifacts), r.bounds.widest, 2)
	if r.bounds.splits {
		widest = max(widest, len(f.Text), len(f.ContextText))
		for _, x := range f.Files {
			widest = max(widest, len(x.Path), len(x.OldPath))
		}
	}
	if steps := r.steps(widest); steps > maxSteps {
		return false, fmt.Errorf("it would take %.0g steps on a text of %d bytes, and %.0g is the limit", steps, len(f.Text), float64(maxSteps))
	}
	return r.run(f)
}
