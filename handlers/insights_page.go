package handlers

import (
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
	"gatehouse/views/figures"
	overviewview "gatehouse/views/overview"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// longestRange is how many days the page of figures shows at most.
const longestRange = 400

// Insights answers GET /insights.
func (p *Pages) Insights(c echo.Context) error {
	f, err := p.begin(c, views.SectionInsights, "Insights")
	if err != nil {
		return err
	}
	page := overviewview.InsightsPage{Chrome: f.chrome}
	first, last, problem := p.days(c)
	page.From, page.To, page.Error = insight.DayTime(first).Format(time.DateOnly), insight.DayTime(last).Format(time.DateOnly), problem
	only := insight.Filter{Agent: c.QueryParam("agent"), Repository: c.QueryParam("repository")}
	page.Agent, page.Repo, page.MayAudit = only.Agent, only.Repository, f.who.Has(people.AuditRead)
	conf := p.Engine.Config()
	for _, s := range conf.Agents.All() {
		page.Agents = append(page.Agents, s.Name)
	}
	page.Repos = slices.Sorted(maps.Keys(conf.Repositories))
	state, err := p.Sums.InsightState(f.ctx)
	if err != nil {
		return err
	}
	page.AsOf, page.Behind = state.At, state.Behind
	for _, l := range []figures.FigureList{{By: insight.ByAgent, Title: "By agent"}, {By: insight.ByModel, Title: "By model"}, {By: insight.ByRepository, Title: "By repository"}, {By: insight.ByDay, Title: "By day"}} {
		sums, err := p.Sums.Insight(f.ctx, first, last, l.By, only)
		if err != nil {
			return err
		}
		if l.By == insight.ByAgent {
			page.Total, page.Any = insight.Of(sums), len(sums) > 0
		}
		l.Rows = insight.By(sums, l.By)
		page.Lists = append(page.Lists, l)
	}
	if page.Breakers, err = p.Sums.Breakers(f.ctx); err != nil {
		return err
	}
	if page.Turns, err = p.Sums.BreakerTurns(f.ctx, insight.DayTime(first), insight.DayTime(last+1), 20); err != nil {
		return err
	}
	return render(c, http.StatusOK, overviewview.Insights(page))
}

// days reads ?from= and ?to=. What is not understood is said, and the last 30 days are shown.
func (p *Pages) days(c echo.Context) (first, last int64, problem string) {
	last = insight.Day(p.Now())
	first = last - 29
	read := func(name string, into *int64) {
		s := c.QueryParam(name)
		if s == "" {
			return
		}
		t, err := time.Parse(time.DateOnly, s)
		if err != nil || t.Year() < 1970 {
			problem = fmt.Sprintf("The day %.40q is not understood. Write 2026-01-31.", s)
			return
		}
		*into = insight.Day(t)
	}
	wanted := [2]int64{first, last}
	read("to", &wanted[1])
	if c.QueryParam("from") == "" {
		wanted[0] = wanted[1] - 29
	}
	read("from", &wanted[0])
	switch {
	case problem != "":
		return first, last, problem
	case wanted[1] < wanted[0]:
		return first, last, "The days end before they begin. Choose a later second one."
	case wanted[1]-wanted[0] >= longestRange:
		return first, last, fmt.Sprintf("These are %d days; %d is the most at once.", wanted[1]-wanted[0]+1, longestRange)
	}
	return max(0, wanted[0]), wanted[1], ""
}

// byChannel is the file that lists decisions, which are no dimension of their own.
const byChannel = "channel"

// InsightsCSV answers GET /insights/{by}.csv.
func (p *Pages) InsightsCSV(c echo.Context) error {
	name := strings.TrimSuffix(c.Param("by"), ".csv")
	by := insight.Dimension(name)
	if name == byChannel {
		by = insight.ByAgent
	}
	if !slices.Contains(insight.Dimensions(), by) {
		return NotFound("list of figures", name)
	}
	first, last, problem := p.days(c)
	if problem != "" {
		return Refuse(orchestrator.CodeBadRequest, problem)
	}
	sums, err := p.Sums.Insight(c.Request().Context(), first, last, by, insight.Filter{Agent: c.QueryParam("agent"), Repository: c.QueryParam("repository")})
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	h.Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", "insights-"+name+".csv"))
	return csv.NewWriter(c.Response()).WriteAll(csvLines(name, sums, by))
}

func csvLines(name string, sums insight.Sums, by insight.Dimension) [][]string {
	if name == byChannel {
		lines := [][]string{figures.ChannelHead}
		for _, row := range insight.Of(sums).Channels() {
			lines = append(lines, figures.ChannelLine(row))
		}
		return lines
	}
	lines := [][]string{figures.CSVHead}
	for _, row := range insight.By(sums, by) {
		lines = append(lines, figures.CSVRow(row))
	}
	return lines
}

// Waits answers GET /waits.
func (p *Pages) Waits(c echo.Context) error {
	f, err := p.begin(c, views.SectionInsights, "Who waits for whom")
	if err != nil {
		return err
	}
	after := c.QueryParam("after")
	if after != "" && !IsID(after, orchestrator.DelegationPrefix) {
		return Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the newest.")
	}
	rows, next, err := p.waits().Site(f.ctx, after, 0)
	if err != nil {
		return err
	}
	page := overviewview.WaitsPage{Chrome: f.chrome, Waits: waitRows(rows), Note: NoCycle, Later: after != ""}
	queues, err := p.waits().Queues(f.ctx, nil, true)
	if err != nil {
		return err
	}
	for _, q := range queues {
		page.Landings = append(page.Landings, q.Says)
	}
	page.Used, page.Slots = p.Engine.Slots()
	if next != "" {
		page.OlderURL = withParam(f.chrome.Path, "after", next)
	}
	return render(c, http.StatusOK, overviewview.Waits(page))
}

func (p *Pages) waits() WaitsOf {
	return WaitsOf{Engine: p.Engine, Reader: p.Reader, Requests: p.Requests, Gateway: p.Gateway, Insights: p.Sums, Now: p.Now}
}

func waitRows(waits []wire.Wait) []views.WaitRow {
	var rows []views.WaitRow
	for _, w := range waits {
		r := views.WaitRow{ID: w.DelegationID, TaskID: w.TaskID, Agent: w.Agent, Text: w.Text, State: w.State, Says: w.Says, Since: w.Since}
		if w.For == WaitsForPeople && w.ApprovalID != "" {
			r.Href = views.ApprovalHref(w.ApprovalID)
		}
		for _, b := range w.Children[:min(len(w.Children), 5)] {
			r.Below = append(r.Below, views.Crumb{Text: b.Agent + " " + views.StateWord(b.State), Href: views.DelegationHref(b.ID)})
		}
		rows = append(rows, r)
	}
	return rows
}
