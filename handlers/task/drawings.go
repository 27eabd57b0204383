package task

import (
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views/figures"
	view "gatehouse/views/task"
)

// taskWaits is the section of a live task's page: who waits for whom, oldest first.
func (p *Pages) taskWaits(f *handlers.Frame, page *view.DelegationPage, tr *trace) error {
	var ids []string
	for _, d := range tr.tree {
		if !d.State.Ended() && len(ids) < maxWaits {
			ids = append(ids, d.ID)
		}
	}
	found, err := p.Traces.Delegations(f.Ctx, ids)
	if err != nil {
		return err
	}
	var live []orchestrator.Delegation
	for _, id := range ids {
		if d, ok := found[id]; ok && !d.State.Ended() {
			live = append(live, d)
		}
	}
	waits, err := p.WhoWaits().Of(f.Ctx, live)
	page.WaitNote, page.Waits = handlers.NoCycle, handlers.WaitRows(waits)
	return err
}

// maxWaits is how many live delegations a task's page lists; /api/v1/waits has all.
const maxWaits = 200

// taskDrawings fills what the tabs of a task's page show of its figures and its flow.
func (p *Pages) taskDrawings(f *handlers.Frame, page *view.DelegationPage, tree []orchestrator.Delegation) error {
	page.Heavy = page.EventsN > maxStory
	var err error
	if page.Tab == view.TabFlow {
		page.Flow, err = p.flowOf(f, page.TaskID, tree)
		return err
	}
	sums, err := handlers.SumsOf(f.Ctx, p.Traces, page.TaskID, tree)
	page.Figures = figures.TaskFigures{Total: insight.Of(sums), Lists: []figures.FigureList{
		{By: insight.ByAgent, Title: "By agent", Rows: insight.By(sums, insight.ByAgent)}, {By: insight.ByModel, Title: "By model", Rows: insight.By(sums, insight.ByModel)}}}
	return err
}
