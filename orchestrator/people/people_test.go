package people

import (
	"slices"
	"testing"
)

// The contract: a token's rights are its scopes ∩ its user's roles; an admin has all
// but deciding unless also approver.
func TestRightsFollowRolesAndScopes(t *testing.T) {
	cases := []struct {
		name  string
		roles []Role
		only  []Scope
		has   []Scope
		lacks []Scope
	}{
		{"admin alone does not decide", []Role{Admin}, nil, []Scope{AdminScope, TasksWrite, AuditRead}, []Scope{ApprovalsDecide}},
		{"admin and approver", []Role{Admin, Approver}, nil, []Scope{AdminScope, ApprovalsDecide}, nil},
		{"operator", []Role{Operator}, nil, []Scope{TasksWrite, DelegationsControl, ContextWrite}, []Scope{ApprovalsDecide, ApprovalsRead, AuditRead, AdminScope}},
		{"approver", []Role{Approver}, nil, []Scope{ApprovalsRead, ApprovalsDecide, DelegationsRead}, []Scope{TasksWrite, ContextRead}},
		{"auditor reads all", []Role{Auditor}, nil, []Scope{DelegationsRead, ApprovalsRead, ContextRead, AuditRead}, []Scope{ContextWrite, TasksWrite, ApprovalsDecide}},
		{"a token cuts down", []Role{Admin, Approver}, []Scope{DelegationsRead}, []Scope{DelegationsRead}, []Scope{AdminScope, ApprovalsDecide}},
		{"a token gives nothing that the roles lack", []Role{Auditor}, []Scope{TasksWrite, AuditRead}, []Scope{AuditRead}, []Scope{TasksWrite}},
		{"a token without scopes", []Role{Admin}, []Scope{}, nil, Scopes()},
		{"nobody", nil, nil, nil, Scopes()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := As(User{Name: "ann", Roles: c.roles}, c.only)
			for _, s := range c.has {
				if !p.Has(s) {
					t.Errorf("lacks %s", s)
				}
			}
			for _, s := range c.lacks {
				if p.Has(s) {
					t.Errorf("has %s", s)
				}
			}
		})
	}
}

func TestNamesOfPeopleAreOneWord(t *testing.T) {
	for _, good := range []string{"ann", "Zoë", "ann.b", "a-1", "ann@example.com"} {
		if err := CheckUserName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	long := string(slices.Repeat([]byte("a"), 65))
	for _, bad := range []string{"", " ann", "ann b", "-ann", "ann\n", "a\u202eb", "rule:docs", long} {
		if CheckUserName(bad) == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestRolesAndScopesAreRead(t *testing.T) {
	for _, r := range Roles() {
		if got, err := ParseRole(string(r)); err != nil || got != r {
			t.Errorf("%s: %v", r, err)
		}
	}
	for _, s := range Scopes() {
		if got, err := ParseScope(string(s)); err != nil || got != s {
			t.Errorf("%s: %v", s, err)
		}
	}
	if _, err := ParseRole("boss"); err == nil {
		t.Error("boss is no role")
	}
	if _, err := ParseScope("tasks:*"); err == nil {
		t.Error("tasks:* is no scope")
	}
}
