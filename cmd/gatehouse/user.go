package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
	"gatehouse/web/wire"
)

// UserCmd is about people.
type UserCmd struct {
	Add     UserAddCmd     `cmd:"" help:"Add a person."`
	List    UserListCmd    `cmd:"" help:"List everybody."`
	Roles   UserRolesCmd   `cmd:"" help:"Give a person other roles."`
	Disable UserDisableCmd `cmd:"" help:"Keep a person out; the history keeps them."`
	Enable  UserEnableCmd  `cmd:"" help:"Let a person in again."`
	Away    AwayCmd        `cmd:"" help:"Say that a person is out of office and who decides for them, or that they are back."`
	Signin  UserSigninCmd  `cmd:"" name:"signin-link" help:"Print a link that signs a person in, once, within 10 minutes."`
}

// UserAddCmd adds a person.
type UserAddCmd struct {
	Name          string   `arg:"" help:"What events, commits and pages call them."`
	Role          []string `required:"" sep:"," help:"admin, operator, approver or auditor; repeats." placeholder:"R"`
	PasswordStdin bool     `help:"Read a password from standard input; without one they sign in by link."`
}

// Run adds the person and prints how they get in.
func (c *UserAddCmd) Run(ctx context.Context, sh *console.Shell) error {
	if err := people.CheckUserName(c.Name); err != nil {
		return console.Mistake(err)
	}
	given, err := parsed(c.Role, people.ParseRole)
	if err != nil {
		return err
	}
	u := people.User{Name: c.Name, Roles: given}
	if c.PasswordStdin {
		hash, err := readPassword(sh)
		if err != nil {
			return err
		}
		u.PasswordHash = hash
	}
	return withStore(ctx, sh, func(s *store.Store) error {
		made, err := s.CreateUser(ctx, cliActor, u)
		switch {
		case errors.Is(err, orchestrator.ErrExists):
			return console.Usage("There is a user %s already. Choose another name, or list them: gatehouse user list", console.Line(c.Name))
		case err != nil:
			return coded(err)
		}
		name := console.Line(made.Name)
		return sh.Then(sh.Answer(made, "%s added as %s", name, roles(made.Roles)),
			"  sign in: gatehouse user signin-link %s", name)
	})
}

// parsed reads roles or scopes, each once.
func parsed[T comparable](texts []string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	for _, text := range texts {
		one, err := parse(text)
		if err != nil {
			return nil, console.Mistake(err)
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// readPassword reads one line from standard input and hashes it.
func readPassword(sh *console.Shell) (string, error) {
	text, err := bufio.NewReader(io.LimitReader(sh.In, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	hash, err := signin.HashPassword(strings.TrimRight(text, "\r\n"))
	if err != nil {
		return "", console.Usage("The password on standard input cannot be taken: %s.", console.Line(err.Error()))
	}
	return hash, nil
}

func roles(all []people.Role) string {
	return console.Joined(each.Of(all, each.String), "and")
}

// UserListCmd lists everybody.
type UserListCmd struct{}

// Run prints name, roles and since when.
func (c *UserListCmd) Run(ctx context.Context, sh *console.Shell) error {
	cfg, err := partOf(sh, "server.timezone")
	if err != nil {
		return err
	}
	zone := cmp.Or(cfg.Location, time.UTC)
	return withStore(ctx, sh, func(s *store.Store) error {
		all, err := s.Users(ctx)
		if err != nil {
			return err
		}
		names, now := map[string]string{}, sh.Now()
		for _, u := range all {
			names[u.ID] = console.Line(u.Name)
		}
		const none = "There are no users yet. Make the first one: gatehouse user add NAME --role admin --role approver"
		return console.List(sh, wire.ListOf(all, ""), all, none, func(u people.User) []string {
			barred, way := "", "by link"
			if u.Disabled {
				barred = "disabled"
			}
			if u.PasswordHash != "" {
				way = "by password or link"
			}
			return []string{console.Line(u.Name), console.Line(u.ID), roles(u.Roles), console.Parts(way, barred, absence(u, names, now, zone))}
		})
	})
}

// UserSigninCmd makes a one-time link.
type UserSigninCmd struct {
	Name string `arg:"" help:"Who signs in with it."`
}

// linkLife is how long a sign-in link works (contract), signinPath the page that it
// leads to.
const (
	linkLife   = 10 * time.Minute
	signinPath = "/login/link?code="
)

// Run prints the link alone on stdout.
func (c *UserSigninCmd) Run(ctx context.Context, sh *console.Shell) error {
	cfg, err := partOf(sh, "server", "data")
	if err != nil {
		return err
	}
	return withStore(ctx, sh, func(s *store.Store) error {
		u, err := userNamed(ctx, s, c.Name)
		if err != nil {
			return err
		}
		if u.Disabled {
			return console.Fail(console.ExitNotAllowed, "%s is disabled and cannot sign in.", console.Line(u.Name))
		}
		code, err := signinCode(ctx, s, u)
		if err != nil {
			return err
		}
		link := site(ctx, cfg) + signinPath + url.QueryEscape(code)
		made := map[string]any{"url": link, "user": u.Name, "expires_at": sh.Now().Add(linkLife).UTC()}
		return sh.Then(sh.Answer(made, "%s", link), "  for %s; works once, for 10 minutes", console.Line(u.Name))
	})
}

// linkKeeper keeps one-time links; the store does.
type linkKeeper interface {
	CreateSigninLink(ctx context.Context, actor string, l people.SigninLink) error
}

// signinCode makes the code of a one-time link; the store gets only its hash.
func signinCode(ctx context.Context, s linkKeeper, u people.User) (string, error) {
	code, hash := signin.NewLinkCode()
	l := people.SigninLink{Hash: hash, UserID: u.ID, ExpiresAt: time.Now().Add(linkLife)}
	return code, s.CreateSigninLink(ctx, cliActor, l)
}

// userNamed finds a person, or says who there is.
func userNamed(ctx context.Context, s *store.Store, name string) (people.User, error) {
	u, err := s.UserByName(ctx, name)
	if !errors.Is(err, orchestrator.ErrNotFound) {
		return u, err
	}
	all, err := s.Users(ctx)
	if err != nil {
		return u, err
	}
	if len(all) == 0 {
		return u, console.Fail(console.ExitNotFound, "There is no user %q; there are none at all. Make one: gatehouse user add NAME --role admin --role approver", console.Line(name))
	}
	if near := console.Meant(name, each.Of(all, func(u people.User) string { return u.Name })); near != "" {
		return u, console.Fail(console.ExitNotFound, "There is no user %q. Did you mean %s?", console.Line(name), console.Line(near))
	}
	return u, console.Fail(console.ExitNotFound, "There is no user %q. List them: gatehouse user list", console.Line(name))
}

// UserRolesCmd replaces a person's roles.
type UserRolesCmd struct {
	Name string   `arg:"" help:"Whose roles."`
	Role []string `required:"" sep:"," help:"admin, operator, approver or auditor; repeats. What is not named is taken away." placeholder:"R"`
}

// Run prints the roles that the person has then.
func (c *UserRolesCmd) Run(ctx context.Context, sh *console.Shell) error {
	given, err := parsed(c.Role, people.ParseRole)
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
		if err != nil {
			return err
		}
		return sh.Answer(after, "%s %s", console.Line(after.Name), c.said(after))
	})
}

// lastAdmin says that u is an admin and nobody else is one who gets in.
func lastAdmin(u people.User, all []people.User) bool {
	admin := func(o people.User) bool { return !o.Disabled && slices.Contains(o.Roles, people.Admin) }
	return admin(u) && !slices.ContainsFunc(all, func(o people.User) bool { return o.ID != u.ID && admin(o) })
}
