package api

import (
	"net/http"

	"gatehouse/orchestrator/agent"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// hopOf is what the engine is asked for.
func hopOf(in wire.Hop) (agent.Hop, error) {
	h := agent.Hop{To: in.To, Capability: in.Capability, Text: in.Text, Context: in.Context, Spawn: in.Spawn, Final: in.Handoff}
	switch {
	case in.Spawn && in.Handoff:
		return h, bad("`spawn` and `handoff` were both given. Who spawns goes on beside the child; who hands over ends with its answer.")
	case !in.Handoff && (in.Completed != "" || len(in.Artifacts)+len(in.ArtifactsCreated) > 0):
		return h, bad("`completed` and `artifacts` belong to a hand-over. Set `handoff`, or leave them out.")
	case !in.Handoff:
		return h, nil
	}
	h.Handover = &agent.Handover{Update: agent.HandoverUpdate{Artifacts: in.Artifacts, WorkflowState: in.WorkflowState,
		Context: agent.HandoverContext{Completed: in.Completed, ArtifactsCreated: in.ArtifactsCreated}}}
	return h, nil
}

// Children answers GET /delegations/{id}/children: what its present run has handed on,
// oldest first.
func (a *API) Children(c echo.Context) error {
	d, err := a.Ids.Delegation(c.Request().Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	all, err := a.Reader.Children(c.Request().Context(), d.ID, d.Work.Runs)
	if err != nil {
		return err
	}
	shapes, err := a.told(c, all)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.ListOf(shapes, ""))
}
