package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// What holds of every budget: a task uses its limit and, beyond it, at most the calls of
// models that were in flight when it was reached. So a call is reserved before it is made,
// against what its delegation has left and against what everybody in the line of its callers
// has really used; a reservation that no call can be paid from is not given at all.

// shortest is the least answer of a model that is worth its call, in tokens.
const shortest = 256

// line is a delegation's callers, the nearest first. Beside it stands what it may use.
type line struct {
	callers []*Delegation
	left    budget.Limits
	who     *Delegation // whose limit is the narrowest: the delegation or one of its callers
}

// lineOf reads the callers of d and joins what each of them has left, with read.
func lineOf(ctx context.Context, d *Delegation, read func(context.Context, string) (*Delegation, error)) (line, error) {
	l := line{left: account(d).Remaining(), who: d}
	for id := d.ParentID; id != ""; {
		p, err := read(ctx, id)
		if err != nil {
			return l, err
		}
		unspent := account(p).Unspent()
		unspent = budget.Limits{Tokens: unspent.Tokens, MicroUSD: unspent.MicroUSD} // of time each has its own
		if l.left.Drained() == "" && unspent.Drained() != "" {
			l.who = p
		}
		handoffs, agents := l.left.Handoffs, l.left.Agents
		l.left = budget.Least(&l.left, &unspent)
		l.left.Handoffs, l.left.Agents = handoffs, agents
		l.callers = append(l.callers, p)
		id = p.ParentID
	}
	return l, nil
}

// line reads the callers of d in the transaction.
func (l ledger) line(ctx context.Context, d *Delegation) (line, error) {
	return lineOf(ctx, d, l.tx.Delegation)
}

// committed reads a delegation outside of a transaction.
func (e *Engine) committed(ctx context.Context, id string) (*Delegation, error) {
	d, err := e.Store.Delegation(ctx, id)
	return &d, err
}

// drained is the failure of a run that may make no further call, nil while it may.
func (l line) drained(d *Delegation) *agent.Failure {
	over := l.left.Drained()
	if over == "" {
		return nil
	}
	message := account(l.who).Sentence(l.who.To, over)
	if l.who.ID != d.ID {
		message = fmt.Sprintf("%s (%s works for it, so it was ended.)", message, d.To)
	}
	return agent.Fail(agent.CodeBudget, "%s", message)
}

// passed is the failure of a run whose callers used more than they may, nil while they did
// not: at the limit a run goes on (O16).
func (l line) passed(d *Delegation) *agent.Failure {
	for _, p := range l.callers {
		a := account(p)
		if whole := a.Whole(); a.Limits.Tokens != nil && whole.Tokens > *a.Limits.Tokens || a.Limits.MicroUSD != nil && whole.MicroUSD > *a.Limits.MicroUSD {
			l.who, l.left = p, a.Unspent()
			return l.drained(d)
		}
	}
	return nil
}

// raise tells the callers of d what it and those below it use and hold, and what no more.
func (l ledger) raise(ctx context.Context, callers []*Delegation, more, less budget.Amount) error {
	for _, p := range callers {
		account(p).Raise(more, less)
		if err := save(ctx, l.tx, p); err != nil {
			return err
		}
	}
	return nil
}

// Reserve reserves the next call of a model; see agent.Host.
func (r *run) Reserve(ctx context.Context, c agent.ModelCall) (int64, error) {
	output, refused := c.Output, (*agent.Failure)(nil)
	err := r.write(ctx, func(tx Tx, d *Delegation) error {
		l := ledger{tx}
		if err := lostCall(ctx, tx, d); err != nil {
			return err
		}
		of, err := l.line(ctx, d)
		if err != nil {
			return err
		}
		if refused = of.drained(d); refused != nil {
			return save(ctx, tx, d)
		}
		if output = c.Output; of.left.Tokens != nil {
			output = min(output, max(*of.left.Tokens-c.Input, shortest))
		}
		a := account(d)
		a.Hold(c.Input, output)
		if err := l.raise(ctx, of.callers, a.Held, budget.Amount{}); err != nil {
			return err
		}
		return save(ctx, tx, d)
	})
	if err == nil && refused != nil {
		return 0, refused
	}
	return output, err
}

// lostCall charges the call that was in flight when an attempt of d was lost or ended, as
// much as was reserved for it: the provider may have answered, and nobody heard it. What
// the callers count does not change by it.
func lostCall(ctx context.Context, tx Tx, d *Delegation) error {
	if d.Work.Budget == nil || d.Work.Budget.Held.Zero() {
		return nil
	}
	held, output := d.Work.Budget.Release()
	d.Work.Budget.Charge(held)
	u := agent.Usage{InputTokens: max(held.Tokens-output, 0), OutputTokens: output}
	if held.MicroUSD > 0 {
		u.USD = new(float64(held.MicroUSD) / 1e6)
	}
	d.Usage = d.Usage.Add(u)
	return tx.Append(ctx, event.Of(d.ID, d.To, event.UsageRecordedData{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, USD: u.USD, Lost: true}))
}

// coster is a kind of agent that knows what a call of its agents' models may cost.
type coster interface {
	// CallCost returns for the first call that is made for text: the tokens that are sent, and
	// the longest answer.
	CallCost(spec agent.Spec, text string) (input, output int64)
}

// need is what one call of an agent may cost: the least that a reservation for it must be,
// and what it should be. Of a program nobody knows it; both are 0 then.
func (e *Engine) need(spec agent.Spec, text string) (least, whole int64) {
	c, knows := e.Kinds[spec.Kind].(coster)
	if !knows {
		return 0, 0
	}
	input, output := c.CallCost(spec, text)
	return input + min(output, usefulAnswer), input + output
}

// usefulAnswer is the part of an answer that a reservation must cover at least: the length of
// the answer is capped by what is left.
const usefulAnswer = 1024

// afford looks what a hop of d would be given, and refuses one that no call could be paid
// from.
func (e *Engine) afford(ctx context.Context, tx Tx, d *Delegation, p *planned) (offer, error) {
	name := p.target.Name
	p.least, p.whole = e.need(p.target, p.Text)
	o, err := (ledger{tx}).offer(ctx, d, p.target, *p)
	if err != nil || o.most >= o.need {
		return o, err
	}
	return o, &guard.Verdict{Guard: "budget", Code: guard.CodeBudget, Message: fmt.Sprintf(
		"Token budget exceeded: one call of %s may cost %s tokens, and %s could have %s; %s → %s was refused. "+
			"Answer with what you have, wait until others have ended, raise `budget.tokens`, or lower its `max_tokens`.",
		name, budget.Number(o.need), name, budget.Number(max(o.most, 0)), d.To, name)}
}

// Parts of messages are passed on at this pace: often enough to read along, seldom
// enough that a fast model floods nobody.
const (
	deltaEvery = 80 * time.Millisecond
	deltaBytes = 2 << 10 // gathered ones are passed on at once
	deltaMost  = 4 << 10 // of one piece
)

// deltas gathers the parts of a run's message. Their order is kept: they are passed on
// under mu, the last of a turn before that turn is stored, and none after.
type deltas struct {
	mu     sync.Mutex
	parts  []event.Part // gathered, neighbours joined
	bytes  int
	taken  int               // bytes that came since some were passed on, with those kept back
	turn   int               // that is being written
	stored int               // turns up to here are over
	shown  map[[2]string]int // characters of the turn by kind and tool
	masks  map[[2]string]*held
	order  [][2]string    // of masks
	passed time.Time      // when some were passed on last
	timer  *time.Timer    // set while parts wait
	wait   sync.WaitGroup // for the timer's function
	closed bool
}

// Delta shows a part of a message that is being written; see agent.Host.
func (r *run) Delta(d agent.Delta) {
	if r.live() != nil {
		return
	}
	p := event.Part{TaskID: r.task.ID, DelegationID: r.id, Actor: r.d.To, At: r.e.Now().UTC(), Turn: d.Turn, Kind: d.Kind, Tool: d.Tool[:min(len(d.Tool), maxRef)],
		Text: strings.ToValidUTF8(d.Text, "\ufffd")}
	s := &r.deltas
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || p.Turn <= s.stored || p.Text == "" && p.Kind != event.KindReset && p.Tool == "" {
		return
	}
	s.take(p)
	switch now := time.Now(); {
	case s.taken >= deltaBytes || now.Sub(s.passed) >= deltaEvery:
		s.pass(r.e.Options.Hub)
	case s.timer == nil:
		s.wait.Add(1)
		s.timer = time.AfterFunc(deltaEvery-now.Sub(s.passed), func() {
			defer s.wait.Done()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.timer = nil
			s.pass(r.e.Options.Hub)
		})
	}
}

// held is a text of the turn of which the end may become a secret, and the part that it
// would be passed on with.
type held struct {
	mask.Stream
	part event.Part
}

// take masks a part and adds what can be shown of it by now; what it goes behind of
// another kind is complete.
func (s *deltas) take(p event.Part) {
	key := [2]string{p.Kind, p.Tool}
	switch {
	case p.Kind == event.KindReset:
		s.masks, s.order, s.taken = nil, nil, 0
	case p.Turn != s.turn || len(s.order) > 0 && s.order[len(s.order)-1] != key:
		s.flush()
	}
	s.taken += len(p.Text)
	if p.Kind == event.KindReset || p.Text == "" {
		s.gather(p)
		return
	}
	h := s.masks[key]
	if h == nil {
		h = &held{}
		if s.masks == nil {
			s.masks = map[[2]string]*held{}
		}
		s.masks[key], s.order = h, append(s.order, key)
	}
	h.part = p
	if p.Text = h.Write(p.Text); p.Text != "" {
		s.gather(p)
	}
}

// flush adds what was kept back.
func (s *deltas) flush() {
	for _, key := range s.order {
		h := s.masks[key]
		if h.part.Text = h.Flush(); h.part.Text != "" {
			s.gather(h.part)
		}
	}
	s.masks, s.order = nil, nil
}

// gather adds a part behind the others.
func (s *deltas) gather(p event.Part) {
	if p.Turn != s.turn || p.Kind == event.KindReset {
		s.turn, s.shown = p.Turn, map[[2]string]int{}
	}
	if p.Kind == event.KindReset { // what nobody has seen need not be taken back
		s.parts, s.bytes = []event.Part{p}, 0
		return
	}
	key := [2]string{p.Kind, p.Tool}
	p.Offset = s.shown[key]
	s.shown[key] += utf8.RuneCountInString(p.Text)
	s.bytes += len(p.Text)
	if n := len(s.parts); n == 0 || !s.parts[n-1].Join(p) {
		s.parts = append(s.parts, p)
	}
}

// pass shows what was gathered. The caller holds mu.
func (s *deltas) pass(hub *event.Hub) {
	for _, p := range s.parts {
		for _, piece := range p.Split(deltaMost) {
			hub.Pass(piece)
		}
	}
	s.parts, s.bytes, s.taken, s.passed = nil, 0, 0, time.Now()
}

// turnOver passes on what is left of the turns up to n, which is about to be stored.
func (r *run) turnOver(n int) {
	s := &r.deltas
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.pass(r.e.Options.Hub)
	s.stored = max(s.stored, n)
	r.e.Options.Hub.Over(r.task.ID, r.id)
}

// closeDeltas passes on what is left when the run ends, and waits for the timer.
func (r *run) closeDeltas() {
	s := &r.deltas
	s.mu.Lock()
	s.flush()
	s.pass(r.e.Options.Hub)
	s.closed = true
	if s.timer != nil && s.timer.Stop() {
		s.wait.Done()
	}
	s.timer = nil
	s.mu.Unlock()
	s.wait.Wait()
	r.e.Options.Hub.Over(r.task.ID, r.id)
}
