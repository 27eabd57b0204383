package views_test

import (
	"time"

	"gatehouse/orchestrator/flow"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
	"gatehouse/views/figures"
	overviewview "gatehouse/views/overview"
	taskview "gatehouse/views/task"
)

// storyFlow is a team with a loop, a branch, a refusal and hostile names.
func storyFlow() taskview.Flow {
	return taskview.Flow{Person: "ann", States: map[string]string{"release": "running", "researcher": "completed", "analyst": "completed", "coder": "awaiting_approval"},
		Runs: map[string]int{"researcher": 2, "analyst": 2}, Chart: flow.Lay(flow.Merge([]flow.Arrow{
			{From: "ann", To: "release", Label: "Release 2.0"}, {From: "release", To: "researcher", Label: "Research it"},
			{From: "researcher", To: "analyst", Label: "ResearchPack"}, {From: "analyst", To: "researcher", Condition: "steps.score.data.score < 80", Label: "again"},
			{From: "researcher", To: "analyst", Label: "ResearchPack"}, {From: "analyst", To: "coder", Label: "ValidationReport"},
			{From: "release", To: "docs", Label: hostile}, {From: "coder", To: "release", Label: "Help", Code: "cycle"}, {From: "coder", To: hostile, Label: hostile, Code: "unknown_agent"},
		}))}
}

func figuresFixture() insight.Sums {
	sums := insight.Sums{}
	for day := range int64(14) {
		at := insight.Day(now) - 13 + day
		for i, agent := range []string{"kik", "coder", "reviewer"} {
			k := insight.Key{Day: at, Agent: agent, Repository: "app", Model: []string{"claude-sonnet", "", "gpt-5"}[i]}
			add := func(m insight.Measure, code string, n, total int64) {
				k.Measure, k.Code = m, code
				sums.Add(k, n, total)
			}
			add(insight.Tasks, "", day, 0)
			add(insight.Handoffs, "", 3*day+int64(i), 0)
			add(insight.ModelCalls, "", 9*day, 0)
			add(insight.InputTokens, "", 0, 40_000*(day+1)/int64(i+1))
			add(insight.OutputTokens, "", 0, 9_000*(day+2)/int64(i+1))
			add(insight.Money, "", 4, 200_000*day)
			add(insight.Refusals, []string{"cycle", "max_depth", "repeat"}[i], day%3, 0)
			add(insight.Failures, "exit", day%2, 0)
			k.Bucket = insight.BucketOf(time.Duration(day+1) * 300 * time.Millisecond)
			add(insight.Accepted, "", 5, 5*(day+1)*300_000)
			add(insight.Done, "", 5, 5*(day+1)*9_300_000)
			add(insight.Lasted, "", 5, 5*(day+1)*12_300_000)
			k.Bucket = 0
			add(insight.Asked, "", day+2, 0)
			add(insight.Ended, "completed", 2*day, 0)
			add(insight.Opened, "", day%4, 0)
			for n, channel := range []string{"web", "telegram", "rule", "api"} {
				add(insight.Verdicts, insight.VerdictCode(channel, "approve"), day/2+int64(n), 0)
				add(insight.Verdicts, insight.VerdictCode(channel, "reject"), day%2, 0)
				add(insight.Decided, channel, 1, (day+int64(4*n))*60_000_000)
			}
			add(insight.Verdicts, insight.VerdictCode("", "expired"), day%3, 0)
		}
	}
	return sums
}

func insightsFixture() overviewview.InsightsPage {
	sums := figuresFixture()
	p := overviewview.InsightsPage{Chrome: chrome(views.SectionInsights, "Insights", views.InsightsPath), From: "2026-06-02", To: "2026-07-01", Any: true, MayAudit: true, Agents: []string{"kik", "coder", "reviewer"}, Repos: []string{"app"}, AsOf: now.Add(-8 * time.Second), Behind: 12, Total: insight.Of(sums),
		Breakers: []insight.Breaker{{Agent: "coder", State: "open", Failures: 3, Reason: hostile, ChangedAt: now.Add(-time.Minute)}},
		Turns:    []insight.Turn{{TaskID: taskID, N: 4, Agent: "coder", Opened: true, Reason: "claude: not signed in", At: now.Add(-time.Minute)}}}
	for _, by := range []insight.Dimension{insight.ByAgent, insight.ByModel, insight.ByRepository, insight.ByDay} {
		p.Lists = append(p.Lists, figures.FigureList{By: by, Title: "By " + string(by), Rows: insight.By(sums, by)})
	}
	return p
}

func waitsFixture() overviewview.WaitsPage {
	return overviewview.WaitsPage{Chrome: chrome(views.SectionInsights, "Who waits for whom", views.WaitsPath), Note: "Nobody waits in a circle.", Used: 2, Slots: 8, Waits: []views.WaitRow{
		{ID: taskID, Agent: "kik", Text: hostile, State: "waiting", Says: "it waits for coder below", Since: now.Add(-3 * time.Minute), Below: []views.Crumb{{Text: "coder awaiting approval", Href: "/delegations/x"}}},
		{ID: "dlg_2", Agent: "coder", Text: "Fix it", State: "awaiting_approval", Says: "1 of 2 yeses are there; who can still say yes: bob", Since: now.Add(-time.Minute), Href: "/approvals/x"},
		{ID: "dlg_3", Agent: "docs", Text: "Write", State: "queued", Says: "no worker is free: all 8 of this node are busy", Since: now},
	}}
}

func flowTab() taskview.DelegationPage {
	p := delegationPage(taskview.TabFlow)
	p.Flow = storyFlow()
	return p
}

func figuresTab() taskview.DelegationPage {
	p := delegationPage(taskview.TabFigures)
	sums := figuresFixture()
	p.Figures = figures.TaskFigures{Total: insight.Of(sums), Lists: []figures.FigureList{{By: insight.ByAgent, Title: "By agent", Rows: insight.By(sums, insight.ByAgent)}}}
	return p
}
