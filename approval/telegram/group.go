package telegram

import (
	"context"
	"slices"

	"gatehouse/orchestrator/people"
)

// standing of the bot in a chat, as Telegram tells when it changes.
type membership struct {
	From *account `json:"from"`
	Chat chat     `json:"chat"`
	Old  struct {
		Status string `json:"status"`
	} `json:"old_chat_member"`
	New struct {
		Status string `json:"status"`
	} `json:"new_chat_member"`
}

// joined tells a group that the bot was added to what its number is: the configuration
// needs it, and no app shows it.
func (d *Desk) joined(ctx context.Context, c membership) error {
	in := func(status string) bool { return slices.Contains([]string{"member", "administrator"}, status) }
	if c.Chat.ID >= 0 || c.Chat.Type == "channel" || in(c.Old.Status) || !in(c.New.Status) || c.From == nil || !d.strangers.answer(c.From.ID, d.Now()) {
		return nil
	}
	m := &message{Chat: c.Chat, From: c.From}
	s := &sheet{}
	s.put(d.number(m))
	return d.send(ctx, m.place(), s.message())
}

// number says how the configuration calls a group, or a topic of one.
func (d *Desk) number(m *message) string {
	text := "This chat is " + m.place().String()
	if d.Channel.ours(m) {
		return text + ". Requests come here."
	}
	return text + ". For requests to come here, add it to channels.telegram.chats."
}

// welcome is what somebody whose account is linked reads about where requests come, and
// how many wait.
func (d *Desk) welcome(ctx context.Context, u people.User) string {
	text := "You are linked as " + u.Name + "."
	switch {
	case !slices.Contains(u.Roles, people.Approver):
		return text + " You do not have the role approver, so no requests come to you."
	case len(d.Channel.settings.Load().Chats) > 0:
		text += " Requests go to the chats of the configuration."
	default:
		text += " Requests that need you come here."
	}
	mine, err := d.mine(ctx, u)
	switch {
	case err != nil:
		d.Log.Warn("what waits for somebody could not be read", "user", u.Name, "err", err)
	case len(mine) == 1:
		text += " 1 waits: /pending"
	case len(mine) > 1:
		text += " " + plural(len(mine), "", "wait: /pending")
	}
	return text
}
