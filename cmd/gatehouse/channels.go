package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/bot"
	"gatehouse/approval/passive"
	"gatehouse/approval/webhook"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/handlers"
	"gatehouse/orchestrator/origin"

	"golang.org/x/sync/errgroup"
)

// connect makes the bots of the configuration, once it is certain how people reach
// this server, and lets the gateway show requests in them.
func (h *house) connect() error {
	for _, key := range slices.Sorted(maps.Keys(h.cfg.Bots)) {
		b, err := h.cfg.Bots[key].Start(bot.Parts{Server: serverOfBots(h.cfg), Gateway: h.gateway, Engine: h.engine, Store: h.store, Diff: h.diff,
			Health: h.healthOf(key), Node: h.node, Log: h.log})
		if err != nil {
			return err
		}
		h.bots = append(h.bots, bot.Running{Bot: b, Key: key})
	}
	return h.rewire(h.cfg)
}

// serverOfBots is what bots tell of this server.
func serverOfBots(c *config.Config) bot.Server {
	return bot.Server{PublicURL: c.PublicURL, Zone: c.Location}
}

// rewire gives the gateway a configuration with its channels.
func (h *house) rewire(c *config.Config) error {
	channels := []approval.Channel{passive.Inbox, passive.Chat}
	for _, b := range h.bots {
		if section := c.Bots[b.Key]; section != nil {
			b.Take(section, serverOfBots(c))
		}
		channels = append(channels, b.Channel())
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

// sayUntaken says which bots run with other settings than the next configuration has.
func (h *house) sayUntaken(next *config.Config) {
	for _, name := range config.BotNames() {
		if key := origin.Channel(name); !bot.SameAtStart(h.cfg.Bots[key], next.Bots[key]) {
			h.log.Warn("the bot of channels." + name + " is read only at the start; restart to change it")
		}
	}
}

// healthOf keeps what a channel tells of its other side, for pages and doctor.
func (h *house) healthOf(channel origin.Channel) func(ctx context.Context, state, detail string) {
	return func(ctx context.Context, state, detail string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := h.store.SetHealth(ctx, channel, state, detail); err != nil {
			h.log.Warn("the state of a channel was not kept", "channel", channel, "state", state, "err", err)
		}
	}
}

// runBots receives what people do in the channels until ctx ends.
func (h *house) runBots(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, b := range h.bots {
		g.Go(func() error {
			if err := b.Run(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		})
	}
	return g.Wait()
}

// hookOf takes what the service of a channel posts; nil where the bot asks for it itself.
func (h *house) hookOf(key origin.Channel) http.Handler {
	for _, b := range h.bots {
		if b.Key == key {
			return b.Hook()
		}
	}
	return nil
}

// places are the channels in force, as the settings show them.
func (h *house) places() []handlers.Place {
	var all []handlers.Place
	for _, ch := range h.gateway.Config().Channels {
		p := handlers.Place{Name: ch.Name()}
		for _, b := range h.bots {
			if b.Key == ch.Name() {
				p.Test = b.Test
				if ch.Name().HasCards() { // else nobody does anything there
					p.Bot = b.Name
				}
			}
		}
		all = append(all, p)
	}
	return all
}
