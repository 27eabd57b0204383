package budget

import (
	"slices"
	"time"
)

// Spent is what the delegation and everything below it used so far.
func (a *Account) Spent() Amount { return a.Used.Plus(a.Settled) }

// Charge adds what the run itself used.
func (a *Account) Charge(used Amount) { a.Used = a.Used.Plus(used) }

// What Account.Exceeded and Over say.
const (
	Tokens   = "tokens"
	USD      = "usd"
	Time     = "time"
	Handoffs = "handoffs"
	Agents   = "agents"
)

// Over says which limit was passed, "" for none. A run stops once more was used than the
// limit (O16: strictly more); what live children reserve counts as used, or all of
// them together could pass it.
func (a *Account) Over() string {
	if a.Exceeded != "" {
		return a.Exceeded
	}
	spent, taken := a.Spent(), a.taken()
	switch {
	case a.Limits.Tokens != nil && taken.Tokens > *a.Limits.Tokens:
		return Tokens
	case a.Limits.MicroUSD != nil && taken.MicroUSD > *a.Limits.MicroUSD:
		return USD
	case a.Limits.Time != nil && spent.Time > *a.Limits.Time: // a caller waits while its children run
		return Time
	default:
		return ""
	}
}

// Grant reserves for a child and returns its account: at most ask, and at most what of
// the remainder is its share. What is limited here is limited there, too. Hand-overs and
// agents are counted by whoever makes them, so they are not divided.
func (a *Account) Grant(ask Limits, share Amount) *Account {
	left := a.Remaining()
	child := &Account{Fixed: ask, Limits: Limits{Handoffs: ask.Handoffs, Tokens: granted(left.Tokens, ask.Tokens, share.Tokens),
		MicroUSD: granted(left.MicroUSD, ask.MicroUSD, share.MicroUSD), Time: granted(left.Time, ask.Time, share.Time)}}
	l := child.Limits
	child.Elastic = ask.Tokens == nil && l.Tokens != nil || ask.MicroUSD == nil && l.MicroUSD != nil || ask.Time == nil && l.Time != nil
	a.Reserved = a.Reserved.Plus(l.Amount())
	return child
}

// granted is one field of a grant. Who asked gets up to all that is left; who did not
// gets the share.
func granted[T ~int64](left, ask *T, share T) *T {
	if left == nil {
		if ask == nil {
			return nil
		}
		return new(max(*ask, 0))
	}
	v := min(*left, share)
	if ask != nil {
		v = max(min(*left, *ask), 0)
	}
	return &v
}

// Spare is what of the account's own remainder nobody asked for.
func (a *Account) Spare() Amount { return a.Returnable(a.Remaining().Amount()) }

// Returnable is the part of x in the fields that nobody asked for.
func (a *Account) Returnable(x Amount) Amount {
	if a.Fixed.Tokens != nil {
		x.Tokens = 0
	}
	if a.Fixed.MicroUSD != nil {
		x.MicroUSD = 0
	}
	if a.Fixed.Time != nil {
		x.Time = 0
	}
	return x
}

// GiveBack lowers the limits by at most want, never below what was used and is reserved,
// and returns by how much.
func (a *Account) GiveBack(want Amount) Amount {
	got := a.Spare().Least(want)
	a.Limits = a.Limits.without(got)
	return got
}

// Short is by how much what was used and is reserved passes the limits.
func (a *Account) Short() Amount {
	over := a.taken().Minus(a.Limits.Amount())
	over.Time = 0
	if a.Limits.Tokens == nil {
		over.Tokens = 0
	}
	if a.Limits.MicroUSD == nil {
		over.MicroUSD = 0
	}
	return over
}

// Returned takes what a live child gave back out of what is reserved for it.
func (a *Account) Returned(got Amount) { a.Reserved = a.Reserved.Minus(got) }

func (l Limits) without(got Amount) Limits {
	l.Tokens, l.MicroUSD, l.Time = less(l.Tokens, got.Tokens), less(l.MicroUSD, got.MicroUSD), less(l.Time, got.Time)
	return l
}

// Settle ends a child's reservation: what it used moves up, the rest is free again.
func (a *Account) Settle(child *Account) {
	a.Reserved = a.Reserved.Minus(child.Limits.Amount())
	a.Below = a.Below.Minus(child.Whole().timeless())
	a.Settled = a.Settled.Plus(child.Spent())
	child.Reserved, child.Below = Amount{}, Amount{}
}

// Join counts an agent among those that take part, by its key (H23).
func (a *Account) Join(agent string) {
	if !a.Has(agent) {
		a.Team = append(a.Team, agent)
	}
}

// Has reports whether an agent takes part already.
func (a *Account) Has(agent string) bool { return slices.Contains(a.Team, agent) }

// Lend notes a live child whose grant may be taken back.
func (a *Account) Lend(id string) { a.Lent = append(a.Lent, id) }

// Unlend forgets it once it ended.
func (a *Account) Unlend(id string) {
	a.Lent = slices.DeleteFunc(a.Lent, func(l string) bool { return l == id })
}

// TimeLeft is how long the run may still work, and whether that is limited at all.
func (a *Account) TimeLeft() (time.Duration, bool) {
	if a == nil || a.Limits.Time == nil {
		return 0, false
	}
	return max(*a.Limits.Time-a.Spent().Time, 1), true // 1 ns ends it at once
}

// taken is what of the limits is gone or promised. What live children reserve stands for
// what they use, until together they used more.
func (a *Account) taken() Amount {
	return a.Spent().Plus(a.Held).Plus(a.Reserved.most(a.Below))
}

// Whole is all that was used at and below the delegation, with what calls in flight there
// may cost: the figure that no promise hides. A caller's Below is the sum of its live
// children's.
func (a *Account) Whole() Amount { return a.Spent().Plus(a.Held).Plus(a.Below) }

// Unspent is what is left of the limits when only Whole counts, not what was promised to
// children. A call below a caller is checked against the caller's.
func (a *Account) Unspent() Limits {
	if a == nil {
		return Limits{}
	}
	left, whole := a.Limits, a.Whole()
	left.Tokens, left.MicroUSD, left.Time = less(left.Tokens, whole.Tokens), less(left.MicroUSD, whole.MicroUSD), less(left.Time, whole.Time)
	return left
}

// Drained says which of tokens and money is used up, "" for neither: no call can be paid.
func (l Limits) Drained() string {
	switch {
	case l.Tokens != nil && *l.Tokens <= 0:
		return Tokens
	case l.MicroUSD != nil && *l.MicroUSD <= 0:
		return USD
	default:
		return ""
	}
}

// Hold reserves what the next call may cost: what is sent, and an answer of output tokens.
// The call before is the better guess where it cost more.
func (a *Account) Hold(input, output int64) {
	a.Held = Amount{Tokens: max(sum(input, output), a.Call.Tokens), MicroUSD: a.Call.MicroUSD}
	a.HeldOut = output
}

// Release ends the reservation of a call and returns it: what the call cost is charged in
// its place.
func (a *Account) Release() (held Amount, output int64) {
	held, output = a.Held, a.HeldOut
	a.Held, a.HeldOut = Amount{}, 0
	return held, output
}

// Raise tells a caller that below it so much was used or held, and so much is held no more.
func (a *Account) Raise(more, less Amount) {
	a.Below = a.Below.Plus(more.timeless()).Minus(less.timeless())
}

// timeless is a without its time: a caller waits while its children run, and what a child
// may run is never more than its own limit.
func (a Amount) timeless() Amount {
	a.Time = 0
	return a
}

// most returns the larger of a and b in each.
func (a Amount) most(b Amount) Amount {
	return Amount{Tokens: max(a.Tokens, b.Tokens), MicroUSD: max(a.MicroUSD, b.MicroUSD), Time: max(a.Time, b.Time)}
}
