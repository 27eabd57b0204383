package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/passive"
	"gatehouse/approval/telegram"
	"gatehouse/approval/webhook"
	"gatehouse/cmd/gatehouse/internal/config"
)

// bot is the Telegram of this node: it shows requests and takes what people do there.
type bot struct {
	client   *telegram.Client
	channel  *telegram.Channel
	receiver *telegram.Receiver
}

// connect makes the channels of the configuration, once it is certain how people reach
// this server, and lets the gateway show requests in them.
func (h *house) connect() error {
	if t := h.cfg.Telegram; t != nil {
		var err error
		if h.bot, err = h.newBot(*t); err != nil {
			return err
		}
	}
	return h.rewire(h.cfg)
}

// rewire gives the gateway a configuration with its channels.
func (h *house) rewire(c *config.Config) error {
	channels := []approval.Channel{passive.Inbox, passive.Chat}
	if h.bot != nil {
		if c.Telegram != nil {
			h.bot.channel.SetSettings(botSettings(c))
		}
		channels = append(channels, h.bot.channel)
	}
	if len(c.Webhooks) > 0 {
		var targets []webhook.Target
		for _, w := range c.Webhooks {
			targets = append(targets, w.Target())
		}
		told, err := webhook.New(webhook.Options{Targets: targets, PublicURL: c.PublicURL, Log: h.log})
		if err != nil {
			return err
		}
		channels = append(channels, told)
	}
	g := gatewayConfig(c)
	g.Channels = channels
	h.gateway.SetConfig(g)
	return nil
}

func botSettings(c *config.Config) telegram.Settings {
	return telegram.Settings{Chats: c.TelegramChats, PublicURL: c.PublicURL, Zone: c.Location}
}

// newBot makes the bot. It asks Telegram nothing yet.
func (h *house) newBot(t config.Telegram) (*bot, error) {
	client, err := telegram.New(telegram.ClientOptions{Token: t.Token, APIURL: t.APIURL, Log: h.log})
	if err != nil {
		return nil, err
	}
	b := &bot{client: client}
	b.channel = telegram.NewChannel(telegram.ChannelOptions{Sender: client, Buttons: h.store, Accounts: h.store, Diff: h.diff, Log: h.log}, botSettings(h.cfg))
	desk := telegram.NewDesk(telegram.DeskOptions{Channel: b.channel, Bot: client.Me, Gateway: h.gateway, Engine: h.engine, Reader: h.store,
		Accounts: h.store, Linker: h.store, Memory: h.store, Log: h.log})
	b.receiver, err = telegram.NewReceiver(telegram.ReceiverOptions{Client: client, Inbox: h.store, Handle: desk.Handle, Drop: desk.Drop, Mode: t.Mode,
		PublicURL: h.cfg.PublicURL, Secret: t.WebhookSecret, Node: h.node, Log: h.log, Health: h.healthOf(telegram.Name)})
	return b, err
}

// healthOf keeps what a channel tells of its other side, for pages and doctor.
func (h *house) healthOf(channel string) func(ctx context.Context, state, detail string) {
	return func(ctx context.Context, state, detail string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := h.store.SetHealth(ctx, channel, state, detail); err != nil {
			h.log.Warn("the state of a channel was not kept", "channel", channel, "state", state, "err", err)
		}
	}
}

// runBot receives from Telegram until ctx ends.
func (h *house) runBot(ctx context.Context) error {
	if h.bot == nil {
		return nil
	}
	err := h.bot.receiver.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// telegramHook takes what Telegram posts; nil where the bot asks for it itself.
func (h *house) telegramHook() http.Handler {
	if h.bot == nil || h.cfg.Telegram.Mode != telegram.Webhook {
		return nil
	}
	return h.bot.receiver
}
