// Package budget says what a delegation may use and has used: tokens, money,
// hand-overs, agents and running time. It is pure; who holds the task's row calls it.
//
// The room may import the standard library.
package budget

import "time"

// Limits is what may be used. A nil field limits nothing; 0 allows none (H19).
type Limits struct {
	Tokens   *int64         `json:"tokens,omitempty"` // input and output together
	MicroUSD *int64         `json:"micro_usd,omitempty"`
	Handoffs *int           `json:"handoffs,omitempty"`
	Agents   *int           `json:"agents,omitempty"` // different agents in the task (H23)
	Time     *time.Duration `json:"time,omitempty"`   // of running, never of waiting
}

// Amount is what was used, or is reserved.
type Amount struct {
	Tokens   int64         `json:"tokens,omitempty"`
	MicroUSD int64         `json:"micro_usd,omitempty"`
	Time     time.Duration `json:"time,omitempty"`
}

// Account is the budget of one delegation, kept in its row.
type Account struct {
	Limits   Limits `json:"limits"`
	Used     Amount `json:"used"`               // by its own run
	Settled  Amount `json:"settled"`            // by children that ended
	Reserved Amount `json:"reserved"`           // granted to children that live
	Held     Amount `json:"held,omitzero"`      // what the call in flight may cost
	HeldOut  int64  `json:"held_out,omitempty"` // the part of Held that is the answer's
	Below    Amount `json:"below,omitzero"`     // what live children, and all below them, used and hold
	Elastic  bool   `json:"elastic,omitempty"`  // nobody asked for this much: siblings may take of the rest
	Exceeded string `json:"exceeded,omitempty"` // which limit was passed
	Fixed    Limits `json:"fixed,omitzero"`     // what was asked for: nobody takes of it
	// Call is what the last call of a model used: the next one may well cost as much.
	Call Amount `json:"call,omitzero"`
	Hops int    `json:"hops,omitempty"` // hand-overs that the run made
	// Lent are the live children with elastic grants; Team, at the root, is who takes part.
	Lent []string `json:"lent,omitempty"`
	Team []string `json:"team,omitempty"`
}

// Remaining is what the run that has the account may still use: the limits without
// what was used, what the call in flight may cost and what live children reserve or, where
// they went beyond it, have used; never below 0.
func (a *Account) Remaining() Limits {
	if a == nil {
		return Limits{}
	}
	left, taken := a.Limits, a.taken()
	left.Tokens = less(left.Tokens, taken.Tokens)
	left.MicroUSD = less(left.MicroUSD, taken.MicroUSD)
	left.Time = less(left.Time, taken.Time)
	return left
}

func less[T ~int64](limit *T, taken T) *T {
	if limit == nil {
		return nil
	}
	return new(max(*limit-taken, 0))
}
