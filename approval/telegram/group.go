package telegram

import (
	"context"
	"slices"
	"sync"
	"time"

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

// The answers that an account gets which is linked to nobody. Anybody can write to a
// bot, as often as they like, and each answer takes time from those who decide.
const (
	strangerAnswers = 10 // at most, within …
	strangerWindow  = time.Minute
	manyStrangers   = 1000 // that are remembered before those are dropped that were silent
)

// strangers counts these answers. Its zero value is ready to use; it is for many
// goroutines, and forgets with the process.
type strangers struct {
	mu sync.Mutex
	by map[int64]stranger
}

type stranger struct {
	since time.Time
	n     int
}

// answer reports whether the account gets one more answer now.
func (s *strangers) answer(account int64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := func(v stranger) bool { return now.Sub(v.since) >= strangerWindow || now.Before(v.since) }
	if len(s.by) >= manyStrangers {
		for id, v := range s.by {
			if over(v) {
				delete(s.by, id)
			}
		}
	}
	v, known := s.by[account]
	if !known && len(s.by) >= manyStrangers {
		return false // a crowd: nobody new is answered until some of it is silent
	}
	if !known || over(v) {
		v = stranger{since: now}
	}
	v.n++
	if s.by == nil {
		s.by = map[int64]stranger{}
	}
	s.by[account] = v
	return v.n <= strangerAnswers
}

// tellStranger is tell for an account that is linked to nobody.
func (d *Desk) tellStranger(ctx context.Context, m *message, text string) error {
	if !d.strangers.answer(m.From.ID, d.Now()) {
		return nil
	}
	return d.tell(ctx, m, text)
}

// elsewhere is what commands about tasks are answered with in a group that is none of
// ours: who is in it may read nothing of them.
const elsewhere = "This group is not among channels.telegram.chats, so nothing is shown here. Write to me in a private chat."

// ours reports whether a chat may read about tasks: a private one, or a group that cards go to.
func (c *Channel) ours(m *message) bool {
	if m.private() {
		return true
	}
	return slices.ContainsFunc(c.settings.Load().Chats, func(p Place) bool { return p.Chat == m.Chat.ID })
}
