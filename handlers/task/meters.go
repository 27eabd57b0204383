package task

import (
	"fmt"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
	"gatehouse/views/figures"
	view "gatehouse/views/task"
)

// metersOf measures a task against its budget: what was used, and what is reserved for
// work that is under way. What is not limited has no meter.
func metersOf(root orchestrator.Delegation, handoffs, maxHandoffs int) []view.Meter {
	var all []view.Meter
	used := handlers.Usage(root.Usage)
	if b := root.Work.Budget; b != nil {
		spent, kept := b.Spent(), b.Reserved
		if root.State.Ended() {
			kept.Tokens, kept.MicroUSD, kept.Time = 0, 0, 0
		}
		if b.Limits.Tokens != nil {
			n := max(spent.Tokens, int64(used.Tokens))
			words := views.Count(n) + " used"
			if n == 0 && !used.Reported {
				words = notReported
			}
			all = append(all, meter("tokens", words, reserved(kept.Tokens, views.Count(kept.Tokens)), views.Count(*b.Limits.Tokens), float64(n), float64(kept.Tokens), float64(*b.Limits.Tokens)))
		}
		if b.Limits.MicroUSD != nil {
			n := float64(spent.MicroUSD)
			if used.USD != nil {
				n = max(n, *used.USD*1e6)
			}
			words := dollars(n) + " used"
			if n == 0 && used.USD == nil {
				words = notReported
			}
			all = append(all, meter("money", words, reserved(kept.MicroUSD, dollars(float64(kept.MicroUSD))), dollars(float64(*b.Limits.MicroUSD)), n, float64(kept.MicroUSD), float64(*b.Limits.MicroUSD)))
		}
		if b.Limits.Time != nil {
			all = append(all, meter("running time", views.Duration(spent.Time.Round(time.Second))+" used", reserved(int64(kept.Time), views.Duration(kept.Time)),
				views.Duration(*b.Limits.Time), float64(spent.Time), float64(kept.Time), float64(*b.Limits.Time)))
		}
	}
	if maxHandoffs > 0 {
		all = append(all, meter("hand-overs", fmt.Sprintf("%d", handoffs), "", fmt.Sprint(maxHandoffs), float64(handoffs), 0, float64(maxHandoffs)))
	}
	return all
}

const notReported = "not reported"

func meter(name, used, kept, limit string, u, k, most float64) view.Meter {
	return view.NewMeter(name, used+kept+" of "+limit, u, k, most)
}

// reserved says how much is, or nothing.
func reserved(n int64, words string) string {
	if n <= 0 {
		return ""
	}
	return " · " + words + " reserved"
}

// dollars is a sum in millionths of a dollar.
func dollars(micro float64) string { return strings.TrimSuffix(fmt.Sprintf("$%.2f", micro/1e6), ".00") }

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
