package telegram

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/bot"
	"gatehouse/orchestrator/people"
)

// Section is what stands under channels.telegram: one bot.
type Section struct {
	Token         string   `yaml:"token"`
	Mode          string   `yaml:"mode" words:"poll webhook"`
	APIURL        string   `yaml:"api_url"`
	Chats         []string `yaml:"chats" reload:"yes"` // numbers, -100123 or with a topic -100123:7
	WebhookSecret string   `yaml:"webhook_secret"`
}

func (t *Section) Check(s bot.Server) (bot.Section, []bot.Fault) {
	c := *t
	var faults []bot.Fault
	bad := func(text string, at ...any) { faults = append(faults, bot.Fault{At: at, Text: text}) }
	c.Mode = cmp.Or(c.Mode, Poll)
	if c.APIURL = strings.TrimSuffix(c.APIURL, "/"); c.APIURL == "" {
		c.APIURL = DefaultAPIURL
	}
	if c.Token == "" || strings.ContainsAny(c.Token, " /?#%\t\n") {
		bad("that is no token of a bot. Write token: with the one that @BotFather gave you, such as 123456:ABC…, best as ${TELEGRAM_BOT_TOKEN}.")
	}
	if u, err := url.Parse(c.APIURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		faults = append(faults, bot.Fault{At: []any{"api_url"}, Value: t.APIURL, Text: "is no address of a Bot API. Leave it out for Telegram's own."})
	}
	if c.Mode == Webhook {
		c.checkWebhook(s, bad)
	}
	for i, text := range c.Chats {
		if _, err := ParsePlace(text); err != nil {
			bad(err.Error()+".", "chats", i)
		}
	}
	return &c, faults
}

// checkWebhook checks what mode webhook needs.
func (t *Section) checkWebhook(s bot.Server, bad func(text string, at ...any)) {
	const secret = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if !strings.HasPrefix(s.PublicURL, "https://") {
		bad("mode: webhook needs server.public_url with https://, because Telegram calls there. Set it, or use mode: poll.", "mode")
	}
	switch {
	case t.WebhookSecret == "":
		bad("mode: webhook has no webhook_secret, so anybody could send updates. Write up to 256 letters, digits, _ and -, best as ${TELEGRAM_SECRET}.")
	case len(t.WebhookSecret) > 256 || strings.Trim(t.WebhookSecret, secret) != "":
		bad("webhook_secret must be 1 to 256 letters, digits, _ and -, as Telegram asks.", "webhook_secret")
	}
}

func (t *Section) Words() []string {
	where := "cards go to the private chats of those who may decide"
	if len(t.Chats) > 0 {
		where = "cards go to " + strings.Join(t.Chats, ", ")
	}
	return []string{string(Name), t.Mode, where}
}

// settings are those that follow a reload.
func (t *Section) settings(s bot.Server) Settings {
	now := Settings{PublicURL: s.PublicURL, Zone: s.Zone}
	for _, text := range t.Chats {
		if p, err := ParsePlace(text); err == nil { // Check has said what is none
			now.Chats = append(now.Chats, p)
		}
	}
	return now
}

// Rows are what the database keeps for a bot.
type Rows interface {
	Accounts
	Inbox
	Linker
	Memory
	Muter
	Reader
}

// service is the Telegram of one node.
type service struct {
	client   *Client
	channel  *Channel
	receiver *Receiver
	mode     string
}

func (t *Section) Start(p bot.Parts) (bot.Bot, error) {
	rows, ok := p.Store.(Rows)
	if !ok {
		return nil, errors.New("the database keeps nothing of Telegram")
	}
	client, err := New(ClientOptions{Token: t.Token, APIURL: t.APIURL, Log: p.Log})
	if err != nil {
		return nil, err
	}
	s := &service{client: client, mode: t.Mode}
	s.channel = NewChannel(ChannelOptions{Sender: client, Buttons: rows, Accounts: rows, Diff: p.Diff, Log: p.Log}, t.settings(p.Server))
	desk := NewDesk(DeskOptions{Channel: s.channel, Bot: client.Me, Gateway: p.Gateway, Engine: p.Engine, Reader: rows, Accounts: rows, Linker: rows,
		Muter: rows, Memory: rows, Log: p.Log})
	s.receiver, err = NewReceiver(ReceiverOptions{Client: client, Inbox: rows, Handle: desk.Handle, Drop: desk.Drop, Mode: t.Mode,
		PublicURL: p.PublicURL, Secret: t.WebhookSecret, Node: p.Node, Log: p.Log, Health: p.Health})
	return s, err
}

func (s *service) Channel() approval.Channel { return s.channel }

func (s *service) Run(ctx context.Context) error { return s.receiver.Run(ctx) }

func (s *service) Take(section bot.Section, server bot.Server) {
	if t, ok := section.(*Section); ok {
		s.channel.SetSettings(t.settings(server))
	}
}

func (s *service) Hook() http.Handler {
	if s.mode != Webhook {
		return nil
	}
	return s.receiver
}

// meTime is how long the settings page waits for the bot to say its name.
const meTime = 5 * time.Second

func (s *service) Name(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, meTime)
	defer cancel()
	me, err := s.client.Me(ctx)
	if err != nil {
		return ""
	}
	return me.Username
}

// Test sends a card to every chat of the configuration or, without any, to the accounts of whoever asks.
func (s *service) Test(ctx context.Context, mine []people.Account) error {
	to := s.channel.Addresses(approval.Request{}, []people.User{{Accounts: mine}})
	if len(to) == 0 {
		return errors.New("no chats are configured and your account is not linked, so there is nowhere to send it. Press Link me first")
	}
	for _, address := range to {
		place, err := ParsePlace(address)
		if err != nil {
			return err
		}
		if _, err := s.channel.Test(ctx, place); err != nil {
			return err
		}
	}
	return nil
}
