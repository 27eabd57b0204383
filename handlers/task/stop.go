package task

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// StopPage answers GET /delegations/stop?agent=NAME: what would be stopped, and the form
// that does it.
func (p *Pages) StopPage(c echo.Context) error {
	return p.stopPage(c, http.StatusOK, view.StopPage{Agent: strings.TrimSpace(c.QueryParam("agent"))})
}

// stopPage counts what runs or waits for a form that is empty, or that was not taken.
func (p *Pages) stopPage(c echo.Context, status int, page view.StopPage) error {
	f, err := p.Begin(c, views.SectionDelegations, "Stop all work")
	if err != nil {
		return err
	}
	n, err := p.Engine.Underway(f.Ctx, page.Agent)
	if err != nil {
		return err
	}
	page.Chrome, page.Agent, page.Would = f.Chrome, n.Agent, n
	for _, s := range p.Engine.Config().Agents.All() {
		page.Names = append(page.Names, s.Name)
	}
	return handlers.Render(c, status, view.Stop(page))
}

// StopAll answers POST /delegations/stop. It stops what the page has counted and nothing
// younger, so that a form sent twice stops nothing more.
func (p *Pages) StopAll(c echo.Context) error {
	who, _ := handlers.Who(c)
	stop := orchestrator.Stop{Agent: strings.TrimSpace(c.FormValue("agent")), Reason: strings.TrimSpace(c.FormValue("reason")), Actor: who.Name()}
	again := view.StopPage{Agent: stop.Agent, Reason: stop.Reason}
	until, err := time.Parse(time.RFC3339Nano, c.FormValue("until"))
	switch {
	case err != nil:
		again.Problem = "The form had lost the moment at which it was counted. Nothing was stopped; this is the count of now."
	case stop.Reason == "":
		again.Problem = "There is no reason. Say why: it stands with every task that is stopped. Nothing was stopped."
	case c.FormValue("sure") != "yes":
		again.Problem = "The box was not ticked. Nothing was stopped."
	}
	if again.Problem != "" {
		return p.stopPage(c, http.StatusBadRequest, again)
	}
	stop.Until = until
	n, err := p.Engine.StopAll(c.Request().Context(), stop)
	var known *orchestrator.Error
	if errors.As(err, &known) && known.Code == orchestrator.CodeBadRequest {
		again.Problem = known.Message + " Nothing was stopped."
		return p.stopPage(c, http.StatusBadRequest, again)
	}
	if err != nil {
		return err
	}
	return p.stopPage(c, http.StatusOK, view.StopPage{Agent: n.Agent, Did: &n})
}
