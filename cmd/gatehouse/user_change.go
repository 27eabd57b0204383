package main

import (
	"context"
	"slices"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
)

// UserRolesCmd replaces a person's roles.
type UserRolesCmd struct {
	Name string   `arg:"" help:"Whose roles."`
	Role []string `required:"" sep:"," help:"admin, operator, approver or auditor; repeats. What is not named is taken away." placeholder:"R"`
}

// Run prints the roles that the person has then.
func (c *UserRolesCmd) Run(ctx context.Context, sh *console.Shell) error {
	given, err := parseRoles(c.Role)
	if err != nil {
		return err
	}
	return changeUser(ctx, sh, c.Name, change{
		admits: slices.Contains(given, people.Admin),
		make:   func(s *store.Store, u people.User) error { return s.SetRoles(ctx, cliActor, u.ID, given) },
		said:   func(u people.User) string { return "is " + roles(u.Roles) + " now" },
	})
}

// UserDisableCmd bars a person.
type UserDisableCmd struct {
	Name string `arg:"" help:"Who may not get in any more."`
}

// Run ends the person's sessions and revokes their tokens, for good.
func (c *UserDisableCmd) Run(ctx context.Context, sh *console.Shell) error {
	return changeUser(ctx, sh, c.Name, change{
		make: func(s *store.Store, u people.User) error { return s.SetDisabled(ctx, cliActor, u.ID, true) },
		said: func(people.User) string { return "is disabled: signed out, and no token of theirs works any more" },
	})
}

// UserEnableCmd lets a person in again.
type UserEnableCmd struct {
	Name string `arg:"" help:"Who may get in again."`
}

// Run lets the person in; they sign in anew and make new tokens.
func (c *UserEnableCmd) Run(ctx context.Context, sh *console.Shell) error {
	return changeUser(ctx, sh, c.Name, change{
		admits: true,
		make:   func(s *store.Store, u people.User) error { return s.SetDisabled(ctx, cliActor, u.ID, false) },
		said: func(u people.User) string {
			return "is enabled, as " + roles(u.Roles) + "; no session or token of before works. Make a new token: gatehouse token create " + console.Line(u.Name)
		},
	})
}

// change is one change of a person.
type change struct {
	admits bool // an admin is one afterwards, too
	make   func(*store.Store, people.User) error
	said   func(people.User) string
}

// changeUser makes the change unless it would leave nobody who may do everything.
func changeUser(ctx context.Context, sh *console.Shell, name string, c change) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		u, err := userNamed(ctx, s, name)
		if err != nil {
			return err
		}
		if !c.admits {
			all, err := s.Users(ctx)
			if err != nil {
				return err
			}
			if lastAdmin(u, all) {
				return console.Fail(console.ExitNotAllowed, "%s is the only admin, so nothing was changed. Make another one first: gatehouse user roles NAME --role admin", console.Line(u.Name))
			}
		}
		if err := coded(c.make(s, u)); err != nil {
			return err
		}
		after, err := s.User(ctx, u.ID)
		switch {
		case err != nil:
			return err
		case sh.JSON:
			return sh.Document(after)
		}
		return sh.Say("%s %s", console.Line(after.Name), c.said(after))
	})
}

// lastAdmin says that u is an admin and nobody else is one who gets in.
func lastAdmin(u people.User, all []people.User) bool {
	admin := func(o people.User) bool { return !o.Disabled && slices.Contains(o.Roles, people.Admin) }
	return admin(u) && !slices.ContainsFunc(all, func(o people.User) bool { return o.ID != u.ID && admin(o) })
}
