package config

import (
	"maps"
	"slices"
	"time"

	"gatehouse/approval"
)

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
