package main

import (
	"context"
	"errors"
	"strconv"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
)

// LinkCmd is about accounts of channels that belong to people.
type LinkCmd struct {
	Telegram LinkTelegramCmd `cmd:"" help:"Print a code that links a Telegram account, once, within 10 minutes."`
	List     LinkListCmd     `cmd:"" help:"List linked accounts."`
	Remove   LinkRemoveCmd   `cmd:"" help:"Take an account away from its person."`
}

// telegramName is what accounts, cards and decisions call the channel.
const telegramName = "telegram"

// LinkTelegramCmd makes a link code.
type LinkTelegramCmd struct {
	User string `arg:"" help:"Whose account it will be."`
}

// Run prints the code alone on stdout.
func (c *LinkTelegramCmd) Run(ctx context.Context, sh *shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		u, err := userNamed(ctx, s, c.User)
		if err != nil {
			return err
		}
		if u.Disabled {
			return fail(exitNotAllowed, "%s is disabled, so no account can be linked. Let them in first: gatehouse user enable %s", line(u.Name), line(u.Name))
		}
		expires := sh.now().Add(people.LinkCodeLife).UTC()
		code, err := s.CreateLinkCode(ctx, cliActor, telegramName, u.ID)
		if err != nil {
			return coded(err)
		}
		if sh.JSON {
			return sh.document(map[string]any{"code": code, "expires_at": expires})
		}
		if err := sh.say("%s", code); err != nil {
			return err
		}
		sh.hint("  In Telegram send /start %s to the bot within 10 minutes", code)
		return nil
	})
}

// LinkListCmd lists accounts.
type LinkListCmd struct{}

// Run prints whose account it is, and how it was called when it was linked.
func (c *LinkListCmd) Run(ctx context.Context, sh *shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		users, err := s.Users(ctx)
		if err != nil {
			return err
		}
		all := []people.Account{}
		var rows [][]string
		for _, u := range users {
			for _, a := range u.Accounts {
				all = append(all, a)
				rows = append(rows, []string{line(u.Name), line(a.Channel), strconv.FormatInt(a.ID, 10), line(a.Name)})
			}
		}
		if sh.JSON {
			return sh.document(map[string]any{"items": all, "next": nil})
		}
		if len(all) == 0 {
			sh.hint("No account is linked. Link one: gatehouse link telegram USER")
			return nil
		}
		return table(sh.out, rows)
	})
}

// LinkRemoveCmd unlinks an account.
type LinkRemoveCmd struct {
	Channel origin.Channel `arg:"" enum:"telegram" help:"telegram."`
	ID      int64          `arg:"" help:"The account's number, as the list shows it."`
}

// Run unlinks it; from then on it is a stranger's.
func (c *LinkRemoveCmd) Run(ctx context.Context, sh *shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		err := s.Unlink(ctx, cliActor, c.Channel, c.ID)
		switch {
		case errors.Is(err, orchestrator.ErrNotFound):
			return fail(exitNotFound, "No %s account %d is linked. List them: gatehouse link list", c.Channel, c.ID)
		case err != nil:
			return err
		case sh.JSON:
			return sh.document(map[string]any{"channel": c.Channel, "id": c.ID, "removed": true})
		}
		return sh.say("The %s account %d is linked to nobody now", c.Channel, c.ID)
	})
}
