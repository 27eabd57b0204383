package api

import (
	"net/http"

	"gatehouse/orchestrator"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

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
