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

// StopAll answers POST /delegations/cancel: everything that runs or waits is cancelled, or
// one agent's work.
func (a *API) StopAll(c echo.Context) error {
	var in wire.Stop
	if err := read(c, &in); err != nil {
		return err
	}
	ctx := c.Request().Context()
	var n orchestrator.Stopped
	var err error
	if in.DryRun {
		n, err = a.Engine.Underway(ctx, in.Agent)
	} else {
		stop := orchestrator.Stop{Agent: in.Agent, Reason: in.Reason, Actor: caller(c).Name()}
		if in.Until != nil {
			stop.Until = *in.Until
		}
		n, err = a.Engine.StopAll(ctx, stop)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.Stopped{
		Agent: n.Agent, Delegations: n.Delegations, Tasks: n.Tasks, Landing: n.Landing, Until: n.At, DryRun: in.DryRun,
	})
}

// ReloadConfig answers POST /config/reload. A bad file changes nothing.
func (a *API) ReloadConfig(c echo.Context) error {
	var none struct{}
	if err := readOptional(c, &none); err != nil {
		return err
	}
	if a.Reload == nil {
		return orchestrator.Errorf(orchestrator.CodeUnavailable, "This server runs without a configuration file, so there is nothing to load.")
	}
	if err := a.Reload(c.Request().Context(), caller(c).Name()); err != nil {
		return &orchestrator.Error{Code: handlers.CodeConfig, Message: err.Error() + " Nothing was changed.", Err: err}
	}
	return c.JSON(http.StatusOK, map[string]bool{"reloaded": true})
}
