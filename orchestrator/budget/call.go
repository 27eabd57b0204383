package budget

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
