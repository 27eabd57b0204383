package main

import (
	"context"
	"errors"
	"strconv"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
	"gatehouse/web/wire"

	"github.com/alecthomas/kong"
)

// LinkCmd is about accounts of channels that belong to people.
type LinkCmd struct {
	Telegram LinkAccountCmd `cmd:"" help:"Print a code that links a Telegram account, once, within 10 minutes."`
	List     LinkListCmd    `cmd:"" help:"List linked accounts."`
	Remove   LinkRemoveCmd  `cmd:"" help:"Take an account away from its person."`
}

// LinkAccountCmd makes a link code for the channel that the command is called after.
type LinkAccountCmd struct {
	User string `arg:"" help:"Whose account it will be."`
}

// Run prints the code alone on stdout.
func (c *LinkAccountCmd) Run(ctx context.Context, sh *console.Shell, called *kong.Context) error {
	channel := origin.Channel(called.Selected().Name)
	return withStore(ctx, sh, func(s *store.Store) error {
		u, err := userNamed(ctx, s, c.User)
		if err != nil {
			return err
		}
		if u.Disabled {
			return console.Fail(console.ExitNotAllowed, "%s is disabled, so no account can be linked. Let them in first: gatehouse user enable %s", console.Line(u.Name), console.Line(u.Name))
		}
		expires := sh.Now().Add(people.LinkCodeLife).UTC()
		code, err := s.CreateLinkCode(ctx, cliActor, channel, u.ID)
		if err != nil {
			return coded(err)
		}
		made := map[string]any{"code": code, "expires_at": expires}
		return sh.Then(sh.Answer(made, "%s", code), "  In %s send /start %s to the bot within 10 minutes",
			channel.Title(), code)
	})
}

// LinkListCmd lists accounts.
type LinkListCmd struct{}

// Run prints whose account it is, and how it was called when it was linked.
func (c *LinkListCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		users, err := s.Users(ctx)
		if err != nil {
			return err
		}
		var all []people.Account
		var rows [][]string
		for _, u := range users {
			for _, a := range u.Accounts {
				all = append(all, a)
				rows = append(rows, []string{console.Line(u.Name), console.Line(a.Channel), strconv.FormatInt(a.ID, 10), console.Line(a.Name)})
			}
		}
		return console.List(sh, wire.ListOf(all, ""), rows,
			"No account is linked. Link one: gatehouse link telegram USER", func(row []string) []string { return row })
	})
}

// LinkRemoveCmd unlinks an account.
type LinkRemoveCmd struct {
	Channel origin.Channel `arg:"" enum:"${bots}" help:"${bots}."`
	ID      int64          `arg:"" help:"The account's number, as the list shows it."`
}

// Run unlinks it; from then on it is a stranger's.
func (c *LinkRemoveCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		err := s.Unlink(ctx, cliActor, c.Channel, c.ID)
		switch {
		case errors.Is(err, orchestrator.ErrNotFound):
			return console.Fail(console.ExitNotFound, "No %s account %d is linked. List them: gatehouse link list", c.Channel, c.ID)
		case err != nil:
			return err
		}
		return sh.Answer(map[string]any{"channel": c.Channel, "id": c.ID, "removed": true},
			"The %s account %d is linked to nobody now", c.Channel, c.ID)
	})
}
