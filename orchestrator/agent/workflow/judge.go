package workflow

import (
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
)

// maxReason is how much of what was answered stands in a reason, in characters for each step.
const maxReason = 2000

// A plan's condition with a goto back judges what ran last (H26). Whoever works next is told:
// retry and the reason where the plan goes back, validated where it goes on.

// handover is the command object that tells an agent what the plan said, nil where it said
// nothing.
func (p *play) handover(to, task string) *agent.Handover {
	if p.judged == (agent.Judged{}) {
		return nil
	}
	return &agent.Handover{Goto: to, Update: agent.HandoverUpdate{
		Context: agent.HandoverContext{PreviousAgent: p.agent, TaskDescription: task, Judged: p.judged}}}
}

// goesBack notes that the goto of the step at was taken.
func (p *play) goesBack(at, to int) {
	if p.judged = (agent.Judged{}); to > at {
		return
	}
	s := p.memo.Steps[at]
	why := "Step " + nameOf(s, at) + " goes back here"
	if s.If != "" {
		why = "The condition of step " + nameOf(s, at) + " holds: " + s.If
	}
	p.judged = agent.Judged{Retry: true, Reason: fmt.Sprintf("%s (return %d of %d).%s", why, p.jumps[at], max(1, s.Limit), p.answered())}
}

// goesOn notes that the plan passes the goto of the step at, because its condition does not
// hold or, where it does, because it was taken as often as it may. What one condition found
// bad no other one makes good.
func (p *play) goesOn(at int, holds bool) {
	s := p.memo.Steps[at]
	if s.If == "" || !p.back(at) || p.judged.Validated != nil && !*p.judged.Validated {
		return
	}
	good := !holds
	p.judged = agent.Judged{Validated: &good, Reason: fmt.Sprintf("The condition of step %s does not hold: %s.", nameOf(s, at), s.If)}
	if holds {
		p.judged.Reason = fmt.Sprintf("The condition of step %s still holds: %s. It may go back no more often than %d times.%s", nameOf(s, at), s.If, max(1, s.Limit), p.answered())
	}
}

// back reports whether the step at has a goto to a step before it, or to itself.
func (p *play) back(at int) bool {
	for to, target := range p.memo.Steps[:at+1] {
		if nameOf(target, to) == p.memo.Steps[at].Goto {
			return true
		}
	}
	return false
}

// answered is what ran last, and its answers.
func (p *play) answered() string {
	var b strings.Builder
	for _, id := range p.last {
		v := p.data.all[id]
		text := strings.TrimSpace(v.Text)
		if v.raw != nil {
			text = strings.TrimSpace(text + " " + string(v.raw))
		}
		if v.State != completed {
			text = v.reason(id)
		}
		if r := []rune(text); len(r) > maxReason {
			text = string(r[:maxReason]) + "…"
		}
		if text != "" {
			fmt.Fprintf(&b, " Step %s answered: %s", id, text)
		}
	}
	return b.String()
}
