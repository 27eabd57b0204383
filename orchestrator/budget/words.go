package budget

import (
	"fmt"
	"strconv"
	"time"
)

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
