package api

import (
	"net/http"
	"time"

	"gatehouse/orchestrator"

	"github.com/labstack/echo/v4"
)

// stopInput is the body of POST /delegations/cancel. With dry_run nothing is stopped and the
// answer counts what would be. Until, as such an answer gave it, leaves what is younger: the
// same call again stops nothing more.
type stopInput struct {
	Agent  string     `json:"agent"`
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"`
	DryRun bool       `json:"dry_run"`
}

// stopShape says how much was stopped, or would be.
type stopShape struct {
	Agent       string    `json:"agent"` // "" for everybody's work
	Delegations int       `json:"delegations"`
	Tasks       int       `json:"tasks"`
	Landing     int       `json:"landing"` // left alone: a change lands at this moment
	Until       time.Time `json:"until"`
	DryRun      bool      `json:"dry_run"`
}

// StopAll answers POST /delegations/cancel: everything that runs or waits is cancelled, or
// one agent's work.
func (a *API) StopAll(c echo.Context) error {
	var in stopInput
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
	return c.JSON(http.StatusOK, stopShape{n.Agent, n.Delegations, n.Tasks, n.Landing, n.At, in.DryRun})
}
