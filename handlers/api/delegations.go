package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Delegations answers GET /delegations, newest first.
func (a *API) Delegations(c echo.Context) error {
	f, err := filterOf(c, a.Now())
	if err != nil {
		return err
	}
	if who := caller(c); who.Run != nil {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. Ask for /tasks/%s/tree.", who.Run.TaskID)
	}
	page, err := a.Reader.List(c.Request().Context(), f)
	return send(c, http.StatusOK, wire.ListOf(shapesOf(page.Items), page.Next), err)
}

// Delegation answers GET /delegations/{id}.
func (a *API) Delegation(c echo.Context) error {
	shape, d, err := a.one(c)
	if err != nil {
		return err
	}
	if caller(c).Run == nil && d.State.Ended() { // what a run reads of its child is the child's own
		if shape.Discarded, err = a.discardedBelow(c.Request().Context(), d); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, shape)
}

// discardedBelow says what was thrown away of d and below it, each sentence once.
func (a *API) discardedBelow(ctx context.Context, d orchestrator.Delegation) (string, error) {
	tree, err := a.Reader.Tree(ctx, d.TaskID)
	if err != nil {
		return "", err
	}
	below := map[string]bool{d.ID: true}
	var said []string
	for _, other := range tree { // callers stand before those they called
		if below[other.ParentID] {
			below[other.ID] = true
		}
		if text := other.Work.Discarded; text != "" && below[other.ID] && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, " "), nil
}

// one is the delegation that the address names. A caller that asks for its ended child
// gets its slot and the child's changes first.
func (a *API) one(c echo.Context) (wire.Delegation, orchestrator.Delegation, error) {
	ctx := c.Request().Context()
	id := cmp.Or(c.Param("id"), c.QueryParam("id"))
	who := caller(c)
	d, err := a.Ids.Delegation(ctx, who, id)
	if err != nil {
		return wire.Delegation{}, d, err
	}
	if who.Run != nil && d.ParentID == who.Run.DelegationID && d.State.Ended() {
		if d, _, err = a.Engine.Await(ctx, *who.Run, d.ID, awaitMost); err != nil {
			return wire.Delegation{}, d, err
		}
	}
	shapes, err := a.told(c, []orchestrator.Delegation{d})
	if err != nil {
		return wire.Delegation{}, d, err
	}
	t, err := a.Reader.Task(ctx, d.TaskID)
	if err != nil {
		return wire.Delegation{}, d, err
	}
	if t.EndedAt == nil {
		shapes[0].PausedAt = utc(t.PausedAt)
	}
	return shapes[0], d, nil
}

// told is what is published of delegations to who asks. An operator may read no requests,
// and is told all the same for whom the work waits, as the pages tell; a run is not.
func (a *API) told(c echo.Context, all []orchestrator.Delegation) ([]wire.Delegation, error) {
	ctx, shapes := c.Request().Context(), shapesOf(all)
	var voters *approval.Electorate
	for i, d := range all {
		if caller(c).Run != nil || d.State != orchestrator.AwaitingApproval || d.ApprovalID == "" {
			continue
		}
		if voters == nil {
			e, err := a.Gateway.Electorate(ctx)
			if err != nil {
				return nil, err
			}
			voters = &e
		}
		r, err := a.Requests.Request(ctx, d.ApprovalID)
		switch {
		case isNotFound(err):
			continue
		case err != nil:
			return nil, err
		}
		shapes[i].WaitsFor = approval.Names(voters.Needs(r).Missing)
	}
	return shapes, nil
}

// Delegate answers POST /delegations: a run hands work on.
func (a *API) Delegate(c echo.Context) error {
	var in wire.Hop
	if err := read(c, &in); err != nil {
		return err
	}
	switch {
	case in.To == "" && in.Capability == "":
		return bad("Neither to nor capability was given. Name the agent that should take the work.")
	case len(in.Text) > orchestrator.MaxText:
		return bad("The text has %d bytes; %d is the limit.", len(in.Text), orchestrator.MaxText)
	}
	h, err := hopOf(in)
	if err != nil {
		return err
	}
	d, err := a.Engine.Delegate(c.Request().Context(), *caller(c).Run, h)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/api/v1/delegations/"+d.ID)
	return c.JSON(http.StatusCreated, shapeOf(d))
}

// awaitMost is how long one request of a waiting run is held open; the client asks
// again. It is well below the idle limits of usual proxies.
const awaitMost = 30 * time.Second

// Await answers POST /delegations/{id}/await: 200 once the child has ended and the
// caller runs again, 202 with the child as it is after at most 30 s. A repeat is fine.
func (a *API) Await(c echo.Context) error {
	ctx := c.Request().Context()
	who := caller(c)
	d, err := a.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return err
	}
	if d.ParentID != who.Run.DelegationID {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Only the run that handed %s on can wait for it.", d.ID)
	}
	d, ready, err := a.Engine.Await(ctx, *who.Run, d.ID, awaitMost)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusAccepted
	}
	return c.JSON(status, shapeOf(d))
}

// Cancel answers POST /delegations/{id}/cancel, whose body may say why.
func (a *API) Cancel(c echo.Context) error {
	var in wire.Reason
	return a.control(c, &in, func(ctx context.Context, id, actor string) (orchestrator.Delegation, error) {
		return a.Engine.CancelFor(ctx, id, actor, in.Reason)
	})
}

// Retry answers POST /delegations/{id}/retry.
func (a *API) Retry(c echo.Context) error {
	d, err := a.controlled(c, &struct{}{}, a.Engine.Retry)
	if err != nil {
		return err
	}
	shape := shapeOf(d)
	switch {
	case d.LandsNow():
		shape.Message = orchestrator.LandsNow
	case d.State == orchestrator.Landing: // of a task, it may be one below it
		shape.Message = "Its landing is tried again."
	}
	return c.JSON(http.StatusOK, shape)
}

// acting is what the engine does to a delegation in somebody's name.
type acting func(ctx context.Context, id, actor string) (orchestrator.Delegation, error)

// control does something to a delegation and answers what it has become.
func (a *API) control(c echo.Context, body any, act acting) error {
	d, err := a.controlled(c, body, act)
	return send(c, http.StatusOK, shapeOf(d), err)
}

// controlled reads the body, which may be absent, and does something to a delegation.
func (a *API) controlled(c echo.Context, body any, act acting) (orchestrator.Delegation, error) {
	ctx := c.Request().Context()
	if err := readOptional(c, body); err != nil {
		return orchestrator.Delegation{}, err
	}
	who := caller(c)
	d, err := a.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return d, err
	}
	return act(ctx, d.ID, who.Name())
}

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
	return send(c, http.StatusOK, wire.ListOf(shapes, ""), err)
}

// statusShape is a delegation with the names of aiagentchat beside ours (A9, A10).
type statusShape struct {
	wire.Delegation
	RequestID string `json:"request_id"`
	FromAgent string `json:"from_agent"` // "" is a person
	ToAgent   string `json:"to_agent"`
	TraceID   string `json:"trace_id"` // the task: the same for all that came of one request
	Status    string `json:"status"`   // notice, ack, complete or fail
	Detail    string `json:"detail"`   // the state; of a failure its code
	Body      string `json:"body"`     // the answer, or a sentence on how it goes
}

// Status answers GET /delegation-status?id=.
func (a *API) Status(c echo.Context) error {
	shape, d, err := a.one(c)
	if err != nil {
		return err
	}
	s := statusShape{Delegation: shape, RequestID: d.ID, FromAgent: d.From, ToAgent: d.To, TraceID: d.TaskID, Status: statusOf(d), Detail: string(d.State), Body: d.To + ": " + string(d.State)}
	if d.Result != nil {
		s.Body = d.Result.Text
	}
	if d.Error != nil {
		s.Detail, s.Body = d.Error.Code, d.Error.Message
	}
	return c.JSON(http.StatusOK, s)
}

// statusOf is a state in aiagentchat's words: what nobody has taken up is a notice.
func statusOf(d orchestrator.Delegation) string {
	switch {
	case d.State == orchestrator.Completed:
		return "complete"
	case d.State.Ended():
		return "fail"
	case d.State == orchestrator.Queued && d.StartedAt == nil:
		return "notice"
	}
	return "ack"
}

// Artifact answers GET /delegations/{id}/artifacts/{name} to whoever may read the
// delegation.
func (a *API) Artifact(c echo.Context) error {
	ctx := c.Request().Context()
	d, err := a.Ids.Delegation(ctx, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	found, err := d.NamedArtifact(handlers.PathName(c, "*"))
	if err != nil {
		return err
	}
	content, err := a.Engine.Artifact(ctx, d, found)
	if err != nil {
		return err
	}
	handlers.AsDownload(c, found.Name, 1)
	return c.Blob(http.StatusOK, found.TypeOf(content), content)
}
