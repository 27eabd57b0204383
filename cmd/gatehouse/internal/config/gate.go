package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/approval/webhook"
)

// remind reads how long before the deadline people are reminded, longest first.
func (b *builder) remind() []time.Duration {
	var all []time.Duration
	for i, text := range b.file.Approval.Remind {
		if d := b.duration(at("approval", "remind", i), text, 0); d > 0 {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(x, y time.Duration) int { return int(y - x) })
	return slices.Compact(all)
}

// escalate reads who may decide, too, when nobody has.
func (b *builder) escalate() []approval.Step {
	var steps []approval.Step
	for i, e := range b.file.Approval.Escalate {
		where := at("approval", "escalate", i)
		s := approval.Step{After: b.duration(append(where, "after"), e.After, 0), To: e.To}
		switch {
		case e.After == "":
			b.bad(where, "this step of the escalation has no after. Write after: with a length of time, such as 4h.")
		case len(e.To) == 0:
			b.bad(where, "this step of the escalation names nobody. Write to: with at least one group.")
		case len(steps) > 0 && s.After <= steps[len(steps)-1].After:
			b.bad(append(where, "after"), "after: %s is not later than the step before. Order the steps by time.", e.After)
		}
		b.inGroups(append(where, "to"), e.To)
		steps = append(steps, s)
	}
	return steps
}

// approvers reads whose yes counts in each repository.
func (b *builder) approvers() map[string][]string {
	all := map[string][]string{}
	for name, r := range b.file.Repositories {
		if len(r.Approvers) == 0 {
			continue
		}
		b.inGroups(at("repositories", name, "approvers"), r.Approvers)
		all[name] = r.Approvers
	}
	return all
}

// inGroups checks that groups exist and that somebody is in them: nobody could
// approve otherwise.
func (b *builder) inGroups(path []any, groups []string) {
	names := make([]string, 0, len(b.file.Groups))
	for g := range b.file.Groups {
		names = append(names, g)
	}
	for i, g := range groups {
		switch members, ok := b.file.Groups[g]; {
		case !ok:
			hint := " Add it under groups."
			if near := Nearest(g, names); near != "" {
				hint = " Did you mean \"" + near + "\"?"
			}
			b.bad(append(slices.Clone(path), i), "there is no group %q.%s", g, hint)
		case len(members) == 0:
			b.bad(append(slices.Clone(path), i), "group %q has nobody in it, so nobody could approve. Add a person to it.", g)
		}
	}
}

// channels reads where requests are shown besides the web.
func (b *builder) channels() (*Telegram, []Webhook) {
	seen := map[string]bool{}
	for i, w := range b.file.Channels.Webhooks {
		where := at("channels", "webhooks", i)
		if seen[w.Name] {
			b.bad(append(where, "name"), "there are two webhooks %q. Give each a name of its own: pages and cards call it by that.", w.Name)
		}
		seen[w.Name] = true
		if err := w.Target().Check(); err != nil {
			b.bad(where, "%v.", err)
		}
	}
	t := b.file.Channels.Telegram
	if t == nil {
		return nil, b.file.Channels.Webhooks
	}
	where := at("channels", "telegram")
	c := *t
	c.Mode, c.APIURL = or(t.Mode, "poll"), strings.TrimSuffix(or(t.APIURL, "https://api.telegram.org"), "/")
	b.oneOf(append(where, "mode"), c.Mode, "poll", "webhook")
	if c.Token == "" || strings.ContainsAny(c.Token, " /?#%\t\n") {
		b.bad(where, "that is no token of a bot. Write token: with the one that @BotFather gave you, such as 123456:ABC…, best as ${TELEGRAM_BOT_TOKEN}.")
	}
	if u, err := url.Parse(c.APIURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		b.bad(append(where, "api_url"), "%q is no address of a Bot API. Leave it out for Telegram's own.", masked(t.APIURL))
	}
	if c.Mode == "webhook" {
		b.telegramWebhook(where, c)
	}
	return &c, b.file.Channels.Webhooks
}

// chats reads where cards go.
func (b *builder) chats(t *Telegram) []telegram.Place {
	if t == nil {
		return nil
	}
	var places []telegram.Place
	for i, text := range t.Chats {
		p, err := telegram.ParsePlace(text)
		if err != nil {
			b.bad(at("channels", "telegram", "chats", i), "%v.", err)
			continue
		}
		places = append(places, p)
	}
	return places
}

// telegramWebhook checks what mode webhook needs.
func (b *builder) telegramWebhook(where []any, c Telegram) {
	if !strings.HasPrefix(b.file.Server.PublicURL, "https://") {
		b.bad(append(where, "mode"), "mode: webhook needs server.public_url with https://, because Telegram calls there. Set it, or use mode: poll.")
	}
	if c.WebhookSecret == "" {
		b.bad(where, "mode: webhook has no webhook_secret, so anybody could send updates. Write up to 256 letters, digits, _ and -, best as ${TELEGRAM_SECRET}.")
		return
	}
	if len(c.WebhookSecret) > 256 || strings.Trim(c.WebhookSecret, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		b.bad(append(where, "webhook_secret"), "webhook_secret must be 1 to 256 letters, digits, _ and -, as Telegram asks.")
	}
}

// Target is the webhook as its channel takes it.
func (w Webhook) Target() webhook.Target {
	return webhook.Target{Name: w.Name, URL: w.URL, Format: w.Format, Secret: w.Secret, AllowPrivate: w.AllowPrivate}
}
