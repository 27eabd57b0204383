package budget_test

import (
	"testing"

	"gatehouse/orchestrator/budget"

	"pgregory.net/rapid"
)

// callers are the nodes above n, the nearest first.
func (n *node) callers() []*node {
	var all []*node
	for p := n.parent; p != nil; p = p.parent {
		all = append(all, p)
	}
	return all
}

// mayCall reports whether a call of n can be paid: by n and by all above it.
func (n *node) mayCall() bool {
	if n.account.Remaining().Drained() != "" {
		return false
	}
	for _, p := range n.callers() {
		if p.account.Unspent().Drained() != "" {
			return false
		}
	}
	return true
}

func (n *node) raise(more, less budget.Amount) {
	for _, p := range n.callers() {
		p.account.Raise(more, less)
	}
}

// TestCallsAreCheckedAgainstTheWholeLine makes calls at random in random trees, whose cost
// nobody can tell before, and loses some. What stands at the root is at any time exactly what
// was used and is held in the whole tree; no call begins once that is the limit, so what is
// used beyond it are the calls that were in flight (O15, O16).
func TestCallsAreCheckedAgainstTheWholeLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1000).Draw(t, "limit")
		root := &node{account: &budget.Account{Limits: budget.Limits{Tokens: &limit}}}
		all, used, inFlight := []*node{root}, int64(0), map[*node]int64{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			n := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			if n.ended {
				continue
			}
			cost, calls := inFlight[n]
			switch act := rapid.IntRange(0, 4).Draw(t, "act"); {
			case act == 0:
				left := n.account.Remaining()
				child := &node{account: n.account.Grant(budget.Limits{}, left.Amount().Share(rapid.IntRange(1, 4).Draw(t, "sharers"))), parent: n}
				n.children, all = append(n.children, child), append(all, child)
			case act < 3 && !calls && n.mayCall():
				if root.account.Whole().Tokens >= limit {
					t.Fatalf("a call began with %+v of %d", root.account.Whole(), limit)
				}
				n.account.Hold(rapid.Int64Range(1, 100).Draw(t, "input"), rapid.Int64Range(1, 100).Draw(t, "output"))
				n.raise(n.account.Held, budget.Amount{})
				inFlight[n] = rapid.Int64Range(0, 2000).Draw(t, "cost")
			case calls:
				held, _ := n.account.Release()
				n.account.Charge(budget.Amount{Tokens: cost})
				n.raise(budget.Amount{Tokens: cost}, held)
				used += cost
				delete(inFlight, n)
			case act == 4 && n != root && len(n.live()) == 0 && !calls:
				n.end()
			}
			var held int64
			for _, n := range all {
				held += n.account.Held.Tokens
			}
			if whole := root.account.Whole().Tokens; whole != used+held {
				t.Fatalf("the root counts %d; %d were used and %d are held", whole, used, held)
			}
		}
	})
}
