package overview

import (
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
	"gatehouse/views/figures"
	view "gatehouse/views/overview"

	"github.com/labstack/echo/v4"
)

// longestRange is how many days the page of figures shows at most.
const longestRange = 400

// Insights answers GET /insights.
func (p *Pages) Insights(c echo.Context) error {
	f, err := p.Begin(c, views.SectionInsights, "Insights")
	if err != nil {
		return err
	}
	page := view.InsightsPage{Chrome: f.Chrome}
	first, last, problem := p.days(c)
	page.From, page.To, page.Error = insight.DayTime(first).Format(time.DateOnly), insight.DayTime(last).Format(time.DateOnly), problem
	only := insight.Filter{Agent: c.QueryParam("agent"), Repository: c.QueryParam("repository")}
	page.Agent, page.Repo, page.MayAudit = only.Agent, only.Repository, f.Who.Has(people.AuditRead)
	conf := p.Engine.Config()
	page.Agents = each.Of(conf.Agents.All(), func(s agent.Spec) string { return s.Name })
	page.Repos = slices.Sorted(maps.Keys(conf.Repositories))
	state, err := p.Sums.InsightState(f.Ctx)
	if err != nil {
		return err
	}
	page.AsOf, page.Behind = state.At, state.Behind
	for _, l := range []figures.FigureList{{By: insight.ByAgent, Title: "By agent"}, {By: insight.ByModel, Title: "By model"}, {By: insight.ByRepository, Title: "By repository"}, {By: insight.ByDay, Title: "By day"}} {
		sums, err := p.Sums.Insight(f.Ctx, first, last, l.By, only)
		if err != nil {
			return err
		}
		if l.By == insight.ByAgent {
			page.Total, page.Any = insight.Of(sums), len(sums) > 0
		}
		l.Rows = insight.By(sums, l.By)
		page.Lists = append(page.Lists, l)
	}
	if page.Breakers, err = p.Sums.Breakers(f.Ctx); err != nil {
		return err
	}
	if page.Turns, err = p.Sums.BreakerTurns(f.Ctx, insight.DayTime(first), insight.DayTime(last+1), 20); err != nil {
		return err
	}
	return handlers.Render(c, http.StatusOK, view.Insights(page))
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
		return handlers.NotFound("list of figures", name)
	}
	first, last, problem := p.days(c)
	if problem != "" {
		return handlers.Refuse(orchestrator.CodeBadRequest, problem)
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
	f, err := p.Begin(c, views.SectionInsights, "Who waits for whom")
	if err != nil {
		return err
	}
	after := c.QueryParam("after")
	if after != "" && !handlers.IsID(after, orchestrator.DelegationPrefix) {
		return handlers.Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the newest.")
	}
	rows, next, err := p.WhoWaits().Site(f.Ctx, after, 0)
	if err != nil {
		return err
	}
	page := view.WaitsPage{Chrome: f.Chrome, Waits: handlers.WaitRows(rows), Note: handlers.NoCycle, Later: after != ""}
	queues, err := p.WhoWaits().Queues(f.Ctx, nil, true)
	if err != nil {
		return err
	}
	for _, q := range queues {
		page.Landings = append(page.Landings, q.Says)
	}
	page.Used, page.Slots = p.Engine.Slots()
	if next != "" {
		page.OlderURL = handlers.WithParam(f.Chrome.Path, "after", next)
	}
	return handlers.Render(c, http.StatusOK, view.Waits(page))
}
