package task

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/flow"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// Flow answers GET /delegations/{id}/flow.
func (p *Pages) Flow(c echo.Context) error {
	f, err := p.Begin(c, views.SectionDelegations, "Flow")
	if err != nil {
		return err
	}
	d, drawing, err := p.flow(c, f)
	if err != nil {
		return err
	}
	return handlers.Render(c, http.StatusOK, view.FlowView(view.FlowPage{Chrome: f.Chrome, TaskID: d.TaskID, Text: d.Text, Flow: drawing}))
}

// FlowSVG answers GET /delegations/{id}/flow.svg with the drawing alone.
func (p *Pages) FlowSVG(c echo.Context) error {
	who, _ := handlers.Who(c)
	_, drawing, err := p.flow(c, &handlers.Frame{Ctx: c.Request().Context(), Who: who})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := view.FlowSVG(drawing, true).Render(c.Request().Context(), &b); err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "image/svg+xml", b.Bytes())
}

// flow reads the task that the address names; the first value is its root.
func (p *Pages) flow(c echo.Context, f *handlers.Frame) (orchestrator.Delegation, view.Flow, error) {
	d, err := p.Ids.Delegation(f.Ctx, f.Who, c.Param("id"))
	if err != nil {
		return d, view.Flow{}, err
	}
	t, err := p.Reader.Task(f.Ctx, d.TaskID)
	if err != nil {
		return d, view.Flow{}, err
	}
	if d, err = p.Reader.Delegation(f.Ctx, t.RootID); err != nil {
		return d, view.Flow{}, err
	}
	tree, err := p.Traces.Outline(f.Ctx, d.TaskID)
	if err != nil {
		return d, view.Flow{}, err
	}
	drawing, err := p.flowOf(f, d.TaskID, tree)
	return d, drawing, err
}

// handsAtOnce is how many hand-overs of a task are held with their texts.
const handsAtOnce = 500

// flowOf draws a whole task. Of its texts and its refusals only some are held at once.
func (p *Pages) flowOf(f *handlers.Frame, taskID string, tree []orchestrator.Delegation) (view.Flow, error) {
	drawing := view.Flow{States: map[string]string{}, Runs: map[string]int{}}
	for _, d := range tree {
		drawing.States[d.To] = string(d.State)
		drawing.Runs[d.To]++
		if d.ParentID == "" {
			drawing.Person = d.Requester
		}
	}
	if drawing.Person == "" || drawing.Runs[drawing.Person] > 0 { // an agent may have a person's name
		drawing.Person += " (person)"
	}
	edges, err := p.arrows(f, taskID, newTrace(tree), drawing.Person)
	drawing.Chart = flow.Lay(edges)
	return drawing, err
}

// arrows merges the hand-overs of a task in the order of time, refused ones between the others.
func (p *Pages) arrows(f *handlers.Frame, taskID string, t *trace, person string) ([]flow.Edge, error) {
	var all flow.Merger
	refused := handlers.Tale{Log: p.Traces, TaskID: taskID, Filter: orchestrator.EventFilter{Types: []event.Type{event.DelegationRefused}}}
	refusals := func(before time.Time) error {
		for {
			e, ok, err := refused.Peek(f.Ctx)
			if err != nil || !ok || !before.IsZero() && !e.At.Before(before) {
				return err
			}
			all.Add(t.refusal(e))
			if _, _, err = refused.Next(f.Ctx); err != nil {
				return err
			}
		}
	}
	for from := 0; from < len(t.tree); from += handsAtOnce {
		to := min(from+handsAtOnce, len(t.tree))
		ids := make([]string, 0, to-from)
		for _, d := range t.tree[from:to] {
			ids = append(ids, d.ID)
		}
		hands, err := p.Traces.Hands(f.Ctx, ids)
		if err != nil {
			return nil, err
		}
		for i := from; i < to; i++ {
			if i > 0 { // the root comes first whatever the clocks of two nodes say
				if err := refusals(t.tree[i].CreatedAt); err != nil {
					return nil, err
				}
			}
			all.Add(p.arrow(t, i, person, hands[t.tree[i].ID]))
		}
	}
	err := refusals(time.Time{}) // those after the last hand-over
	return all.Edges(), err
}

// refusal is the arrow of a hand-over that a guard refused.
func (t *trace) refusal(e event.Event) flow.Arrow {
	facts, from := event.Read[event.DelegationRefusedData](e), ""
	if i, ok := t.at[e.DelegationID]; ok {
		from = t.tree[i].To
	}
	return flow.Arrow{From: from, To: cmp.Or(strings.TrimSpace(facts.To), "nobody"), Code: cmp.Or(facts.Code, "refused"), Label: facts.Message}
}

// arrow is the hand-over to the i-th delegation. A workflow's steps hand to one another: its
// next step gets what the step before it made (H25, H26).
func (p *Pages) arrow(t *trace, i int, person string, hand orchestrator.Hand) flow.Arrow {
	d := &t.tree[i]
	a := flow.Arrow{From: person, To: d.To, Label: orchestrator.Title(hand.Text)}
	up, ok := t.at[d.ParentID]
	if !ok {
		return a
	}
	a.From = t.tree[up].To
	if len(hand.Artifacts) > 0 {
		a.Label = strings.Join(hand.Artifacts, ", ")
	}
	spec, _ := p.Engine.Config().Agents.Get(a.From)
	if !p.Engine.Traits(a.From).Planned {
		return a
	}
	steps, siblings := flatSteps(spec.Steps), t.kids[up]
	before := siblings[:sort.SearchInts(siblings, i)]
	for _, k := range slices.Backward(before) {
		s := &t.tree[k]
		if s.EndedAt == nil || s.EndedAt.After(d.CreatedAt) {
			continue
		}
		a.From = s.To
		if made := produces(steps, s.To); made != "" {
			a.Label = made
		}
		break
	}
	again := slices.ContainsFunc(before, func(k int) bool { return t.tree[k].To == d.To })
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
