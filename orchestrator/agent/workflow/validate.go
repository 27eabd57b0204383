package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
)

// Problem is one thing that is wrong with a plan. Step is where, as a path from the
// agent's declaration, such as "steps[2].if" or "steps[3].parallel[0].agent".
type Problem struct {
	Step    string
	Message string
}

// Validate reads a plan without running it. Known says whether an agent of that name
// is configured; a plan without problems can still fail on what agents answer.
func Validate(steps []agent.Step, known func(string) bool) []Problem {
	c := check{known: known, places: map[string]int{}, ids: map[string]string{}, produced: map[string]bool{}}
	if len(steps) == 0 {
		c.say("steps", "a workflow without steps does nothing: give it at least one")
	}
	for i, s := range steps {
		path := fmt.Sprintf("steps[%d]", i)
		c.name(path, nameOf(s, i), s)
		c.places[nameOf(s, i)] = i
		for j, b := range s.Parallel {
			c.name(fmt.Sprintf("%s.parallel[%d]", path, j), b.ID, b)
		}
	}
	for i, s := range steps {
		c.step(fmt.Sprintf("steps[%d]", i), nameOf(s, i), s)
	}
	return c.problems
}

type check struct {
	known    func(string) bool
	places   map[string]int    // steps that a goto can name
	ids      map[string]string // every id and the path of its step
	produced map[string]bool
	problems []Problem
}

func (c *check) say(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Step: path, Message: fmt.Sprintf(format, args...)})
}

// name collects the id and the artifact of a step.
func (c *check) name(path, id string, s agent.Step) {
	if s.Produces != "" {
		c.produced[s.Produces] = true
	}
	if s.ID == "" && s.Agent != "" || id == "" {
		c.say(path+".id", "a step with an agent needs an id, by which others read its answer")
		return
	}
	if err := agent.CheckName(id); err != nil {
		c.say(path+".id", "the id %q: use letters, digits, - _ and ., at most %d bytes", id, agent.MaxName)
	}
	if other, taken := c.ids[id]; taken {
		c.say(path+".id", "the id %s is that of %s too: rename one", id, other)
		return
	}
	c.ids[id] = path
}

// step checks one step of the plan itself.
func (c *check) step(path, name string, s agent.Step) {
	switch {
	case s.Agent != "" && s.Parallel != nil:
		c.say(path, "a step has an agent or parallel branches, not both")
	case s.Parallel != nil && len(s.Parallel) == 0:
		c.say(path+".parallel", "there is no branch: give it at least one, or leave parallel out")
	case s.Agent == "" && s.Parallel == nil && s.Goto == "":
		c.say(path, "the step does nothing: give it an agent, parallel branches or a goto")
	}
	c.jump(path, name, s)
	c.work(path, s)
	for j, b := range s.Parallel {
		c.branch(fmt.Sprintf("%s.parallel[%d]", path, j), b)
	}
}

// branch checks one branch of a group: an agent's step that goes nowhere else.
func (c *check) branch(path string, b agent.Step) {
	if b.Parallel != nil {
		c.say(path+".parallel", "a branch cannot have branches: put them beside each other, or make them a workflow of their own")
	}
	if b.Goto != "" || b.Limit != 0 {
		c.say(path+".goto", "a branch cannot go elsewhere: all branches end at the join; put the goto behind the group")
	}
	if b.Agent == "" && b.Parallel == nil {
		c.say(path+".agent", "a branch needs an agent")
	}
	c.work(path, b)
}

func (c *check) jump(path, name string, s agent.Step) {
	if s.Goto == "" {
		if s.Limit != 0 {
			c.say(path+".limit", "a limit without a goto does nothing: remove it, or say where to go")
		}
		return
	}
	if s.Limit < 1 {
		c.say(path+".limit", "a goto needs a limit of 1 or more, or the workflow may never end")
	}
	_, there := c.places[s.Goto]
	inside, branch := c.ids[s.Goto]
	switch {
	case !there && branch:
		c.say(path+".goto", "%s is a branch (%s): go to its group", s.Goto, inside)
	case !there:
		c.say(path+".goto", "no step has the id %q; there are: %s", s.Goto, c.list())
	case s.Goto == name && s.Agent == "" && s.Parallel == nil:
		c.say(path+".goto", "the step goes to itself and does nothing there: name another step")
	}
}

// work checks what steps and branches have in common.
func (c *check) work(path string, s agent.Step) {
	if s.Agent != "" && !c.known(s.Agent) {
		c.say(path+".agent", "no agent is named %q", s.Agent)
	}
	if s.Agent == "" && s.Task != "" {
		c.say(path+".task", "nobody gets this task: a task needs an agent")
	}
	if s.Agent == "" && s.Produces != "" {
		c.say(path+".produces", "nothing is produced without an agent")
	}
	if s.If != "" {
		c.condition(path+".if", s.If)
	}
	if s.Task != "" {
		c.task(path+".task", s)
	}
}

func (c *check) condition(path, condition string) {
	if _, err := compile(condition); err != nil {
		c.say(path, "the condition cannot be read: %v", err)
		return
	}
	for _, r := range conditionReads(condition) {
		if _, ok := c.ids[r.id]; !ok && r.field == "" {
			c.say(path, "no step has the id %q; there are: %s", r.id, c.list())
		}
	}
}

func (c *check) task(path string, s agent.Step) {
	t, err := parseTask(s.ID, s.Task)
	if err != nil {
		c.say(path, "the template cannot be read: %v", err)
		return
	}
	for _, p := range templateReads(t.Root) {
		switch {
		case p[0] != "Task" && p[0] != "Steps" && p[0] != "Artifacts":
			c.say(path, "there is no .%s; a template reads .Task, .Steps.ID and .Artifacts.NAME", p[0])
		case len(p) == 1:
		case p[0] == "Steps" && c.ids[p[1]] == "":
			c.say(path, "no step has the id %q; there are: %s", p[1], c.list())
		case p[0] == "Artifacts" && !c.produced[p[1]]:
			c.say(path, "no step produces the artifact %q", p[1])
		}
	}
}

func (c *check) list() string {
	ids := slices.Sorted(maps.Keys(c.ids))
	return strings.Join(ids, ", ")
}

// Reaches returns an error when the steps of a workflow lead back to it, itself or
// through other workflows, and names the chain. Only steps count: they are certain
// to be taken, whereas what an agent may delegate to is up to it and to the guards.
func Reaches(specs []agent.Spec) error {
	next := map[string][]string{}
	names := map[string]string{}
	var order []string
	for _, s := range specs {
		if s.Kind != agent.Workflow {
			continue
		}
		key := agent.Key(s.Name)
		names[key], order = s.Name, append(order, key)
		for _, step := range s.Steps {
			for _, one := range append([]agent.Step{step}, step.Parallel...) {
				if one.Agent != "" {
					next[key] = append(next[key], agent.Key(one.Agent))
				}
			}
		}
	}
	cleared := map[string]bool{}
	for _, start := range order {
		if loop := loopFrom(start, next, cleared, nil); loop != nil {
			chain := each.Of(loop, func(key string) string { return names[key] })
			return fmt.Errorf("workflow %s reaches itself: %s; give one of these steps to another agent", chain[0], strings.Join(chain, " → "))
		}
	}
	return nil
}

// loopFrom walks depth first and returns the loop that it runs into, if any.
func loopFrom(at string, next map[string][]string, cleared map[string]bool, path []string) []string {
	if i := slices.Index(path, at); i >= 0 {
		return append(slices.Clone(path[i:]), at)
	}
	if cleared[at] {
		return nil
	}
	for _, to := range next[at] {
		if loop := loopFrom(to, next, cleared, append(path, at)); loop != nil {
			return loop
		}
	}
	cleared[at] = true
	return nil
}
