package api

import (
	"net/http"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Pause answers POST /delegations/{id}/pause: nothing of its task is begun any more.
func (a *API) Pause(c echo.Context) error { return a.control(c, &struct{}{}, a.Engine.Pause) }

// Resume answers POST /delegations/{id}/resume.
func (a *API) Resume(c echo.Context) error { return a.control(c, &struct{}{}, a.Engine.Unpause) }

// Fork answers POST /delegations/{id}/fork {turn}: 202 with the new task. Without a turn,
// or with 0, it is the newest.
func (a *API) Fork(c echo.Context) error {
	ctx := c.Request().Context()
	var in wire.Fork
	if err := readOptional(c, &in); err != nil {
		return err
	}
	who := caller(c)
	d, err := a.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return err
	}
	t, root, err := a.Engine.Fork(ctx, orchestrator.Fork{DelegationID: d.ID, Turn: in.Turn, Via: origin.From(handlers.Channel(c)), RequesterID: who.User.ID, Requester: who.User.Name})
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/api/v1/tasks/"+t.ID)
	return c.JSON(http.StatusAccepted, wire.Submitted{ID: t.ID, DelegationID: root.ID, State: string(root.State), Agent: t.Agent})
}
