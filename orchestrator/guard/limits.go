package guard

import (
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
)

// checkRemote bounds the way through other systems: a chain does not see what happens
// there, so each system counts the hand-overs between systems that led to it.
func checkRemote(h Hop) (string, string) {
	switch {
	case !h.Elsewhere:
		return "", "on this system"
	case h.MaxRemote <= 0:
		return "", "hand-overs between systems are not limited"
	case h.RemoteHop < h.MaxRemote:
		return "", fmt.Sprintf("%d of %d hand-overs between systems made", h.RemoteHop, h.MaxRemote)
	}
	return CodeMaxDepth, fmt.Sprintf("Maximum delegation depth reached between systems: %d of %d such hand-overs led here, so %s was refused. "+
		"Split the task instead of going further, or hand it to an agent of this system.", h.RemoteHop, h.MaxRemote, h.route())
}

// checkRepeat refuses the hand-over that was made a moment ago with the same content:
// the deadlock check (H15). Other texts to the same agent are no repetition (H27).
func checkRepeat(h Hop) (string, string) {
	if h.Hash == "" {
		return "", "nothing to compare"
	}
	from, to := agent.Key(h.from()), agent.Key(h.to())
	for _, e := range h.Recent[max(0, len(h.Recent)-window):] {
		if e.Hash == h.Hash && agent.Key(e.From) == from && agent.Key(e.To) == to {
			return CodeRepeat, fmt.Sprintf("Circular handoff: %s → %s was made with the same text, context and files within the last %d hand-overs of the task; the chain is %s. "+
				"Use the answer that you have, change what you ask for, or hand to another agent.", safe(h.from()), safe(h.to()), window, h.route())
		}
	}
	return "", fmt.Sprintf("not among the last %d hand-overs", window)
}

// checkBreaker refuses while the target rests after failures (H12). The work of a person
// is no hand-over and passes.
func checkBreaker(h Hop) (string, string) {
	b := h.Breaker
	switch {
	case b.State == "" || b.State == Closed:
		if b.Failures > 0 {
			return "", fmt.Sprintf("closed; %d failures in a row", b.Failures)
		}
		return "", "closed"
	case h.byPerson():
		return "", string(b.State) + ", but a person asks"
	case b.MayProbe(h.Now):
		return "", "half open: this would be the one probe"
	}
	when := "until the one probe under way has ended"
	if b.State == Open {
		when = fmt.Sprintf("for %s more, until %s", budget.Span(b.Until.Sub(h.Now)), clock(b.Until))
	}
	return CodeBreaker, fmt.Sprintf("Agent handoffs temporarily disabled: %s failed %d times in a row and rests since %s, %s. Last error: %s. "+
		"Hand it to another agent, or answer with what you have.", safe(h.to()), b.Failures, clock(b.OpenedAt), when, `"`+safeUpTo(b.Reason, 2*maxReason)+`"`)
}

// checkBudget refuses what could not be paid for: hand-overs first, then tokens (H22),
// money, agents (H23) and time. At the limit nothing is left, so it is refused (H: ≥).
func checkBudget(h Hop) (string, string) {
	p := h.Budget
	if h.byPerson() {
		return "", "a person's task has its own budget"
	}
	refuse := func(what, have, key string) (string, string) {
		return CodeBudget, fmt.Sprintf("%s: %s; %s was refused. Answer with what you have, raise `%s`, or send a smaller task.", what, have, h.route(), key)
	}
	switch l := p.Limits; {
	case p.Task.Handoffs != nil && h.Handoffs >= *p.Task.Handoffs:
		return refuse("Handoff limit reached", fmt.Sprintf("the task has made %d of %d hand-overs", h.Handoffs, *p.Task.Handoffs), "budget.handoffs")
	case l.Handoffs != nil && p.Hops >= *l.Handoffs:
		return refuse("Handoff limit reached", fmt.Sprintf("%s has made %d of %d hand-overs", safe(h.from()), p.Hops, *l.Handoffs), "budget.handoffs")
	case p.Left.Tokens != nil && *p.Left.Tokens <= 0:
		return refuse("Token budget exceeded", fmt.Sprintf("0 tokens are left of %s", budget.Number(*l.Tokens)), "budget.tokens")
	case p.Left.MicroUSD != nil && *p.Left.MicroUSD <= 0:
		return refuse("Money budget exceeded", fmt.Sprintf("$0 is left of $%s", budget.Dollars(*l.MicroUSD)), "budget.usd")
	case p.Task.Agents != nil && !p.Known && p.Team >= *p.Task.Agents:
		return refuse("Agent limit reached", fmt.Sprintf("%d of %d different agents take part in the task, and %s is not one of them", p.Team, *p.Task.Agents, safe(h.to())), "budget.agents")
	case p.Left.Time != nil && *p.Left.Time <= 0:
		return refuse("Time budget exceeded", fmt.Sprintf("no running time is left of %s", budget.Span(*l.Time)), "budget.time")
	}
	return "", h.affordable()
}

// affordable says what is left.
func (h Hop) affordable() string {
	var left []string
	p := h.Budget
	if p.Left.Tokens != nil {
		left = append(left, fmt.Sprintf("%s of %s tokens", budget.Number(*p.Left.Tokens), budget.Number(*p.Limits.Tokens)))
	}
	if p.Left.MicroUSD != nil {
		left = append(left, fmt.Sprintf("$%s of $%s", budget.Dollars(*p.Left.MicroUSD), budget.Dollars(*p.Limits.MicroUSD)))
	}
	if p.Left.Time != nil {
		left = append(left, fmt.Sprintf("%s of %s", budget.Span(*p.Left.Time), budget.Span(*p.Limits.Time)))
	}
	if p.Task.Handoffs != nil {
		left = append(left, fmt.Sprintf("%d of %d hand-overs", max(*p.Task.Handoffs-h.Handoffs, 0), *p.Task.Handoffs))
	}
	if len(left) == 0 {
		return "no budget limits it"
	}
	return "left: " + strings.Join(left, ", ")
}

// checkHuman never refuses by itself: it says whether a person is asked before the work
// begins (H18).
func checkHuman(h Hop) (string, string) {
	if h.AskFirst && !h.byPerson() {
		return "", "asks a person first"
	}
	return "", "nobody is asked"
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
