package task

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// Pause answers POST /delegations/{id}/pause.
func (p *Pages) Pause(c echo.Context) error { return p.control(c, p.Engine.Pause, "paused") }

// Resume answers POST /delegations/{id}/resume.
func (p *Pages) Resume(c echo.Context) error { return p.control(c, p.Engine.Unpause, "resumed") }

// Cancel answers POST /delegations/{id}/cancel.
func (p *Pages) Cancel(c echo.Context) error {
	return p.control(c, func(ctx context.Context, id, actor string) (orchestrator.Delegation, error) {
		return p.Engine.CancelFor(ctx, id, actor, c.FormValue("reason"))
	}, "cancelled")
}

func (p *Pages) control(c echo.Context, act func(ctx context.Context, id, actor string) (orchestrator.Delegation, error), notice string) error {
	who, _ := handlers.Who(c)
	d, err := p.Ids.Delegation(c.Request().Context(), who, c.Param("id"))
	if err != nil {
		return err
	}
	if _, err = act(c.Request().Context(), d.ID, who.Name()); err != nil {
		return err
	}
	return handlers.SeeOther(c, views.DelegationHref(d.ID), notice)
}

// Fork answers POST /delegations/{id}/fork and shows the new task.
func (p *Pages) Fork(c echo.Context) error {
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	d, err := p.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return err
	}
	turn := 0
	if text := strings.TrimSpace(c.FormValue("turn")); text != "" {
		if turn, err = strconv.Atoi(text); err != nil {
			return orchestrator.Errorf(orchestrator.CodeBadRequest, "%q is no number of a turn. Name one of the conversation's turns, or leave it empty for the newest.", fmt.Sprintf("%.20s", text))
		}
	}
	_, root, err := p.Engine.Fork(ctx, orchestrator.Fork{DelegationID: d.ID, Turn: turn, Via: origin.From(handlers.Channel(c)), RequesterID: who.User.ID, Requester: who.User.Name})
	if err != nil {
		return err
	}
	return handlers.SeeOther(c, views.DelegationHref(root.ID), "forked")
}

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
	page.Names = each.Of(p.Engine.Config().Agents.All(), func(s agent.Spec) string { return s.Name })
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
	if known, ok := errors.AsType[*orchestrator.Error](err); ok && known.Code == orchestrator.CodeBadRequest {
		again.Problem = known.Message + " Nothing was stopped."
		return p.stopPage(c, http.StatusBadRequest, again)
	}
	if err != nil {
		return err
	}
	return p.stopPage(c, http.StatusOK, view.StopPage{Agent: n.Agent, Did: &n})
}
