package handlers

import (
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// Right is what a route asks of its caller. Beside the scopes there are the rights
// that no token can be given.
type Right string

// The rights. A route that lists several is open to a caller with any of them.
const (
	Anyone   Right = "anyone"    // also without a credential
	SignedIn Right = "signed in" // any person
	ByRun    Right = "run"       // a running agent, by its run token
	// InBrowser is a person who signed in, and not a token of theirs: what changes passwords
	// and makes keys must not be done with a key that has fewer rights than its person.
	InBrowser      Right = "signed in, no token"
	AdminInBrowser Right = "admin, no token"

	TasksWrite         = Right(people.TasksWrite)
	DelegationsRead    = Right(people.DelegationsRead)
	DelegationsControl = Right(people.DelegationsControl)
	ApprovalsRead      = Right(people.ApprovalsRead)
	ApprovalsDecide    = Right(people.ApprovalsDecide)
	ContextRead        = Right(people.ContextRead)
	ContextWrite       = Right(people.ContextWrite)
	AuditRead          = Right(people.AuditRead)
	AuditHold          = Right(people.AuditHold)
	AdminOnly          = Right(people.AdminScope)
)

// RunScopes are the rights of a run token: its own task and the shared context.
func RunScopes() []people.Scope {
	return []people.Scope{people.DelegationsRead, people.ContextRead, people.ContextWrite}
}

// has reports whether the caller has one right.
func (w Caller) has(r Right) bool {
	switch r {
	case Anyone:
		return true
	case SignedIn:
		return w.Run == nil && w.User.ID != ""
	case ByRun:
		return w.Run != nil
	case InBrowser:
		return w.Session
	case AdminInBrowser:
		return w.Session && w.Has(people.AdminScope)
	default:
		return w.Has(people.Scope(r))
	}
}

// Require returns nil when the caller has one of the rights, else the refusal.
func (w Caller) Require(rights []Right) error {
	if slices.ContainsFunc(rights, w.has) {
		return nil
	}
	switch {
	case slices.Contains(rights, ByRun):
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Only a running agent may do this, with the token of its run.")
	case w.Run != nil:
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run token does not allow this. It is for delegating, its own task and the shared context.")
	case !w.Session && (slices.Contains(rights, InBrowser) || slices.Contains(rights, AdminInBrowser)):
		return orchestrator.Errorf(orchestrator.CodeForbidden, "No token allows this. Sign in with a browser, or use the command line on the server.")
	case slices.Contains(rights, AdminInBrowser):
		return orchestrator.Errorf(orchestrator.CodeForbidden, "This needs the role admin. Ask a person who has it.")
	case slices.Contains(rights, ApprovalsDecide) && !slices.Contains(w.User.Roles, people.Approver):
		return orchestrator.Errorf(orchestrator.CodeNotAnApprover, "Deciding needs the role approver. Ask a person who has it.")
	}
	if lacks, found := w.tokenLacks(rights); found {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "This token lacks the scope %s, which you have yourself. Make one with it: gatehouse token create %s --scope %s", lacks, w.User.Name, lacks)
	}
	return orchestrator.Errorf(orchestrator.CodeForbidden, "This needs the right %s, which your roles do not give. Ask an admin for a role that has it: %s.", rights[0], givenBy(rights[0]))
}

// tokenLacks finds the right that the person has and the token that is used has not.
func (w Caller) tokenLacks(rights []Right) (Right, bool) {
	for _, r := range rights {
		if w.User.ID != "" && people.As(w.User, nil).Has(people.Scope(r)) {
			return r, true
		}
	}
	return "", false
}

// givenBy names the roles that have a right.
func givenBy(r Right) string {
	var names []string
	for _, role := range []people.Role{people.Admin, people.Operator, people.Approver, people.Auditor} {
		if slices.Contains(role.Scopes(), people.Scope(r)) {
			names = append(names, string(role))
		}
	}
	return strings.Join(names, " or ")
}

// RequirePerson refuses a run: a run sees its own task only, and the pages show all.
func (w Caller) RequirePerson() error {
	if w.Run == nil {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeForbidden, "A run token opens no page; pages show everybody's tasks. Ask for its own task under /api/v1.")
}
