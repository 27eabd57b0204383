package api

import (
	"net/http"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/guard"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// breakerOf is what is published of a breaker.
func breakerOf(b guard.Breaker) wire.Breaker {
	if !b.Resting() {
		return wire.Breaker{State: string(guard.Closed), Failures: b.Failures, Reason: b.Reason}
	}
	return wire.Breaker{State: string(b.State), Failures: b.Failures, OpenedAt: utc(&b.OpenedAt), Until: utc(&b.Until), Probe: b.Probe, Reason: b.Reason}
}

// Agents answers GET /agents.
func (a *API) Agents(c echo.Context) error {
	all, err := a.Engine.Agents(c.Request().Context())
	if err != nil {
		return err
	}
	items := make([]wire.Agent, len(all))
	for i, s := range all {
		if caller(c).Run != nil { // errors and ids of other tasks are not a run's to read
			s.LastError, s.Breaker.Reason, s.Breaker.Probe = "", "", ""
		}
		items[i] = wire.Agent{
			Name: s.Spec.Name, Kind: string(s.Spec.Kind), Role: string(s.Spec.Role), Capabilities: append([]string{}, s.Spec.Capabilities...),
			Repository: s.Spec.Repository, AnalysisOnly: s.Spec.AnalysisOnly, AskFirst: s.Spec.AskFirst, TrustCheckout: s.Spec.TrustCheckout, Approval: s.Spec.Approval, State: busy(s),
			Running: s.Running, Queued: s.Queued, Waiting: s.Waiting, LastError: s.LastError, LastAt: utc(s.LastAt),
			Breaker: breakerOf(s.Breaker), Inbox: wire.Inbox{Waiting: s.Inbox.Waiting, Size: s.Inbox.Size, Percent: s.Inbox.Percent()},
		}
		items[i].InstanceName, items[i].Projects = s.Spec.Name, []string{}
		if s.Spec.Repository != "" {
			items[i].Projects = []string{s.Spec.Repository}
		}
		if s.Spec.Restricted {
			items[i].DelegatesTo = append([]string{}, s.Spec.DelegatesTo...)
		}
	}
	return c.JSON(http.StatusOK, wire.ListOf(items, ""))
}

// busy is the liveliest thing that an agent does.
func busy(s orchestrator.AgentStatus) string {
	switch {
	case s.Running > 0:
		return string(orchestrator.Running)
	case s.Queued > 0:
		return string(orchestrator.Queued)
	case s.Waiting > 0:
		return string(orchestrator.Waiting)
	default:
		return "idle"
	}
}

// CheckHop answers POST /agents/check: a dry run of the guards. A refusal is an
// answer and therefore 200.
func (a *API) CheckHop(c echo.Context) error {
	var in wire.HopQuestion
	if err := read(c, &in); err != nil {
		return err
	}
	if in.From == "" || in.To == "" {
		return bad("Both from and to are needed. Name two agents.")
	}
	ctx := c.Request().Context()
	if in.TaskID != "" {
		t, err := a.Ids.Task(ctx, caller(c), in.TaskID)
		if err != nil {
			return err
		}
		in.TaskID = t.ID
	}
	verdicts, refused, err := a.Engine.Check(ctx, in.From, in.To, in.TaskID)
	if err != nil {
		return err
	}
	out := wire.HopAnswer{Allowed: refused == nil, Message: "Yes. Nothing was sent.", Verdicts: append([]guard.Verdict{}, verdicts...)}
	if refused != nil {
		out.Code, out.Message = refused.Code, refused.Message
	}
	return c.JSON(http.StatusOK, out)
}
