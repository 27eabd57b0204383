package budget

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Plus returns the sum of a and b. Programs claim what they like, again and again: a sum
// that is too large stays at the largest, for one that wraps would be a budget anew.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Tokens: sum(a.Tokens, b.Tokens), MicroUSD: sum(a.MicroUSD, b.MicroUSD), Time: sum(a.Time, b.Time)}
}

func sum[T ~int64](a, b T) T {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Minus returns what is left of a without b, never below 0.
func (a Amount) Minus(b Amount) Amount {
	return Amount{Tokens: max(a.Tokens-b.Tokens, 0), MicroUSD: max(a.MicroUSD-b.MicroUSD, 0), Time: max(a.Time-b.Time, 0)}
}

// Least returns the smaller of a and b in each.
func (a Amount) Least(b Amount) Amount {
	return Amount{Tokens: min(a.Tokens, b.Tokens), MicroUSD: min(a.MicroUSD, b.MicroUSD), Time: min(a.Time, b.Time)}
}

// Share is the n-th part of a, at least 1 of what is not 0.
func (a Amount) Share(n int) Amount {
	return Amount{Tokens: part(a.Tokens, n), MicroUSD: part(a.MicroUSD, n), Time: part(a.Time, n)}
}

func part[T ~int64](a T, n int) T {
	if a == 0 {
		return 0
	}
	return max(a/T(max(n, 1)), 1)
}

// Zero reports whether a is nothing at all.
func (a Amount) Zero() bool { return a == Amount{} }

// Least joins limits: each field is the smallest of those that are given.
func Least(all ...*Limits) Limits {
	var l Limits
	for _, other := range all {
		if other == nil {
			continue
		}
		l.Tokens = least(l.Tokens, other.Tokens)
		l.MicroUSD = least(l.MicroUSD, other.MicroUSD)
		l.Handoffs = least(l.Handoffs, other.Handoffs)
		l.Agents = least(l.Agents, other.Agents)
		l.Time = least(l.Time, other.Time)
	}
	return l
}

func least[T int | int64 | time.Duration](a, b *T) *T {
	switch {
	case b == nil:
		return a
	case a == nil || *b < *a:
		v := *b // a copy: limits are shared between configuration and rows
		return &v
	default:
		return a
	}
}

// Amount is l as an amount; what is not limited is 0.
func (l Limits) Amount() Amount { return l.Or(Amount{}) }

// Or is l as an amount, with x where nothing is limited.
func (l Limits) Or(x Amount) Amount {
	if l.Tokens != nil {
		x.Tokens = *l.Tokens
	}
	if l.MicroUSD != nil {
		x.MicroUSD = *l.MicroUSD
	}
	if l.Time != nil {
		x.Time = *l.Time
	}
	return x
}

// Plus raises what is limited by x.
func (l Limits) Plus(x Amount) Limits {
	l.Tokens, l.MicroUSD, l.Time = more(l.Tokens, x.Tokens), more(l.MicroUSD, x.MicroUSD), more(l.Time, x.Time)
	return l
}

func more[T ~int64](limit *T, x T) *T {
	if limit == nil {
		return nil
	}
	return new(sum(*limit, x))
}

// Micro is dollars as millionths of a dollar, rounded up: no call is free that costs
// something. What is no sum of money is 0.
func Micro(usd float64) int64 {
	micro := math.Ceil(usd*1e6 - 1e-6)
	if math.IsNaN(micro) || micro <= 0 {
		return 0
	}
	return int64(min(micro, 1e15))
}

// Sentence says that agent used more than it may, and what to do.
func (a *Account) Sentence(agent, over string) string {
	spent := a.Whole()
	advice := " Raise `budget." + over + "`, or send a smaller task."
	switch {
	case over == Tokens && a.Limits.Tokens != nil:
		return fmt.Sprintf("Token budget exceeded: %s used %s of %s tokens.", agent, Number(spent.Tokens), Number(*a.Limits.Tokens)) + advice
	case over == USD && a.Limits.MicroUSD != nil:
		return fmt.Sprintf("Money budget exceeded: %s used $%s of $%s.", agent, Dollars(spent.MicroUSD), Dollars(*a.Limits.MicroUSD)) + advice
	case over == Time && a.Limits.Time != nil:
		return fmt.Sprintf("Time budget exceeded: %s has run for the %s that it may.", agent, Span(*a.Limits.Time)) + advice
	default:
		return fmt.Sprintf("The budget of %s is used up (%s).", agent, over) + advice
	}
}

// Number writes 150000 as 150,000.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Dollars writes millionths of a dollar, to the cent where that is exact.
func Dollars(micro int64) string {
	if micro%10_000 == 0 {
		return strconv.FormatFloat(float64(micro)/1e6, 'f', 2, 64)
	}
	return strconv.FormatFloat(float64(micro)/1e6, 'f', -1, 64)
}

// Span is a duration for a sentence, to the second from a second on.
func Span(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
