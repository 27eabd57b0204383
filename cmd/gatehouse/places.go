package main

import (
	"context"
	"errors"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/handlers"
	"gatehouse/orchestrator/people"
)

// meTime is how long the settings page waits for the bot to say its name.
const meTime = 5 * time.Second

// places are the channels in force, as the settings show them.
func (h *house) places() []handlers.Place {
	var all []handlers.Place
	for _, ch := range h.gateway.Config().Channels {
		p := handlers.Place{Name: string(ch.Name())}
		if h.bot != nil && p.Name == telegram.Name {
			p.Bot, p.Test = h.bot.name, h.bot.test
		}
		all = append(all, p)
	}
	return all
}

// name is what the bot is called, "" where Telegram does not say.
func (b *bot) name(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, meTime)
	defer cancel()
	me, err := b.client.Me(ctx)
	if err != nil {
		return ""
	}
	return me.Username
}

// test sends a test card to every chat of the configuration or, without any, to the
// accounts of whoever asks.
func (b *bot) test(ctx context.Context, mine []people.Account) error {
	to := b.channel.Addresses(approval.Request{}, []people.User{{Accounts: mine}})
	if len(to) == 0 {
		return errors.New("no chats are configured and your account is not linked, so there is nowhere to send it. Press Link me first")
	}
	for _, address := range to {
		place, err := telegram.ParsePlace(address)
		if err != nil {
			return err
		}
		if _, err := b.channel.Test(ctx, place); err != nil {
			return err
		}
	}
	return nil
}
