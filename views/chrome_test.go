package views

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/people"
)

// Each role finds the links that it can use, and no other; an auditor finds Audit at once.
func TestTheBarHasWhatARoleCanUse(t *testing.T) {
	names := func(items []navItem) string {
		var all []string
		for _, n := range items {
			all = append(all, n.Text)
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		roles     []people.Role
		bar, more string
	}{
		{[]people.Role{people.Operator, people.Approver}, "Overview Approvals Delegations Chat", "Agents Context Insights Triggers Settings"},
		{[]people.Role{people.Approver}, "Overview Approvals Delegations Chat", "Agents Insights Triggers Settings"},
		{[]people.Role{people.Operator}, "Overview Delegations Chat", "Agents Context Insights Triggers Settings"},
		{[]people.Role{people.Auditor}, "Overview Approvals Delegations Audit", "Agents Context Insights Triggers Settings"},
		{[]people.Role{people.Admin}, "Overview Approvals Delegations Chat", "Agents Context Insights Triggers Audit Settings"},
	} {
		bar, more := Chrome{Person: signedIn(c.roles...)}.nav()
		if names(bar) != c.bar || names(more) != c.more {
			t.Errorf("%v: %q and %q", c.roles, names(bar), names(more))
		}
	}
	if bar, more := (Chrome{}).nav(); bar != nil || more != nil {
		t.Error("somebody who is signed out has links")
	}
}

func signedIn(roles ...people.Role) *Person {
	p := &Person{Name: "ann"}
	for _, s := range people.As(people.User{Roles: roles}, nil).Scopes {
		p.Rights = append(p.Rights, string(s))
	}
	for _, r := range roles {
		p.Roles = append(p.Roles, string(r))
	}
	return p
}

func TestNoTwoPlacesHaveOneKey(t *testing.T) {
	keys := map[string]bool{}
	for _, n := range navItems {
		if n.Key != "" && keys[n.Key] {
			t.Errorf("two places for g %s", n.Key)
		}
		keys[n.Key] = true
	}
	if !slices.ContainsFunc(keyMap, func(k [2]string) bool { return k[0] == "g u" }) {
		t.Error("? does not tell of g u")
	}
}
