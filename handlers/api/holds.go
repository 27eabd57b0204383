package api

import (
	"net/http"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// GetHolds answers GET /holds?lifted=true: legal holds, newest first; those that were lifted
// only when they are asked for.
func (a *API) GetHolds(c echo.Context) error {
	q := asked(c, "lifted")
	lifted := q.flag("lifted", "lifted is true or false, and %.40q is neither.")
	if q.err != nil {
		return q.err
	}
	all, err := a.Holds.Holds(c.Request().Context(), lifted)
	return send(c, http.StatusOK, wire.ListOf(all, ""), err)
}

// SetHold answers POST /holds: 201 with the hold.
func (a *API) SetHold(c echo.Context) error {
	var in wire.NewHold
	if err := read(c, &in); err != nil {
		return err
	}
	h, err := a.holdOf(c, in)
	if err != nil {
		return err
	}
	h.Reason, h.By = in.Reason, caller(c).User.Name
	if h, err = a.Holds.SetHold(c.Request().Context(), h); err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, h)
}

func (a *API) holdOf(c echo.Context, in wire.NewHold) (retention.Hold, error) {
	ctx := c.Request().Context()
	named := 0
	for _, is := range []bool{in.Task != "", in.Request != "", in.Repository != "", in.Everything} {
		if is {
			named++
		}
	}
	if named != 1 {
		return retention.Hold{}, bad("Say what is held: one of task, request, repository or everything.")
	}
	switch {
	case in.Task != "":
		t, err := a.Ids.Task(ctx, caller(c), in.Task)
		return retention.Hold{Kind: retention.Task, Subject: t.ID}, err
	case in.Request != "":
		id, err := a.Ids.Request(ctx, in.Request)
		if err != nil {
			return retention.Hold{}, err
		}
		r, err := a.Requests.Request(ctx, id)
		if isNotFound(err) {
			err = orchestrator.Errorf(orchestrator.CodeNotFound, "No request has the id %q.", in.Request)
		}
		return retention.Hold{Kind: retention.Task, Subject: r.TaskID, RequestID: r.ID}, err
	case in.Repository != "":
		return retention.Hold{Kind: retention.Repository, Subject: in.Repository}, nil
	}
	return retention.Hold{Kind: retention.Everything}, nil
}

// LiftHold answers DELETE /holds/{id} with {"reason"}: 200 with the hold as it ended.
func (a *API) LiftHold(c echo.Context) error {
	var in wire.Reason
	if err := read(c, &in); err != nil {
		return err
	}
	h, err := a.Holds.LiftHold(c.Request().Context(), c.Param("id"), caller(c).User.Name, in.Reason)
	return send(c, http.StatusOK, h, err)
}
