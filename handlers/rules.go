package handlers

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/wire"

	"go.yaml.in/yaml/v3"
)

// ParseRules reads rules as people paste them: the list alone, rules: with the list, the
// section approval: or a whole file with one. Errors begin with line and column.
func ParseRules(text string) ([]policy.RuleConfig, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("%s. Write the rules as they stand in the configuration", lineFirst(err))
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("there are no rules here. Write the list as it stands under approval.rules")
	}
	n := doc.Content[0]
	for _, key := range []string{"approval", "rules"} {
		if below := valueOf(n, key); below != nil {
			n = below
		}
	}
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%s: this is no list of rules. Write the list as it stands under approval.rules, or the section approval with its rules", standsAt(n))
	}
	if len(n.Content) > policy.MaxRules {
		return nil, fmt.Errorf("there are %d rules; %d is the limit", len(n.Content), policy.MaxRules)
	}
	var rules []policy.RuleConfig
	for _, item := range n.Content {
		r, err := ruleAt(item)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// ruleAt reads one rule.
func ruleAt(n *yaml.Node) (policy.RuleConfig, error) {
	if n.Kind != yaml.MappingNode {
		return policy.RuleConfig{}, fmt.Errorf("%s: a rule has keys, such as {name: docs, when: \"true\", need: 1}", standsAt(n))
	}
	for i := 0; i < len(n.Content); i += 2 {
		// An alias in place of a key is named after its anchor and means another.
		if key := n.Content[i]; key.Kind != yaml.ScalarNode || !slices.Contains(ruleKeys(), key.Value) {
			return policy.RuleConfig{}, fmt.Errorf("%s: a rule has no key %.40q. It has %s", standsAt(key), key.Value, strings.Join(ruleKeys(), ", "))
		}
	}
	var w wire.PolicyRule
	if err := n.Decode(&w); err != nil {
		return policy.RuleConfig{}, fmt.Errorf("%s", lineFirst(err))
	}
	r, err := RuleOf(w)
	if err != nil {
		err = fmt.Errorf("%s: rule %w", standsAt(valueOf(n, "expires")), err)
	}
	return r, err
}

// RuleOf is a rule that was written. Its error begins with the rule's name.
func RuleOf(w wire.PolicyRule) (policy.RuleConfig, error) {
	r := policy.RuleConfig{Name: w.Name, When: w.When, Need: w.Need, From: w.From, Deny: w.Deny, Shadow: w.Shadow}
	if w.Expires == "" {
		return r, nil
	}
	d, err := sharedctx.ParseTTL(w.Expires)
	if err != nil {
		return r, fmt.Errorf("%.80q: expires: %.80q is no length of time. Write a number with a unit, such as 72h", w.Name, w.Expires)
	}
	r.Expires = d
	return r, nil
}

// ruleKeys are the keys that a rule may have.
func ruleKeys() (keys []string) {
	for f := range reflect.TypeFor[wire.PolicyRule]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		keys = append(keys, name)
	}
	return keys
}

// valueOf is what stands at a key of a mapping, nil without it.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// standsAt is where a node stands, as line:column.
func standsAt(n *yaml.Node) string { return fmt.Sprintf("%d:%d", n.Line, n.Column) }

var yamlLine = regexp.MustCompile(`(?s)^.*?line (\d+): `)

// lineFirst is the library's error with its line before everything else; it knows no column.
func lineFirst(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		return m[1] + ":1: " + text[len(m[0]):]
	}
	return text
}

// RuleProblems is what is wrong with rules, one line each.
func RuleProblems(rules []policy.RuleConfig, problems []policy.Problem) string {
	var lines []string
	for _, p := range problems {
		place := ""
		if p.Column > 0 {
			place = fmt.Sprintf(":%d:%d", p.Line, p.Column)
		}
		lines = append(lines, fmt.Sprintf("Rule %.80q: %s%s: %s", rules[p.Rule].Name, p.Field, place, p.Message))
	}
	return strings.Join(lines, "\n")
}

// Ago is the moment that lies a length of time such as 30d or 12h before now; "" is 30
// days.
func Ago(length string, now time.Time) (time.Time, error) {
	if length == "" {
		return now.AddDate(0, 0, -backtestDays), nil
	}
	d, err := sharedctx.ParseTTL(length)
	if err != nil || d <= 0 {
		return now, orchestrator.Errorf(orchestrator.CodeBadRequest, "%.40q is no length of time. Write a number with a unit, such as 30d or 12h.", length)
	}
	return now.Add(-d), nil
}

// backtestDays is how far back a trial of rules looks when nothing else is said.
const backtestDays = 30
