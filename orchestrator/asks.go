package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// open is how many children and answers d waits for, without those that it spawned.
func (d *Delegation) open() int { return d.OpenChildren + d.Work.OpenAsks() }

// find is where an ask of this generation stands; -1 where it is new. It has the same content
// and Ref. Under a Ref that is not known, and without one, it is what an attempt before this
// one asked, or what was asked without a Ref: where nobody has had the answer, and nobody
// waits by now.
func (w *Session) find(a agent.Ask, attempt int, waited map[string]bool) int {
	content := a.Content()
	for at := len(w.Asks) - 1; at >= 0 && a.Ref != ""; at-- { // the newest: an attempt before may have used one up
		if w.Asks[at].Ref == a.Ref && w.Asks[at].Content == content {
			return at
		}
	}
	return slices.IndexFunc(w.Asks, func(o Asked) bool {
		return o.Content == content && !o.Begun && !waited[o.Request] && (o.Attempt != attempt || o.Ref == "" && a.Ref == "")
	})
}

// of is where the ask with this request stands; -1 where there is none.
func (w *Session) of(requestID string) int {
	return slices.IndexFunc(w.Asks, func(o Asked) bool { return o.Request == requestID })
}

// asksNow is who is asked about what now, read before a transaction; nil where nobody can be.
// people says that somebody may be asked in it.
func (e *Engine) asksNow(ctx context.Context, people bool) (Asks, error) {
	if e.Gate == nil {
		return nil, nil
	}
	return e.Gate.Asks(ctx, people)
}

// Consult says what is known of asks without waiting; see agent.Host.
func (r *run) Consult(ctx context.Context, asks []agent.Ask) ([]agent.Answer, error) {
	if err := r.live(); err != nil {
		return nil, err
	}
	now, err := r.e.asksNow(ctx, false)
	if err != nil {
		return nil, err
	}
	ruled, open := make([]agent.Answer, len(asks)), false
	for i, a := range asks {
		var denied string
		ruled[i], denied = r.e.consult(now, r.e.Now(), &r.task, &r.d, a)
		open = open || ruled[i].State == agent.AskOpen || r.judged(a, ruled[i])
		if err := r.denied(ctx, a, denied); err != nil {
			return nil, err
		}
	}
	if !open {
		return ruled, nil
	}
	if now, err = r.e.asksNow(ctx, true); err != nil {
		return nil, err
	}
	var answers []agent.Answer
	err = r.write(ctx, func(tx Tx, d *Delegation) error {
		answers = slices.Clone(ruled)
		for i, a := range asks {
			if ruled[i].State == agent.AskRefused {
				continue
			}
			if at := d.Work.find(a, d.Attempt, nil); at >= 0 {
				if err := errors.Join(stand(ctx, tx, now, d, at), d.named(ctx, tx, at, a.Ref)); err != nil {
					return err
				}
				answers[i] = d.Work.Asks[at].answer(a)
				continue
			}
			if ruled[i].State != agent.AskOpen {
				continue
			}
			by, err := use(ctx, tx, now, d, a, false)
			if err != nil {
				return err
			}
			if by != "" {
				answers[i] = agent.Answer{Ref: a.Ref, State: agent.AskAllowed, Input: a.Action.Input, By: by}
			}
		}
		return nil
	})
	return answers, err
}

// judged reports whether people were asked what the rules would pass by now: what they said holds.
func (r *run) judged(a agent.Ask, said agent.Answer) bool {
	return said.State == agent.AskAllowed && r.d.Work.find(a, r.attempt, nil) >= 0
}

// consult is what the rules alone say of an ask, and the name of the rule that denies it.
// Nothing is stored.
func (e *Engine) consult(now Asks, at time.Time, t *Task, d *Delegation, a agent.Ask) (said agent.Answer, denied string) {
	refused := func(why string) (agent.Answer, string) {
		return agent.Answer{Ref: a.Ref, State: agent.AskRefused, Text: why}, ""
	}
	if err := a.Check(); err != nil {
		return refused(err.Error())
	}
	rule := ActionRule{Asks: true}
	if a.Action != nil {
		first := e.askedInAnyCase(d, *a.Action)
		if rule.Asks = first; now != nil {
			rule = now.Rule(at, t, d, *a.Action, first)
		}
	}
	switch {
	case rule.Deny:
		said, _ = refused(fmt.Sprintf("The rule %q does not let %s call %s like this. Nothing ran. Go on without it, or say what you would have done.", rule.Name, d.To, a.Action.Tool))
		return said, rule.Name
	case !rule.Asks:
		return agent.Answer{Ref: a.Ref, State: agent.AskAllowed, Input: a.Action.Input}, ""
	case now == nil:
		return refused("Nobody can be asked here.")
	}
	return agent.Answer{Ref: a.Ref, State: agent.AskOpen}, ""
}

// put makes the request of an ask that people have to be asked about, or answers it without
// them. It is in the row then, and d is not saved yet.
func (e *Engine) put(ctx context.Context, tx Tx, now Asks, d *Delegation, a agent.Ask, waited map[string]bool) (*Asked, error) {
	at := d.Work.find(a, d.Attempt, waited)
	if at >= 0 && (!d.Work.Asks[at].Begun || d.Work.Asks[at].Attempt == d.Attempt) { // else an attempt before has used it
		o := &d.Work.Asks[at]
		o.Ref, o.Attempt = a.Ref, d.Attempt
		return o, nil
	}
	said, denied := e.consult(now, tx.Now(), tx.Task(), d, a)
	if denied != "" { // since the run consulted the rules
		if err := tx.Append(ctx, deniedEvent(d, *a.Action, denied)); err != nil {
			return nil, err
		}
	}
	if said.State == agent.AskOpen {
		by, err := use(ctx, tx, now, d, a, false)
		if err != nil {
			return nil, err
		}
		if by != "" {
			said = agent.Answer{State: agent.AskAllowed, By: by}
		}
	}
	asked := Asked{Ref: a.Ref, Content: a.Content(), Attempt: d.Attempt, State: said.State, Text: said.Text, By: said.By}
	if said.State == agent.AskOpen {
		refused, err := e.tooMany(ctx, tx, d)
		switch {
		case err != nil:
			return nil, err
		case refused != "":
			asked = asked.as(agent.Answer{State: agent.AskRefused, Text: refused})
		default:
			asked.Request = NewID(RequestPrefix, tx.Now())
			d.Work.countAsk(tx.Now())
			if err := now.Put(ctx, tx, d, asked.Request, a, a.Action != nil && e.askedInAnyCase(d, *a.Action)); err != nil {
				return nil, err
			}
		}
	}
	d.Work.Asks = append(d.Work.Asks, asked)
	return &d.Work.Asks[len(d.Work.Asks)-1], nil
}

// Ask is the long poll of a program that asks people. The answer is AskOpen where there was none
// after max. Where ctx ends before, nobody waits for it any more, and the request ends.
func (e *Engine) Ask(ctx context.Context, p people.Run, a agent.Ask, max time.Duration) (agent.Answer, error) {
	r := e.running(p)
	if r == nil {
		return agent.Answer{}, errRunOver
	}
	said, err := r.wait(ctx, a, time.After(max))
	if errors.Is(err, agent.ErrStopped) {
		err = errRunOver
	}
	return said, err
}

// Ask puts an ask before people where that is needed, and waits; see agent.Host.
func (r *run) Ask(ctx context.Context, a agent.Ask) (agent.Answer, error) {
	return r.wait(ctx, a, nil)
}

// wait is Ask that gives up waiting, and nothing else, at the end of patience.
func (r *run) wait(ctx context.Context, a agent.Ask, patience <-chan time.Time) (agent.Answer, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	mine := "" // the request that this waits for
	defer func() { r.waitFor(mine, false) }()
	for {
		if err := r.live(); err != nil {
			return agent.Answer{}, err
		}
		poked := r.pokes() // before the row is looked at, so that no poke is missed
		said, err := r.askOnce(ctx, a, &mine)
		if err != nil && !transient(err) || err == nil && said.State != agent.AskOpen {
			return said, err
		}
		select {
		case <-ctx.Done():
			return agent.Answer{}, r.giveUpAsk(context.WithoutCancel(ctx), mine, ctx.Err())
		case <-patience:
			return agent.Answer{Ref: a.Ref, ID: mine, State: agent.AskOpen}, nil
		case <-r.ctx.Done():
			return agent.Answer{}, agent.ErrStopped
		case <-poked:
		case <-tick.C:
		}
	}
}

// askOnce makes the ask, or looks how far that of the request mine is. An allowed call is begun
// with the look that finds it, so that no second one finds it, too.
func (r *run) askOnce(ctx context.Context, a agent.Ask, mine *string) (said agent.Answer, err error) {
	if r.stillOpen(ctx, *mine) {
		return agent.Answer{State: agent.AskOpen}, nil
	}
	if err := r.resume(ctx); err != nil { // where the answer has queued the row
		return said, err
	}
	now, err := r.e.asksNow(ctx, true)
	if err != nil {
		return said, err
	}
	if *mine == "" {
		var denied string
		if said, denied = r.e.consult(now, r.e.Now(), &r.task, &r.d, a); said.State != agent.AskOpen && !r.judged(a, said) {
			return said, r.denied(ctx, a, denied) // the rules say it, and nobody is asked
		}
	}
	r.asking.Lock() // whoever asks the same beside it finds mine waited for
	defer r.asking.Unlock()
	var asked Asked
	err = r.write(ctx, func(tx Tx, d *Delegation) error {
		at, err := r.place(ctx, tx, now, d, a, *mine)
		if err != nil {
			return err
		}
		if asked = *at; asked.Request == "" { // by a grant, or refused
			d.Work.forget(asked)
			return save(ctx, tx, d)
		}
		switch {
		case at.State == agent.AskAllowed:
			at.Begun = true
			d.Work.forgetSpent()
		case at.State != agent.AskOpen && at.Ref == "":
			d.Work.forget(asked)
		case at.State == agent.AskOpen && d.State != Waiting:
			if err := waitInProcess(ctx, tx, d, false); err != nil {
				return err
			}
			r.e.continuation(tx, r).rest()
			return tx.Append(ctx, waitingEvent(d))
		}
		return save(ctx, tx, d)
	})
	if err == nil && *mine == "" {
		*mine = asked.Request
		r.waitFor(*mine, true)
	}
	return asked.answer(a), err
}

// place is where the ask stands in the row: it is made where it is new.
func (r *run) place(ctx context.Context, tx Tx, now Asks, d *Delegation, a agent.Ask, mine string) (*Asked, error) {
	if mine == "" {
		o, err := r.e.put(ctx, tx, now, d, a, r.waitedFor())
		if err != nil || o.Request == "" {
			return o, err
		}
		mine = o.Request
	}
	if at := d.Work.of(mine); at >= 0 {
		return &d.Work.Asks[at], stand(ctx, tx, now, d, at)
	}
	return nil, Errorf(CodeConflict, "%s does not wait for this any more.", d.To)
}

// waitFor notes that somebody in the run waits for a request, or does not any more.
func (r *run) waitFor(requestID string, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waited := maps.Clone(r.waited) // others may be reading it
	if waited == nil {
		waited = map[string]bool{}
	}
	delete(waited, requestID)
	if waits {
		waited[requestID] = true
	}
	r.waited = waited
}

func (r *run) waitedFor() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waited
}

// stillOpen reports whether people have not answered a request, by a look without a lock.
func (r *run) stillOpen(ctx context.Context, requestID string) bool {
	if requestID == "" {
		return false
	}
	d, err := r.e.Store.Delegation(ctx, r.id)
	if err != nil || d.Attempt != r.attempt {
		return false
	}
	at := d.Work.of(requestID)
	return at >= 0 && d.Work.Asks[at].State == agent.AskOpen
}

// giveUpAsk ends a request whose program does not wait for it any more.
func (r *run) giveUpAsk(ctx context.Context, requestID string, why error) error {
	if r.live() != nil || requestID == "" {
		return why
	}
	err := r.write(ctx, func(tx Tx, d *Delegation) error {
		at := d.Work.of(requestID)
		if at < 0 || d.Work.Asks[at].State != agent.AskOpen {
			return nil
		}
		d.Work.forget(d.Work.Asks[at])
		if err := tx.CloseAsk(ctx, requestID); err != nil {
			return err
		}
		gone := event.ProgressData{ApprovalID: requestID, Text: "The program that asked this does not wait for the answer any more."}
		if err := tx.Append(ctx, event.Of(d.ID, d.To, gone)); err != nil {
			return err
		}
		return letGoOn(ctx, tx, d, event.ResumedData{Agent: d.To})
	})
	return errors.Join(why, err)
}

// Proceed notes that an allowed call is about to be made; see agent.Host.
func (r *run) Proceed(ctx context.Context, a agent.Ask) error {
	now, err := r.e.asksNow(ctx, true)
	if err != nil {
		return err
	}
	gone := agent.Fail(agent.CodeActionRefused, "The yes to this call was taken back, or its input was changed. Nothing ran. Make the call again, and people are asked.")
	stands := false
	err = r.write(ctx, func(tx Tx, d *Delegation) error {
		at := slices.IndexFunc(d.Work.Asks, func(o Asked) bool { return o.Ref == a.Ref && !o.Begun && o.Request != "" })
		if at < 0 { // by a grant
			by, err := use(ctx, tx, now, d, a, true)
			stands = by != ""
			return err
		}
		if err := stand(ctx, tx, now, d, at); err != nil {
			return err
		}
		o := &d.Work.Asks[at]
		if stands = o.State == agent.AskAllowed && o.means(a); stands {
			o.Begun = true
		}
		return save(ctx, tx, d)
	})
	if err == nil && !stands {
		return gone
	}
	return err
}
