package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
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
func (c *UserAddCmd) Run(ctx context.Context, sh *shell) error {
	if err := people.CheckUserName(c.Name); err != nil {
		return mistake(err)
	}
	given, err := parseRoles(c.Role)
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
			return usage("There is a user %s already. Choose another name, or list them: gatehouse user list", line(c.Name))
		case err != nil:
			return coded(err)
		case sh.JSON:
			return sh.document(made)
		}
		if err := sh.say("%s added as %s", line(made.Name), roles(made.Roles)); err != nil {
			return err
		}
		sh.hint("  sign in: gatehouse user signin-link %s", line(made.Name))
		return nil
	})
}

// parseRoles reads roles, each once.
func parseRoles(texts []string) ([]people.Role, error) {
	var all []people.Role
	for _, text := range texts {
		role, err := people.ParseRole(text)
		if err != nil {
			return nil, mistake(err)
		}
		if !slices.Contains(all, role) {
			all = append(all, role)
		}
	}
	return all, nil
}

// readPassword reads one line from standard input and hashes it.
func readPassword(sh *shell) (string, error) {
	text, err := bufio.NewReader(io.LimitReader(sh.in, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	hash, err := signin.HashPassword(strings.TrimRight(text, "\r\n"))
	if err != nil {
		return "", usage("The password on standard input cannot be taken: %s.", line(err.Error()))
	}
	return hash, nil
}

func roles(all []people.Role) string {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = string(r)
	}
	return joined(names, "and")
}

// UserListCmd lists everybody.
type UserListCmd struct{}

// Run prints name, roles and since when.
func (c *UserListCmd) Run(ctx context.Context, sh *shell) error {
	cfg, err := sh.part("server.timezone")
	if err != nil {
		return err
	}
	zone := cfg.Location
	if zone == nil {
		zone = time.UTC
	}
	return withStore(ctx, sh, func(s *store.Store) error {
		all, err := s.Users(ctx)
		if err != nil {
			return err
		}
		if sh.JSON {
			return sh.document(map[string]any{"items": append([]people.User{}, all...), "next": nil})
		}
		if len(all) == 0 {
			sh.hint("There are no users yet. Make the first one: gatehouse user add NAME --role admin --role approver")
			return nil
		}
		names, now := map[string]string{}, sh.now()
		for _, u := range all {
			names[u.ID] = line(u.Name)
		}
		rows := make([][]string, len(all))
		for i, u := range all {
			barred, way := "", "by link"
			if u.Disabled {
				barred = "disabled"
			}
			if u.PasswordHash != "" {
				way = "by password or link"
			}
			rows[i] = []string{line(u.Name), line(u.ID), roles(u.Roles), parts(way, barred, absence(u, names, now, zone))}
		}
		return table(sh.out, rows)
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
func (c *UserSigninCmd) Run(ctx context.Context, sh *shell) error {
	cfg, err := sh.part("server", "data")
	if err != nil {
		return err
	}
	return withStore(ctx, sh, func(s *store.Store) error {
		u, err := userNamed(ctx, s, c.Name)
		if err != nil {
			return err
		}
		if u.Disabled {
			return fail(exitNotAllowed, "%s is disabled and cannot sign in.", line(u.Name))
		}
		code, err := signinCode(ctx, s, u)
		if err != nil {
			return err
		}
		link := site(ctx, cfg) + signinPath + url.QueryEscape(code)
		if sh.JSON {
			return sh.document(map[string]any{"url": link, "user": u.Name, "expires_at": sh.now().Add(linkLife).UTC()})
		}
		if err := sh.say("%s", link); err != nil {
			return err
		}
		sh.hint("  for %s; works once, for 10 minutes", line(u.Name))
		return nil
	})
}

// signinCode makes the code of a one-time link; the store gets only its hash.
func signinCode(ctx context.Context, s *store.Store, u people.User) (string, error) {
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
		return u, fail(exitNotFound, "There is no user %q; there are none at all. Make one: gatehouse user add NAME --role admin --role approver", line(name))
	}
	names := make([]string, len(all))
	for i, other := range all {
		names[i] = other.Name
	}
	if near := meant(name, names); near != "" {
		return u, fail(exitNotFound, "There is no user %q. Did you mean %s?", line(name), line(near))
	}
	return u, fail(exitNotFound, "There is no user %q. List them: gatehouse user list", line(name))
}
