package store

import (
	"sync"
	"time"

	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// accountKey names an account of a channel.
type accountKey struct {
	channel origin.Channel
	id      int64
}

// guesses counts wrong link codes by account. It lives in memory, for each process by
// itself: a restart, or a second node, gives somebody five more guesses at 60 bits, and
// only the node that polls a bot hears of any. Its zero value is ready to use.
type guesses struct {
	mu sync.Mutex
	by map[accountKey]guesser
}

type guesser struct {
	wrong []time.Time // within the last window, oldest first
	until time.Time   // no further guess before; zero when there may be
}

// manyGuessers is how many are remembered before those that no longer count are dropped.
const manyGuessers = 1000

// barred reports whether the account may not guess at that time.
func (g *guesses) barred(who accountKey, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Before(g.by[who].until)
}

// wrong counts one wrong code.
func (g *guesses) wrong(who accountKey, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[accountKey]guesser{}
	}
	if len(g.by) >= manyGuessers {
		g.forget(now)
	}
	old := g.by[who]
	next := guesser{wrong: []time.Time{}}
	for _, at := range old.wrong {
		if now.Sub(at) < people.GuessWindow {
			next.wrong = append(next.wrong, at)
		}
	}
	if next.wrong = append(next.wrong, now); len(next.wrong) >= people.MaxGuesses {
		next = guesser{until: now.Add(people.GuessWindow)}
	}
	g.by[who] = next
}

// right forgets the wrong ones: this account knows a code.
func (g *guesses) right(who accountKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, who)
}

// forget drops accounts that may guess as if they never had.
func (g *guesses) forget(now time.Time) {
	for who, v := range g.by {
		last := len(v.wrong) - 1
		if !now.Before(v.until) && (last < 0 || now.Sub(v.wrong[last]) >= people.GuessWindow) {
			delete(g.by, who)
		}
	}
}
