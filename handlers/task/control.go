package task

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// Pause answers POST /delegations/{id}/pause.
func (p *Pages) Pause(c echo.Context) error { return p.control(c, p.Engine.Pause, "paused") }

// Resume answers POST /delegations/{id}/resume.
func (p *Pages) Resume(c echo.Context) error { return p.control(c, p.Engine.Unpause, "resumed") }

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
