package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
)

// Nobody says, each with its place, whom the file names among those who may decide and who
// cannot: nobody has the name, or the person is disabled or may not approve. What asks only
// groups of such names would wait until it expires, so it is named, too.
func (c *Config) Nobody(users []people.User) []string {
	known := map[string]people.User{}
	var names []string
	for _, u := range users {
		known[u.Name] = u
		names = append(names, u.Name)
	}
	var all []string
	able := map[string]bool{}
	for _, group := range slices.Sorted(maps.Keys(c.Groups)) {
		for i, name := range c.Groups[group] {
			u, there := known[name]
			switch {
			case approval.Approves(u):
				able[group] = true
			case !there:
				all = append(all, c.Place(fmt.Sprintf("group %s names %s, and there is no such person, so nobody can say yes by that name.%s", group, name, whom(name, names)), "groups", group, i))
			case u.Disabled:
				all = append(all, c.Place(fmt.Sprintf("group %s names %s, who is disabled and cannot decide. Take %s out, or run gatehouse user enable %s.", group, name, name, name), "groups", group, i))
			default:
				all = append(all, c.Place(fmt.Sprintf("group %s names %s, who is no approver, so %s's yes does not count. Run gatehouse user roles %s --role approver with the other roles, or take %s out.", group, name, name, name, name), "groups", group, i))
			}
		}
	}
	for _, a := range c.asked() {
		if len(a.groups) > 0 && !slices.ContainsFunc(a.groups, func(g string) bool { return able[g] }) {
			all = append(all, c.Place(fmt.Sprintf("%s asks %s, in which nobody can approve now, so a request waits until it expires. Put an approver into a group that it asks.",
				a.what, strings.Join(a.groups, " and ")), a.path...))
		}
	}
	return append(all, c.tooFew(users)...)
}

// NeedsSeveral reports whether a rule asks for more than one yes.
func (c *Config) NeedsSeveral() bool {
	return slices.ContainsFunc(c.asked(), func(a asking) bool { return a.need > 1 })
}

// tooFew names the rules that ask for more yeses than there are people to give them.
func (c *Config) tooFew(users []people.User) []string {
	var all []string
	for _, a := range c.asked() {
		n := 0
		for _, u := range users {
			if approval.Approves(u) && (len(a.groups) == 0 || slices.ContainsFunc(a.groups, func(g string) bool { return slices.Contains(c.Groups[g], u.Name) })) {
				n++
			}
		}
		if a.need < 2 || a.need <= n || n == 0 && len(a.groups) > 0 { // of groups without anybody it is said already
			continue
		}
		people := "people"
		if n == 1 {
			people = "person"
		}
		all = append(all, c.Place(fmt.Sprintf("%s needs %d people to say yes, and %d %s can, so a request waits until it expires. Add an approver, or change the rule.",
			a.what, a.need, n, people), append(slices.Clone(a.path[:len(a.path)-1]), "need")...))
	}
	return all
}

// whom says what to do about a name that nobody has.
func whom(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	return fmt.Sprintf(" Run gatehouse user add %s --role approver, or take it out.", name)
}

// asking is one place that asks groups.
type asking struct {
	what   string
	groups []string
	path   []any
	need   int // yeses; 0 where that is not said
}

// asked are the places that ask groups, in the order of the file's keys.
func (c *Config) asked() []asking {
	var all []asking
	for i, r := range c.File.Approval.Rules {
		all = append(all, asking{fmt.Sprintf("rule %q", r.Name), r.From, []any{"approval", "rules", i, "from"}, needOf(r.Need)})
	}
	for i, r := range c.File.Approval.Handovers {
		all = append(all, asking{fmt.Sprintf("rule %q", r.Name), r.From, []any{"approval", "handovers", i, "from"}, needOf(r.Need)})
	}
	for i, r := range c.File.Approval.Actions {
		all = append(all, asking{fmt.Sprintf("rule %q", r.Name), r.From, []any{"approval", "actions", i, "from"}, needOf(r.Need)})
	}
	for i, e := range c.File.Approval.Escalate {
		all = append(all, asking{"this step of the escalation", e.To, []any{"approval", "escalate", i, "to"}, 0})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Approvers)) {
		all = append(all, asking{"repository " + name, c.Approvers[name], []any{"repositories", name, "approvers"}, 0})
	}
	return all
}

func needOf(n *int) int {
	if n == nil {
		return 1
	}
	return *n
}

// Place puts where path is in the file in front of a message.
func (c *Config) Place(message string, path ...any) string {
	return c.doc.at(c.doc.find(path...), message).Error()
}

// remind reads how long before the deadline people are reminded, longest first.
func (b *builder) remind() []time.Duration {
	var all []time.Duration
	for i, text := range b.file.Approval.Remind {
		if d := b.duration(at("approval", "remind", i), text, 0); d > 0 {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(x, y time.Duration) int { return int(y - x) })
	return slices.Compact(all)
}

// escalate reads who may decide, too, when nobody has.
func (b *builder) escalate() []approval.Step {
	var steps []approval.Step
	for i, e := range b.file.Approval.Escalate {
		where := at("approval", "escalate", i)
		s := approval.Step{After: b.duration(append(where, "after"), e.After, 0), To: e.To}
		switch {
		case e.After == "":
			b.bad(where, "this step of the escalation has no after. Write after: with a length of time, such as 4h.")
		case len(e.To) == 0:
			b.bad(where, "this step of the escalation names nobody. Write to: with at least one group.")
		case len(steps) > 0 && s.After <= steps[len(steps)-1].After:
			b.bad(append(where, "after"), "after: %s is not later than the step before. Order the steps by time.", e.After)
		}
		b.inGroups(append(where, "to"), e.To)
		steps = append(steps, s)
	}
	return steps
}

// approvers reads whose yes counts in each repository.
func (b *builder) approvers() map[string][]string {
	all := map[string][]string{}
	for name, r := range b.file.Repositories {
		if len(r.Approvers) == 0 {
			continue
		}
		b.inGroups(at("repositories", name, "approvers"), r.Approvers)
		all[name] = r.Approvers
	}
	return all
}

// inGroups checks that groups exist and that somebody is in them: nobody could
// approve otherwise.
func (b *builder) inGroups(path []any, groups []string) {
	names := slices.Collect(maps.Keys(b.file.Groups))
	for i, g := range groups {
		switch members, ok := b.file.Groups[g]; {
		case !ok:
			hint := " Add it under groups."
			if near := Nearest(g, names); near != "" {
				hint = " Did you mean \"" + near + "\"?"
			}
			b.bad(append(slices.Clone(path), i), "there is no group %q.%s", g, hint)
		case len(members) == 0:
			b.bad(append(slices.Clone(path), i), "group %q has nobody in it, so nobody could approve. Add a person to it.", g)
		}
	}
}
