package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
}

// asked are the places that ask groups, in the order of the file's keys.
func (c *Config) asked() []asking {
	var all []asking
	for i, r := range c.File.Approval.Rules {
		all = append(all, asking{fmt.Sprintf("rule %q", r.Name), r.From, []any{"approval", "rules", i, "from"}})
	}
	for i, r := range c.File.Approval.Handovers {
		all = append(all, asking{fmt.Sprintf("rule %q", r.Name), r.From, []any{"approval", "handovers", i, "from"}})
	}
	for i, e := range c.File.Approval.Escalate {
		all = append(all, asking{"this step of the escalation", e.To, []any{"approval", "escalate", i, "to"}})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Approvers)) {
		all = append(all, asking{"repository " + name, c.Approvers[name], []any{"repositories", name, "approvers"}})
	}
	return all
}

// Place puts where path is in the file in front of a message.
func (c *Config) Place(message string, path ...any) string {
	return c.doc.at(c.doc.find(path...), message).Error()
}
