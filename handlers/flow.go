package handlers

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/flow"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// Flow answers GET /delegations/{id}/flow.
func (p *Pages) Flow(c echo.Context) error {
	f, err := p.begin(c, views.SectionDelegations, "Flow")
	if err != nil {
		return err
	}
	d, drawing, err := p.flow(c, f)
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.FlowView(views.FlowPage{Chrome: f.chrome, TaskID: d.TaskID, Text: d.Text, Flow: drawing}))
}

// FlowSVG answers GET /delegations/{id}/flow.svg with the drawing alone.
func (p *Pages) FlowSVG(c echo.Context) error {
	who, _ := Who(c)
	_, drawing, err := p.flow(c, &frame{ctx: c.Request().Context(), who: who})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := views.FlowSVG(drawing, true).Render(c.Request().Context(), &b); err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "image/svg+xml", b.Bytes())
}

// flow reads the task that the address names; the first value is its root.
func (p *Pages) flow(c echo.Context, f *frame) (orchestrator.Delegation, views.Flow, error) {
	d, err := p.Ids.Delegation(f.ctx, f.who, c.Param("id"))
	if err != nil {
		return d, views.Flow{}, err
	}
	tree, err := p.Reader.Tree(f.ctx, d.TaskID)
	if err != nil {
		return d, views.Flow{}, err
	}
	story, err := p.story(f, d.TaskID)
	if err != nil {
		return d, views.Flow{}, err
	}
	for _, x := range tree {
		if x.ParentID == "" {
			d = x
		}
	}
	return d, p.flowOf(tree, story), nil
}

// flowOf draws a task from what a page has read of it.
func (p *Pages) flowOf(tree []orchestrator.Delegation, story []event.Event) views.Flow {
	f := views.Flow{States: map[string]string{}, Runs: map[string]int{}, Cut: len(story) >= maxStory}
	names := map[string]bool{}
	for _, d := range tree {
		names[d.To] = true
		f.States[d.To] = string(d.State)
		f.Runs[d.To]++
		if d.ParentID == "" {
			f.Person = d.Requester
		}
	}
	if f.Person == "" || names[f.Person] { // an agent may have a person's name
		f.Person += " (person)"
	}
	f.Chart = flow.Lay(flow.Merge(p.arrows(tree, story, f.Person)))
	return f
}

// timed is an arrow with its time, so that refusals come between hand-overs.
type timed struct {
	flow.Arrow
	at time.Time
}

func (p *Pages) arrows(tree []orchestrator.Delegation, story []event.Event, person string) []flow.Arrow {
	byID := map[string]orchestrator.Delegation{}
	before := map[string][]orchestrator.Delegation{} // siblings, by parent, oldest first
	var all []timed
	for _, d := range tree {
		byID[d.ID] = d
		a := flow.Arrow{From: person, To: d.To, Label: orchestrator.Title(d.Text)}
		if parent, ok := byID[d.ParentID]; ok {
			a = p.arrow(parent, before[parent.ID], d)
		}
		before[d.ParentID] = append(before[d.ParentID], d)
		all = append(all, timed{a, d.CreatedAt})
	}
	for _, e := range story {
		if e.Type == event.DelegationRefused {
			facts := factsOf(e)
			from := byID[e.DelegationID].To
			all = append(all, timed{flow.Arrow{From: from, To: first(facts.To, "nobody"), Code: first(facts.Code, "refused"), Label: facts.Message}, e.At})
		}
	}
	// The root comes first whatever the clocks of two nodes say.
	slices.SortStableFunc(all[min(1, len(all)):], func(a, b timed) int { return a.at.Compare(b.at) })
	arrows := make([]flow.Arrow, len(all))
	for i, a := range all {
		arrows[i] = a.Arrow
	}
	return arrows
}

// arrow is the hand-over to d. A workflow's steps hand to one another: its next step gets
// what the step before it made (H25, H26).
func (p *Pages) arrow(parent orchestrator.Delegation, siblings []orchestrator.Delegation, d orchestrator.Delegation) flow.Arrow {
	a := flow.Arrow{From: parent.To, To: d.To, Label: orchestrator.Title(d.Text)}
	if h := d.Work.Handover; h != nil && len(h.Update.Artifacts) > 0 {
		a.Label = strings.Join(slices.Sorted(maps.Keys(h.Update.Artifacts)), ", ")
	}
	spec, _ := p.Engine.Config().Agents.Get(parent.To)
	if spec.Kind != agent.Workflow {
		return a
	}
	steps := flatSteps(spec.Steps)
	again := false
	for _, s := range siblings {
		again = again || s.To == d.To
		if s.EndedAt == nil || s.EndedAt.After(d.CreatedAt) {
			continue
		}
		a.From = s.To
		if made := produces(steps, s.To); made != "" {
			a.Label = made
		}
	}
	a.Condition = condition(steps, d.To, again)
	return a
}

// flatSteps lists the steps of a workflow with its parallel branches.
func flatSteps(steps []agent.Step) []agent.Step {
	var all []agent.Step
	for _, s := range steps {
		all = append(append(all, s), flatSteps(s.Parallel)...)
	}
	return all
}

func produces(steps []agent.Step, name string) string {
	for _, s := range steps {
		if agent.Key(s.Agent) == agent.Key(name) && s.Produces != "" {
			return s.Produces
		}
	}
	return ""
}

// condition is what led to a step: its own if, or that of the goto which led back to it.
func condition(steps []agent.Step, name string, again bool) string {
	for _, s := range steps {
		if agent.Key(s.Agent) != agent.Key(name) {
			continue
		}
		if !again {
			return s.If
		}
		for _, back := range steps {
			if back.Goto == s.ID && back.Goto != "" {
				return back.If
			}
		}
	}
	return ""
}
