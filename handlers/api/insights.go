package api

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// insightsShape is what GET /insights answers. From and To are the whole days that were
// summed, in UTC; both are included.
type insightsShape struct {
	From     string            `json:"from"`
	To       string            `json:"to"`
	By       insight.Dimension `json:"by"`
	AsOf     *time.Time        `json:"as_of"`  // of the newest event that is counted
	Behind   int64             `json:"behind"` // events that are not counted yet
	Total    insight.Figures   `json:"total"`
	Items    []insight.Row     `json:"items"`
	Breakers []insight.Breaker `json:"breakers"`
	Turns    []insight.Turn    `json:"breaker_history"` // newest first
}

// longestRange bounds what one question may read.
const longestRange = 400 // days

// rangeOf reads ?from= and ?to=; without them it is the last 30 days.
func (a *API) rangeOf(c echo.Context) (first, last int64, err error) {
	q := &query{Values: c.QueryParams()}
	from, to := q.time("from"), q.time("to")
	if q.err != nil {
		return 0, 0, q.err
	}
	if to.IsZero() {
		to = a.Now()
	}
	if from.IsZero() {
		from = to.AddDate(0, 0, -29)
	}
	first, last = insight.Day(from), insight.Day(to)
	switch {
	case last < first:
		return 0, 0, bad("The range ends before it begins: from %s to %s.", from.Format(time.DateOnly), to.Format(time.DateOnly))
	case last-first >= longestRange:
		return 0, 0, bad("The range has %d days; %d is the most. Ask for parts of it.", last-first+1, longestRange)
	case first < 0:
		return 0, 0, bad("The range begins before 1970. Use a later from.")
	}
	return first, last, nil
}

// Insights answers GET /insights?from=&to=&by=&agent=&repository=.
func (a *API) Insights(c echo.Context) error {
	ctx := c.Request().Context()
	if err := only(c.QueryParams(), "from", "to", "by", "agent", "repository"); err != nil {
		return err
	}
	if who := caller(c); who.Run != nil {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. Ask for /tasks/%s/insights.", who.Run.TaskID)
	}
	by := cmp.Or(insight.Dimension(c.QueryParam("by")), insight.ByAgent)
	if !slices.Contains(insight.Dimensions(), by) {
		return bad("Figures are not listed by %.40q. Use one of: %v.", by, insight.Dimensions())
	}
	first, last, err := a.rangeOf(c)
	if err != nil {
		return err
	}
	out := insightsShape{From: insight.DayTime(first).Format(time.DateOnly), To: insight.DayTime(last).Format(time.DateOnly), By: by}
	state, err := a.Sums.InsightState(ctx)
	if err != nil {
		return err
	}
	if out.Behind = state.Behind; !state.At.IsZero() {
		out.AsOf = &state.At
	}
	sums, err := a.Sums.Insight(ctx, first, last, by, insight.Filter{Agent: c.QueryParam("agent"), Repository: c.QueryParam("repository")})
	if err != nil {
		return err
	}
	out.Total, out.Items = insight.Of(sums), insight.By(sums, by)
	if out.Breakers, err = a.Sums.Breakers(ctx); err != nil {
		return err
	}
	if out.Turns, err = a.Sums.BreakerTurns(ctx, insight.DayTime(first), insight.DayTime(last+1), 50); err != nil {
		return err
	}
	out.Breakers, out.Turns = wire.Items(out.Breakers), wire.Items(out.Turns)
	return c.JSON(http.StatusOK, out)
}

// TaskInsights answers GET /tasks/{id}/insights.
func (a *API) TaskInsights(c echo.Context) error {
	ctx := c.Request().Context()
	t, err := a.Ids.Task(ctx, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	sums, err := handlers.TaskSums(ctx, a.Sums, t.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"task_id": t.ID, "complete": true, "total": insight.Of(sums),
		"agents": insight.By(sums, insight.ByAgent), "models": insight.By(sums, insight.ByModel)})
}

// Waits answers GET /waits?task=&after=&limit=: who waits for whom.
func (a *API) Waits(c echo.Context) error {
	ctx, q, who := c.Request().Context(), asked(c, "task", "after", "limit"), caller(c)
	limit, after := q.limit(), q.id(orchestrator.DelegationPrefix)
	if q.err != nil {
		return q.err
	}
	out := wire.Waits{Note: handlers.NoCycle}
	out.Slots.Used, out.Slots.Size = a.Engine.Slots()
	waits := a.WhoWaits()
	var next string
	var err error
	switch id := q.Get("task"); {
	case id != "":
		d, err := a.Ids.Delegation(ctx, who, id)
		if err != nil {
			return err
		}
		if out.Items, err = waits.Task(ctx, d.TaskID); err != nil {
			return err
		}
	case who.Run != nil:
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. Ask for /waits?task=%s.", who.Run.TaskID)
	default:
		if out.Items, next, err = waits.Site(ctx, after, limit); err != nil {
			return err
		}
	}
	if out.Landings, err = waits.Queues(ctx, out.Items, q.Get("task") == ""); err != nil {
		return err
	}
	out.Items, out.Next = wire.Items(out.Items), wire.Maybe(next)
	return c.JSON(http.StatusOK, out)
}
