package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"gatehouse/orchestrator/record/event"

	"go.yaml.in/yaml/v3"
)

// ofTheNode are settings that differ between nodes of one house.
var ofTheNode = []string{"server.listen", "server.public_url", "database", "data"}

// rulesOf are the settings of repositories and agents that say who may do what, and who
// must say yes.
var rulesOf = []string{"role", "protect", "deliver", "approvers", "branch", "ask_first", "trust_checkout", "analysis_only", "approval", "owner", "delegates_to", "writes", "sandbox"}

// Recorded are the settings as changes of them are recorded: without secrets, and without
// what is each node's own. A rule has the value in force, also where a variable gave it, but
// for those of which a variable may be a secret: a digest of what is written stands for them.
func (c *Config) Recorded() []event.Configured {
	var all []event.Configured
	listed := c.list()
	for _, v := range listed.all {
		if slices.Contains(ofTheNode, v.Key) {
			continue
		}
		s := event.Configured{Key: v.Key, Value: v.Value, Rule: isRule(v.Key)}
		if isContent(v.Key) && len(v.Env) > 0 {
			sum := sha256.Sum256([]byte(listed.written[v.Key]))
			s.Value, s.Sealed = "sha256:"+hex.EncodeToString(sum[:]), true
		}
		all = append(all, s)
	}
	return append(all, c.order()...)
}

// OtherRules returns what names the keys of the rules in which settings that were recorded
// are not those of c, in order.
func (c *Config) OtherRules() func(taken []event.Configured) []string { return c.other(isRule) }

// SameHandovers returns what tells whether they have the rules of c about hand-overs.
func (c *Config) SameHandovers() func(taken []event.Configured) bool {
	other := c.other(func(key string) bool {
		return strings.HasPrefix(key, "approval.handovers") || strings.HasPrefix(key, "agents.") && strings.HasSuffix(key, ".ask_first")
	})
	return func(taken []event.Configured) bool { return len(other(taken)) == 0 }
}

// SameActions returns what tells whether they have the rules of c about calls of tools.
func (c *Config) SameActions() func(taken []event.Configured) bool {
	other := c.other(func(key string) bool {
		return strings.HasPrefix(key, "approval.actions") || strings.HasPrefix(key, "agents.") && strings.HasSuffix(key, ".analysis_only")
	})
	return func(taken []event.Configured) bool { return len(other(taken)) == 0 }
}

// other returns what compares recorded settings with those of c under some keys.
func (c *Config) other(counts func(key string) bool) func(taken []event.Configured) []string {
	only := func(all []event.Configured) map[string]string {
		rules := map[string]string{}
		for _, s := range all {
			if counts(s.Key) {
				rules[s.Key] = s.Value
			}
		}
		return rules
	}
	mine := only(c.Recorded())
	return func(taken []event.Configured) []string {
		var differ []string
		theirs := only(taken)
		for key, value := range mine {
			if is, set := theirs[key]; !set || is != value {
				differ = append(differ, key)
			}
		}
		for key := range theirs {
			if _, set := mine[key]; !set {
				differ = append(differ, key)
			}
		}
		slices.Sort(differ)
		return byItem(differ)
	}
}

// byItem names an item of a list once where several of its keys differ. The keys are in order.
func byItem(keys []string) []string {
	item := func(key string) string { return key[:strings.IndexByte(key, ']')+1] }
	times := map[string]int{}
	for _, key := range keys {
		times[item(key)]++
	}
	named := make([]string, 0, len(keys))
	for _, key := range keys {
		if in := item(key); in != "" && times[in] > 1 {
			key = in
		}
		named = append(named, key)
	}
	return slices.Compact(named)
}

// LacksRule names what could not be put in at a rule, "" when all of them are known.
func (c *Config) LacksRule() string {
	for _, u := range c.Unset() {
		if isRule(u.Key) && !isHook(u.Key) && !isContent(u.Key) { // those are compared as they are written
			return u.Name
		}
	}
	return ""
}

// isRule says that a key is about who may do what, or who must say yes.
func isRule(key string) bool {
	section, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	return section == "approval" || section == "groups" || isHook(key) || isContent(key) || (section == "agents" || section == "repositories") && slices.Contains(rulesOf, last) ||
		strings.HasPrefix(key, "triggers[") && last == "owner" || key == "server.timezone" // rules see the hour
}

// isHook says that a key is of a program that stands around calls. Where it is may differ
// from node to node, and its arguments may have a secret, so it is told as it is written.
func isHook(key string) bool { return strings.HasPrefix(key, "hooks[") }

// isContent says that a key is of where a repository is, or of what is run on each change of
// it: both decide what a yes is to. Addresses and commands often have a secret in a variable,
// and a place may be another on each node, so they are told and compared as they are written.
func isContent(key string) bool {
	return strings.HasPrefix(key, "repositories.") && (strings.HasSuffix(key, ".path") || strings.HasSuffix(key, ".checks"))
}

// order is the order of each list of rules: the first that matches decides.
func (c *Config) order() []event.Configured {
	var all []event.Configured
	if c.doc == nil {
		return nil
	}
	for _, list := range []string{"rules", "handovers", "actions"} {
		n := c.doc.find("approval", list)
		if n == nil || n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			continue
		}
		names := make([]string, len(n.Content))
		for i, r := range n.Content {
			names[i] = called(r, i)
		}
		all = append(all, event.Configured{Key: "approval." + list, Value: strings.Join(names, ", "), Rule: true})
	}
	return all
}
