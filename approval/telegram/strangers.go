package telegram

import (
	"context"
	"sync"
	"time"
)

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
	for _, p := range c.settings.Load().Chats {
		if p.Chat == m.Chat.ID {
			return true
		}
	}
	return false
}
