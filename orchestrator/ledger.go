package orchestrator

import (
	"context"

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

// reserve gives a new child its part of d's budget: the least of what was asked for, what
// its agent may use and what is left. What nobody asked for is shared equally with the
// children that live, the hops to come of the same turn and, where d goes on, with d.
func (l ledger) reserve(ctx context.Context, d, child *Delegation, target agent.Spec, p planned) error {
	a := account(d)
	pool, err := l.pool(ctx, d)
	if err != nil {
		return err
	}
	live, err := l.lent(ctx, d)
	if err != nil {
		return err
	}
	n := len(live) + max(p.toCome, 1)
	if p.Spawn {
		n++
	}
	ask := budget.Least(p.Budget, target.Budget)
	share := pool.Amount().Share(n)
	short := ask.Or(share).Minus(a.Remaining().Amount())
	for _, c := range live {
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
	child.Work.Budget = a.Grant(ask, share)
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
	return l.tx.Move(ctx, root, root.State, root.Attempt)
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
	return got, l.tx.Move(ctx, c, c.State, c.Attempt)
}

// charge adds what d's own run used. Where that goes beyond what is left, children that
// live give back what nobody asked for; what then still is too much is noted.
func (l ledger) charge(ctx context.Context, d *Delegation, used budget.Amount) error {
	a := account(d)
	a.Charge(used)
	live, err := l.lent(ctx, d)
	if err != nil {
		return err
	}
	for _, c := range live {
		short := a.Short()
		if short.Zero() {
			break
		}
		got, err := l.takeBack(ctx, c, short)
		if err != nil {
			return err
		}
		a.Returned(got)
	}
	a.Exceeded = a.Over()
	return nil
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
// passed its budget. Where results of a model's calls are due they are recorded first (O17).
func (r *run) overdrawn(job agent.Job) error {
	if n := len(job.Turns); n > 0 && job.Turns[n-1].Message.Role == agent.FromModel {
		return nil
	}
	if over := exceeded(&r.d); over != nil {
		return over
	}
	return nil
}
