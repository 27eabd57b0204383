package orchestrator

import (
	"context"
	"fmt"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
)

// ledger moves budgets between the delegations of one task, inside the transaction that
// holds the task's row.
type ledger struct{ tx Tx }

// account is a delegation's account; rows from before there were budgets have none.
func account(d *Delegation) *budget.Account {
	if d.Work.Budget == nil {
		d.Work.Budget = &budget.Account{}
	}
	return d.Work.Budget
}

// lent are the live children whose grants may be taken back.
func (l ledger) lent(ctx context.Context, d *Delegation) ([]*Delegation, error) {
	var live []*Delegation
	for _, id := range account(d).Lent {
		c, err := l.tx.Delegation(ctx, id)
		if err != nil {
			return nil, err
		}
		if !c.State.Ended() && c.Work.Budget != nil {
			live = append(live, c)
		}
	}
	return live, nil
}

// pool is what a new child of d could have: the remainder, and what live children could
// give back of what nobody asked for. Fields without a limit are nil.
func (l ledger) pool(ctx context.Context, d *Delegation) (budget.Limits, error) {
	live, err := l.lent(ctx, d)
	if err != nil {
		return budget.Limits{}, err
	}
	left := account(d).Remaining()
	for _, c := range live {
		more, err := l.pool(ctx, c)
		if err != nil {
			return budget.Limits{}, err
		}
		left = left.Plus(c.Work.Budget.Returnable(more.Amount()))
	}
	return left, nil
}

// offer is what a new child of d could be given.
type offer struct {
	ask   budget.Limits
	share budget.Amount // of what nobody asked for, and what live children keep
	live  []*Delegation // whose grants may be taken back
	need  int64         // tokens that one call of the child may cost at least
	most  int64         // tokens that it could be given, where they are limited
}

// offer looks what a new child could have: the least of what was asked for, what its agent
// may use and what is left. What nobody asked for is shared equally with the children that
// live, the hops to come of the same turn and, where d goes on, with d; but no share is
// less than what one call of the child may cost.
func (l ledger) offer(ctx context.Context, d *Delegation, target agent.Spec, p planned) (offer, error) {
	pool, err := l.pool(ctx, d)
	if err != nil {
		return offer{}, err
	}
	o := offer{ask: budget.Least(p.Budget, target.Budget), need: p.least}
	if o.live, err = l.lent(ctx, d); err != nil {
		return o, err
	}
	n := len(o.live) + max(p.toCome, 1)
	if p.Spawn {
		n++
	}
	o.share = pool.Amount().Share(n)
	o.share.Tokens = max(o.share.Tokens, min(p.whole, pool.Amount().Tokens))
	if o.need == 0 || pool.Tokens == nil && o.ask.Tokens == nil {
		o.most = max(o.need, 0)
		return o, nil
	}
	o.most = o.ask.Or(o.share).Tokens
	if pool.Tokens == nil {
		return o, nil
	}
	room := *account(d).Remaining().Tokens
	for _, c := range o.live {
		has, err := l.pool(ctx, c)
		if err != nil {
			return o, err
		}
		room += c.Work.Budget.Returnable(has.Amount()).Minus(o.share).Tokens
	}
	if p.Spawn { // d goes on, and needs a part for itself
		room -= o.share.Tokens
	}
	o.most = min(o.most, room)
	return o, nil
}

// reserve gives a new child its part of d's budget, as it was offered.
func (l ledger) reserve(ctx context.Context, d, child *Delegation, o offer) error {
	a, share := account(d), o.share
	short := o.ask.Or(share).Minus(a.Remaining().Amount())
	for _, c := range o.live {
		if short.Zero() {
			break
		}
		has, err := l.pool(ctx, c)
		if err != nil {
			return err
		}
		got, err := l.takeBack(ctx, c, has.Amount().Minus(share).Least(short))
		if err != nil {
			return err
		}
		a.Returned(got)
		short = short.Minus(got)
	}
	if o.need > 0 {
		share.Tokens = min(share.Tokens, max(o.most, o.need))
	}
	child.Work.Budget = a.Grant(o.ask, share)
	if child.Work.Budget.Elastic {
		a.Lend(child.ID)
	}
	a.Hops++
	return l.join(ctx, d, child.To)
}

// join counts an agent among those of the task; the root's account knows them (H23).
func (l ledger) join(ctx context.Context, d *Delegation, name string) error {
	root, err := l.tx.Delegation(ctx, l.tx.Task().RootID)
	if err != nil || account(root).Has(agent.Key(name)) {
		return err
	}
	account(root).Join(agent.Key(name))
	if root.ID == d.ID {
		return nil // whoever makes the hop writes d
	}
	return save(ctx, l.tx, root)
}

// takeBack lowers what c was granted by at most want, from its own remainder first, then
// from its children's, and returns by how much.
func (l ledger) takeBack(ctx context.Context, c *Delegation, want budget.Amount) (budget.Amount, error) {
	a := c.Work.Budget
	want = a.Returnable(want)
	live, err := l.lent(ctx, c)
	if err != nil || want.Zero() {
		return budget.Amount{}, err
	}
	short := want.Minus(a.Remaining().Amount())
	for _, below := range live {
		if short.Zero() {
			break
		}
		got, err := l.takeBack(ctx, below, short)
		if err != nil {
			return budget.Amount{}, err
		}
		a.Returned(got)
		short = short.Minus(got)
	}
	got := a.GiveBack(want)
	return got, save(ctx, l.tx, c)
}

// charge adds what d's own run used, in place of what was reserved for a call, and tells
// d's callers. Where that goes beyond what is left, children that live give back what nobody
// asked for; what then still is too much is noted. It returns the line of callers.
func (l ledger) charge(ctx context.Context, d *Delegation, used budget.Amount) (line, error) {
	a := account(d)
	held, _ := a.Release()
	a.Charge(used)
	live, err := l.lent(ctx, d)
	if err != nil {
		return line{}, err
	}
	for _, c := range live {
		short := a.Short()
		if short.Zero() {
			break
		}
		got, err := l.takeBack(ctx, c, short)
		if err != nil {
			return line{}, err
		}
		a.Returned(got)
	}
	a.Exceeded = a.Over()
	of, err := l.line(ctx, d)
	if err != nil || used == held {
		return of, err
	}
	return of, l.raise(ctx, of.callers, used, held)
}

// settle ends the reservation of a child that has ended: what it used moves up to its
// caller p, whom the caller of settle writes.
func settle(p, child *Delegation) {
	if child.Work.Budget == nil || p.Work.Runs != child.Generation {
		return
	}
	account(p).Settle(child.Work.Budget)
	account(p).Unlend(child.ID)
}

// maxClaimed is how many tokens one report may say.
const maxClaimed = 1 << 46

// amountOf is what a model or a program said that it used.
func amountOf(u agent.Usage) budget.Amount {
	// A program may claim anything; sums of what is kept must not overflow.
	a := budget.Amount{Tokens: min(u.InputTokens, maxClaimed) + min(u.OutputTokens, maxClaimed)}
	if u.USD != nil {
		a.MicroUSD = budget.Micro(*u.USD)
	}
	return a
}

// worked adds an attempt's running time, when it ended or waits, to what d has used.
func (r *run) worked(d *Delegation) {
	r.confine(d)
	d.Work.RanFor += r.clock.elapsed()
	account(d).Used.Time += r.clock.elapsed()
}

// exceeded is how a run ends that used more than it may.
func exceeded(d *Delegation) *agent.Failure {
	a := account(d)
	over := a.Over()
	if over == "" {
		return nil
	}
	return agent.Fail(agent.CodeBudget, "%s", a.Sentence(d.To, over))
}

// overdrawn ends an attempt before it begins where the one before was lost after it had
// passed its budget, or where those whom it works for have used up theirs. Where results of a model's calls are due they are recorded first (O17).
func (r *run) overdrawn(job agent.Job) error {
	if n := len(job.Turns); n > 0 && job.Turns[n-1].Message.Role == agent.FromModel {
		return nil
	}
	if over := exceeded(&r.d); over != nil {
		return over
	}
	if r.d.ParentID == "" {
		return nil
	}
	read := r.e.committed
	if r.ahead != nil {
		read = func(_ context.Context, id string) (*Delegation, error) { return r.ahead.callers[id], nil }
	}
	of, err := lineOf(r.ctx, &r.d, read)
	if err != nil {
		return err
	}
	if over := of.drained(&r.d); over != nil && of.who.ID != r.d.ID {
		return over
	}
	return nil
}

// leftAt is what the budget of the first delegation had left at the turn: its limits
// without what the kept turns, and the children that they tell of, have used.
func (e *Engine) leftAt(ctx context.Context, o forkPoint) (*budget.Limits, error) {
	if o.d.Work.Budget == nil {
		return o.task.Budget, nil
	}
	account := budget.Account{Limits: o.d.Work.Budget.Limits}
	for _, t := range o.turns {
		account.Charge(amountOf(t.Usage))
		account.Used.Time += t.Took
		for _, id := range t.Children {
			c, err := e.Store.Delegation(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("what %s has used: %w", id, err)
			}
			account.Charge(amountOf(c.Usage))
		}
	}
	return new(account.Remaining()), nil
}
