package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/store"
	"gatehouse/web/wire"
)

// TokenCmd is about API tokens.
type TokenCmd struct {
	Create TokenCreateCmd `cmd:"" help:"Make a token; it is printed once."`
	List   TokenListCmd   `cmd:"" help:"List tokens, newest first."`
	Revoke TokenRevokeCmd `cmd:"" help:"End a token at once."`
}

// TokenCreateCmd makes a token.
type TokenCreateCmd struct {
	User    string   `arg:"" help:"Whose rights it has, at most."`
	Scope   []string `required:"" sep:"," help:"A right, such as tasks:write; repeats." placeholder:"S"`
	Name    string   `help:"What it is for, in lists." placeholder:"LABEL"`
	Expires string   `help:"How long it works, with a unit; for ever without it." placeholder:"90d"`
}

// Run prints the token alone on stdout; nobody can read it again.
func (c *TokenCreateCmd) Run(ctx context.Context, sh *console.Shell) error {
	scopes, err := parsed(c.Scope, people.ParseScope)
	if err != nil {
		return err
	}
	v := people.Token{Name: c.Name, Scopes: scopes}
	if c.Expires != "" {
		life, err := sharedctx.ParseTTL(c.Expires)
		if err != nil {
			return console.Usage("--expires %s: write a time with a unit, such as 12h or 90d.", console.Line(c.Expires))
		}
		at := sh.Now().Add(life)
		v.ExpiresAt = &at
	}
	return withStore(ctx, sh, func(s *store.Store) error {
		u, err := userNamed(ctx, s, c.User)
		if err != nil {
			return err
		}
		secret, hash := signin.NewToken()
		v.UserID, v.Hash = u.ID, hash
		made, err := s.CreateToken(ctx, cliActor, v)
		if err != nil {
			return err
		}
		if without := people.As(u, v.Scopes).Scopes; len(without) < len(v.Scopes) && !sh.JSON {
			sh.Hint("%s", missingRights(u, v.Scopes, without))
		}
		return sh.Answer(map[string]string{"id": made.ID, "token": secret}, "%s", secret)
	})
}

// missingRights says which scopes do nothing because the person has no such right.
func missingRights(u people.User, asked, have []people.Scope) string {
	var idle []string
	for _, s := range asked {
		if !slices.Contains(have, s) {
			idle = append(idle, string(s))
		}
	}
	return console.Line(u.Name) + " is " + roles(u.Roles) + " and has no right to " + console.Joined(idle, "or") + "; the token has none either."
}

// TokenListCmd lists tokens.
type TokenListCmd struct{}

// Run prints id, owner, scopes and how long it works; never the token.
func (c *TokenListCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		all, err := s.Tokens(ctx, "")
		if err != nil {
			return err
		}
		const none = "There are no tokens. Make one: gatehouse token create USER --scope tasks:write"
		return console.List(sh, wire.ListOf(all, ""), all, none, func(v people.Token) []string {
			scopes := each.Of(v.Scopes, each.String)
			state := "works"
			switch {
			case v.RevokedAt != nil:
				state = "revoked"
			case v.ExpiresAt != nil && v.ExpiresAt.Before(sh.Now()):
				state = "expired"
			case v.ExpiresAt != nil:
				state = console.Expiry(v.ExpiresAt, sh.Now())
			}
			return []string{console.Line(v.ID), console.Line(v.UserName), state, console.Line(v.Name), strings.Join(scopes, " ")}
		})
	})
}

// TokenRevokeCmd ends a token.
type TokenRevokeCmd struct {
	ID string `arg:"" help:"The token's id, or its last 6 characters or more."`
}

// Run revokes it; once more is no error.
func (c *TokenRevokeCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		all, err := s.Tokens(ctx, "")
		if err != nil {
			return err
		}
		var fits []string
		ending := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(c.ID)), orchestrator.TokenPrefix)
		for _, v := range all {
			if len(ending) >= 6 && strings.HasSuffix(v.ID, ending) {
				fits = append(fits, v.ID)
			}
		}
		switch {
		case len(fits) == 0:
			return console.Fail(console.ExitNotFound, "No token has the id %q. List them: gatehouse token list", console.Line(c.ID))
		case len(fits) > 1:
			return console.Usage("The ending %s fits more than one: %s. Use a longer one.", console.Line(c.ID), strings.Join(fits, ", "))
		}
		if err := s.RevokeToken(ctx, cliActor, fits[0]); err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
		return sh.Answer(map[string]any{"id": fits[0], "revoked": true}, "%s revoked", fits[0])
	})
}
