package workflow

import (
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
)

// States of a step that are told apart here; a delegation does not have the last.
const (
	completed = "completed" // a delegation's, the only good one
	rejected  = "rejected"  // a delegation's: people, or a rule of theirs, said no
	expired   = "expired"   // a delegation's: nobody decided in time
	skipped   = "skipped"   // its "if" was false
)

// play is one reading of the plan from its first step on.
type play struct {
	agent    string
	memo     memo
	children map[string]agent.Child // by ref
	data     data
	jumps    map[int]int  // how often the goto of a step was taken
	made     []string     // artifact names in the order in which they were first made
	last     []string     // ids of the step, or of the branches, that ran last
	judged   agent.Judged // what the conditions since then said about it
	news     []string     // what happened since the last answer that was there already
}

func newPlay(job agent.Job, m memo) *play {
	p := &play{agent: job.Agent.Name, memo: m, children: map[string]agent.Child{}, data: newData(m.Task, m.Steps), jumps: map[int]int{}}
	for _, c := range job.Children {
		p.children[c.Ref] = c
	}
	return p
}

// play goes through the plan until an answer is missing or the plan ends.
func (p *play) play(maxSteps int) (agent.Outcome, *agent.Failure) {
	steps := p.memo.Steps
	for at, taken := 0, 0; at < len(steps); taken++ {
		if taken >= maxSteps {
			return agent.Outcome{}, agent.Fail(agent.CodeStep, "Workflow %s took %d steps, which is the limit, and had not ended. Lower the limits of its gotos.", p.agent, maxSteps)
		}
		s := steps[at]
		holds, failure := p.holds(nameOf(s, at), s.If)
		if failure != nil {
			return agent.Outcome{}, failure
		}
		if !holds {
			p.data.skip(nameOf(s, at))
			p.goesOn(at, false)
			at++
			continue
		}
		if s.Agent != "" || len(s.Parallel) > 0 {
			park, failure := p.step(at)
			if park != nil || failure != nil {
				return agent.Outcome{Park: park}, failure
			}
			p.judged = agent.Judged{}
		}
		at = p.next(at)
	}
	return p.end()
}

// step does one step: it returns a Park while an answer is missing.
func (p *play) step(at int) (*agent.Park, *agent.Failure) {
	s := p.memo.Steps[at]
	s.ID = nameOf(s, at)
	group, branches := "", []agent.Step{s}
	if len(s.Parallel) > 0 {
		group, branches = s.ID, s.Parallel
	}
	var hops []agent.Hop
	var answers []agent.Child
	var ran []agent.Step
	open := false
	for _, b := range branches {
		if group != "" {
			holds, failure := p.holds(b.ID, b.If)
			if failure != nil {
				return nil, failure
			}
			if !holds {
				p.data.skip(b.ID)
				continue
			}
		}
		r := ref(p.memo.Round, group, b.ID, p.data.runs(b.ID)+1)
		child, there := p.children[r]
		switch {
		case !there:
			text, err := p.data.render(b)
			if err != nil {
				return nil, agent.Fail(agent.CodeStep, "Step %s has no task: %v.", b.ID, err)
			}
			// A plan means what it repeats, in a loop (H26) or side by side (H27): no two hops of
			// it have the same round.
			hops = append(hops, agent.Hop{Ref: r, To: b.Agent, Text: text, Round: len(p.children) + len(hops) + 1, Handover: p.handover(b.Agent, text)})
			p.news = append(p.news, fmt.Sprintf("step %s → %s", b.ID, b.Agent))
		case !child.Ended && child.State != agent.Refused:
			open = true
		default:
			ran, answers = append(ran, b), append(answers, child)
		}
	}
	if open || len(hops) > 0 {
		return &agent.Park{Hops: hops}, nil
	}
	return nil, p.join(at, ran, answers)
}

// join keeps the answers of a step or of all branches of a group. One that did not
// complete ends the workflow unless a later "if" reads its state.
func (p *play) join(at int, ran []agent.Step, answers []agent.Child) *agent.Failure {
	s := p.memo.Steps[at]
	p.news = nil
	p.last = nil
	for i, b := range ran {
		v, err := viewOf(b.Agent, answers[i])
		if err != nil {
			return agent.Fail(agent.CodeStep, "Step %s (agent %s): %v.", b.ID, b.Agent, err)
		}
		p.data.record(b.ID, v)
		p.last = append(p.last, b.ID)
		if v.State == completed && b.Produces != "" {
			p.keep(artifactOf(b.Produces, answers[i].Result))
		}
	}
	read := readStates(p.memo.Steps[at+1:])
	if len(s.Parallel) > 0 {
		p.data.record(nameOf(s, at), p.joined())
		if read[nameOf(s, at)] {
			return nil
		}
	}
	return p.failed(read)
}

// failed names the steps that ran last and did not complete, but for those whose
// state something else deals with. Where people said no to all of them, or nothing in time,
// that is no failure.
func (p *play) failed(dealtWith map[string]bool) *agent.Failure {
	var reasons []string
	ended := map[string]bool{}
	for _, id := range p.last {
		if v := p.data.all[id]; v.State != completed && !dealtWith[id] {
			reasons = append(reasons, v.reason(id))
			ended[v.State] = true
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return agent.Fail(codeOf(ended), "%s", strings.Join(reasons, " "))
}

// codeOf is how a plan ends whose steps ended in these states. A no weighs more than silence.
func codeOf(ended map[string]bool) string {
	for state := range ended {
		if state != rejected && state != expired {
			return agent.CodeStep
		}
	}
	if ended[rejected] {
		return agent.CodeRejected
	}
	return agent.CodeExpired
}

// next is the step after this one: the goto's while its limit lasts.
func (p *play) next(at int) int {
	s := p.memo.Steps[at]
	limit := max(1, s.Limit)
	if s.Goto == "" || p.jumps[at] >= limit {
		p.goesOn(at, true)
		return at + 1
	}
	for to, target := range p.memo.Steps {
		if nameOf(target, to) == s.Goto {
			p.jumps[at]++
			p.news = append(p.news, fmt.Sprintf("step %s: go to %s (%d of %d)", nameOf(s, at), s.Goto, p.jumps[at], limit))
			p.goesBack(at, to)
			return to
		}
	}
	return at + 1
}

func (p *play) holds(id, condition string) (bool, *agent.Failure) {
	ok, err := p.data.holds(condition)
	if err != nil {
		return false, agent.Fail(agent.CodeStep, "The condition of step %s could not be decided: %v. Its text is: %s", id, err, condition)
	}
	return ok, nil
}

func (p *play) keep(a agent.Artifact) {
	if _, again := p.data.artifacts[a.Name]; !again {
		p.made = append(p.made, a.Name)
	}
	p.data.artifacts[a.Name] = a
}

// artifactOf is the answer under the name that the step produces; where the agent
// itself returned an artifact of that name, it is that one.
func artifactOf(name string, r *agent.Result) agent.Artifact {
	if r == nil {
		return agent.Artifact{Name: name}
	}
	for _, a := range r.Artifacts {
		if a.Name == name {
			return a
		}
	}
	return agent.Artifact{Name: name, Text: r.Text}
}

// end makes the result of what ran last. A step that nobody made good fails the
// workflow here, also where an "if" looked at its state.
func (p *play) end() (agent.Outcome, *agent.Failure) {
	if failure := p.failed(nil); failure != nil {
		return agent.Outcome{}, failure
	}
	res := &agent.Result{Text: "No step ran: every condition was false."}
	switch len(p.last) {
	case 0:
	case 1:
		v := p.data.all[p.last[0]]
		res.Text, res.Data = v.Text, v.raw
	default:
		v := p.joined()
		res.Text, res.Data = v.Text, v.raw
	}
	for _, name := range p.made {
		res.Artifacts = append(res.Artifacts, p.data.artifacts[name])
	}
	return agent.Outcome{Result: res}, nil
}

// joined is a group as one step: the texts under the branches' names, the data as
// an object by branch, and the first state that is not good.
func (p *play) joined() view {
	v := view{State: completed}
	var texts []string
	values, raw := map[string]any{}, map[string]json.RawMessage{}
	for _, id := range p.last {
		b := p.data.all[id]
		if b.State != completed && v.State == completed {
			v.State, v.Code, v.Error, v.Agent = b.State, b.Code, b.Error, b.Agent
		}
		texts = append(texts, id+":\n"+b.Text)
		if b.raw != nil {
			values[id], raw[id] = b.Data, b.raw
		}
	}
	v.Text = strings.Join(texts, "\n\n")
	if len(raw) > 0 {
		v.Data = values
		v.raw, _ = json.Marshal(raw) // cannot fail: each value was read as JSON
	}
	return v
}

// nameOf is a step's id; a group or jump without one is named after its place.
func nameOf(s agent.Step, at int) string {
	switch {
	case s.ID != "":
		return s.ID
	case len(s.Parallel) > 0:
		return fmt.Sprintf("parallel%d", at+1)
	default:
		return fmt.Sprintf("step%d", at+1)
	}
}
