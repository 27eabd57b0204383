package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/textcut"
)

// Consider says what Decide would answer to the ballot now, and stores nothing, not even a refusal. It is
// for channels that ask for a reason first: nobody should write one in vain.
func (g *Gateway) Consider(ctx context.Context, b Ballot) (Request, error) {
	r, e, err := g.asked(ctx, b.RequestID)
	if err != nil {
		return r, err
	}
	if err := g.complete(ctx, &b, r); err != nil {
		return r, err
	}
	if refused := judge(e, r, b, g.now(), g.Config().Location); refused != nil {
		return r, g.changedSince(ctx, r, b, refused)
	}
	return r, nil
}

// Refusal is a verdict that came through a channel and did not count.
type Refusal struct {
	RequestID string // "" when it named none that exists
	Actor     string // the person, or the channel's name for somebody unknown
	Channel   origin.Channel
	Verdict   Verdict
	Code      string
	Message   string // what the person was told
}

// maxRefusal is how much of a message is kept, in runes.
const maxRefusal = 500

// refusedAgain is how long the same refusal of the same person on the same request is not
// recorded again, on one node: who presses a button a thousand times is one line.
const refusedAgain = time.Minute

// maxRefusals is how many refusals a node remembers for that.
const maxRefusals = 10_000

// refusals remembers what Decide recorded a short while ago.
type refusals struct {
	mu   sync.Mutex
	last map[refusalKey]time.Time
}

// refusalKey is the same for refusals that are one line of the history.
type refusalKey struct {
	request, actor, code string
	verdict              Verdict
}

// fresh reports whether k was not recorded within refusedAgain, and notes it then. Where
// too many are remembered it is, so that nothing goes unrecorded.
func (s *refusals) fresh(k refusalKey, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent(k, now) {
		return false
	}
	if len(s.last) >= maxRefusals {
		maps.DeleteFunc(s.last, func(_ refusalKey, at time.Time) bool { return now.Sub(at) >= refusedAgain })
	}
	if s.last == nil {
		s.last = map[refusalKey]time.Time{}
	}
	if len(s.last) < maxRefusals {
		s.last[k] = now
	}
	return true
}

// recent reports whether k was recorded within refusedAgain. The caller holds mu.
func (s *refusals) recent(k refusalKey, now time.Time) bool {
	at, known := s.last[k]
	return known && now.Sub(at) < refusedAgain
}

// told is recent for who does not hold mu.
func (s *refusals) told(k refusalKey, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent(k, now)
}

// recordRefusal is the one place where a verdict that did not count gets into the history,
// whatever channel it came through: r is the request that the answer err was given on.
// What is wrong with the message itself, or with the server, is no refusal, and neither is
// the answer to a verdict of one's own that stands and came a second time.
func (g *Gateway) recordRefusal(ctx context.Context, b Ballot, r Request, err error) {
	refused := new(orchestrator.Error)
	if !errors.As(err, &refused) || r.ID == "" || b.Principal.Name() == "" {
		return
	}
	switch refused.Code {
	case orchestrator.CodeBadRequest, orchestrator.CodeUnavailable, orchestrator.CodeNotFound:
		return
	}
	stands := func(d Decision) bool {
		return d.UserID == b.Principal.User.ID && d.Verdict == b.Verdict && d.Revision == r.Revision.N && d.Digest == b.Digest
	}
	if b.Verdict != Withdraw && slices.ContainsFunc(r.Decisions, stands) {
		return
	}
	g.TurnedAway(ctx, Refusal{RequestID: r.ID, Actor: b.Principal.Name(), Channel: b.Channel, Verdict: b.Verdict, Code: refused.Code, Message: refused.Message})
}

// TurnedAway records a refusal unless the same one was just recorded. The answer to the
// person does not wait for more than recordTime, and does not depend on it.
func (g *Gateway) TurnedAway(ctx context.Context, f Refusal) {
	if !g.refusals.fresh(refusalKey{f.RequestID, f.Actor, f.Code, f.Verdict}, g.now()) {
		return
	}
	// Who hangs up does not stay out of the history.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if err := g.record(ctx, f); err != nil {
		g.log.Warn("a verdict that did not count could not be recorded", "request", f.RequestID, "code", f.Code, "err", err)
	}
}

// recordTime is how long the record of a refusal may take.
const recordTime = 5 * time.Second

// Refused records a refusal that a channel gave by itself in the history: of the request's
// task, or of the system where there is no such request. One that Decide gave is there
// already.
func (g *Gateway) Refused(ctx context.Context, f Refusal) error {
	if g.refusals.told(refusalKey{f.RequestID, f.Actor, f.Code, f.Verdict}, g.now()) {
		return nil
	}
	return g.record(ctx, f)
}

// record writes the event.
func (g *Gateway) record(ctx context.Context, f Refusal) error {
	said := event.VerdictRefusedData{Channel: f.Channel, Verdict: string(f.Verdict), Code: f.Code, Message: textcut.Characters(plain(f.Message), maxRefusal)}
	if f.RequestID != "" {
		r, err := g.store.Request(ctx, f.RequestID)
		if err == nil {
			said.About = r.about()
			return g.store.InGate(ctx, r.TaskID, func(tx Tx) error { return tx.Append(ctx, r.event(f.Actor, said)) })
		}
		if !errors.Is(err, orchestrator.ErrNotFound) {
			return fmt.Errorf("reading the request of a refused verdict: %w", err)
		}
	}
	return g.store.InGate(ctx, event.System, func(tx Tx) error { return tx.Append(ctx, event.Of("", f.Actor, said)) })
}
