package approval

import (
	"context"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
)

// How the other side of a channel is. Several nodes may tell; the last one counts.
const (
	Connected   = "connected"
	Waiting     = "waiting"     // the other side asked to be left alone for a while
	Conflict    = "conflict"    // another program takes the updates of this bot
	BadToken    = "token"       // the token is not accepted
	Unreachable = "unreachable" // no answer, or not the one that is needed
)

// Health is what a channel last told of its other side.
type Health struct {
	Channel origin.Channel
	State   string
	Detail  string // a sentence for people, "" when there is nothing to say
	Node    string
	Since   time.Time // when the state began
}

// Bad reports whether somebody has to do something about it.
func (h Health) Bad() bool {
	return slices.Contains([]string{Conflict, BadToken, Unreachable}, h.State)
}

// Backlog is how much of a channel waits to be delivered, and how much was given up.
type Backlog struct {
	Channel origin.Channel
	Due     int
	Dead    int
}

// The kinds of dead letters.
const (
	DeadCard   = "card"
	DeadNotice = "notice"
	DeadDigest = "digest"
	DeadReport = "report"
)

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	Key       string // names it among all dead letters
	Kind      string // DeadCard, DeadNotice, DeadDigest or DeadReport
	Channel   origin.Channel
	Address   string
	RequestID string // "" of a digest or report
	TaskID    string // of a report, else ""
	Title     string // of the request or task, "" of a digest
	State     State  // of the request
	Error     string
	Attempts  int
	At        time.Time // of the last attempt, or when the next one would have been
}

// DeadFilter chooses dead letters; zero values choose everything.
type DeadFilter struct {
	Channel origin.Channel
	Key     string // just this one
	After   string // a Key
	Limit   int    // 0 means 50; 200 is the most
}

// DeadPage is one page of dead letters; Next is "" on the last one.
type DeadPage struct {
	Items []DeadLetter
	Next  string
}

// Health is what every channel last told of its other side; a channel that has none,
// such as the inbox, never tells anything.
func (g *Gateway) Health(ctx context.Context) ([]Health, error) { return g.store.Health(ctx) }

// Backlog counts what waits to be delivered and what was given up, by channel.
func (g *Gateway) Backlog(ctx context.Context) ([]Backlog, error) { return g.store.Backlog(ctx) }

// DeadLetters reads a page of what was given up.
func (g *Gateway) DeadLetters(ctx context.Context, f DeadFilter) (DeadPage, error) {
	return g.store.DeadLetters(ctx, f)
}

// Retry makes dead letters due again, and returns how many there were: the one that
// f.Key names, all of a channel, or all.
func (g *Gateway) Retry(ctx context.Context, actor string, f DeadFilter) (int, error) {
	n, err := g.store.Revive(ctx, actor, f)
	if err != nil {
		return 0, err
	}
	if n == 0 && f.Key != "" {
		return 0, orchestrator.Errorf(orchestrator.CodeNotFound, "Nothing was given up under that name. It may have been tried again already; look at the list.")
	}
	g.look()
	return n, nil
}
