package api

import (
	"net/http"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"

	"github.com/labstack/echo/v4"
)

// agentShape is the published shape of an agent: its declaration and its live state.
type agentShape struct {
	Name          string       `json:"name"`
	Kind          agent.Kind   `json:"kind"`
	Role          agent.Role   `json:"role"`
	Capabilities  []string     `json:"capabilities"`
	DelegatesTo   []string     `json:"delegates_to"` // null: anyone
	Repository    string       `json:"repository"`
	Projects      []string     `json:"projects"`      // the repositories that it works in
	InstanceName  string       `json:"instance_name"` // what it is called here, and answers to
	AnalysisOnly  bool         `json:"analysis_only"`
	AskFirst      bool         `json:"ask_first"`      // a person is asked before it is handed work
	TrustCheckout bool         `json:"trust_checkout"` // it runs in its caller's files as they are
	Approval      string       `json:"approval"`
	State         string       `json:"state"` // running, queued, waiting or idle
	Running       int          `json:"running"`
	Queued        int          `json:"queued"`
	Waiting       int          `json:"waiting"`
	Inbox         inboxShape   `json:"inbox"`
	LastError     string       `json:"last_error"`
	LastAt        *time.Time   `json:"last_at"`
	Breaker       breakerShape `json:"breaker"`
}

// inboxShape says how full an agent's queue is (A35); above 100 % more wait than it should hold.
type inboxShape struct {
	Waiting int `json:"waiting"`
	Size    int `json:"size"`
	Percent int `json:"percent"`
}

// breakerShape says whether hand-overs to an agent are let through (H11).
type breakerShape struct {
	State    guard.BreakerState `json:"state"` // closed, open or half_open
	Failures int                `json:"failures"`
	OpenedAt *time.Time         `json:"opened_at,omitempty"`
	Until    *time.Time         `json:"until,omitempty"` // no probe before
	Probe    string             `json:"probe,omitempty"` // the delegation that tries
	Reason   string             `json:"reason,omitempty"`
}

func breakerOf(b guard.Breaker) breakerShape {
	if !b.Resting() {
		return breakerShape{State: guard.Closed, Failures: b.Failures, Reason: b.Reason}
	}
	return breakerShape{State: b.State, Failures: b.Failures, OpenedAt: utc(&b.OpenedAt), Until: utc(&b.Until), Probe: b.Probe, Reason: b.Reason}
}

// Agents answers GET /agents.
func (a *API) Agents(c echo.Context) error {
	all, err := a.Engine.Agents(c.Request().Context())
	if err != nil {
		return err
	}
	items := make([]agentShape, len(all))
	for i, s := range all {
		if caller(c).Run != nil { // errors and ids of other tasks are not a run's to read
			s.LastError, s.Breaker.Reason, s.Breaker.Probe = "", "", ""
		}
		items[i] = agentShape{
			Name: s.Spec.Name, Kind: s.Spec.Kind, Role: s.Spec.Role, Capabilities: append([]string{}, s.Spec.Capabilities...),
			Repository: s.Spec.Repository, AnalysisOnly: s.Spec.AnalysisOnly, AskFirst: s.Spec.AskFirst, TrustCheckout: s.Spec.TrustCheckout, Approval: s.Spec.Approval, State: busy(s),
			Running: s.Running, Queued: s.Queued, Waiting: s.Waiting, LastError: s.LastError, LastAt: utc(s.LastAt),
			Breaker: breakerOf(s.Breaker), Inbox: inboxShape{s.Inbox.Waiting, s.Inbox.Size, s.Inbox.Percent()},
		}
		items[i].InstanceName, items[i].Projects = s.Spec.Name, []string{}
		if s.Spec.Repository != "" {
			items[i].Projects = []string{s.Spec.Repository}
		}
		if s.Spec.Restricted {
			items[i].DelegatesTo = append([]string{}, s.Spec.DelegatesTo...)
		}
	}
	return c.JSON(http.StatusOK, listOf(items, ""))
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

// hopQuestion is the body of POST /agents/check.
type hopQuestion struct {
	From   string `json:"from"`
	To     string `json:"to"`
	TaskID string `json:"task_id"`
}

// hopAnswer says whether the hop may be made; code and message are the refusal's.
type hopAnswer struct {
	Allowed  bool            `json:"allowed"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message"`
	Verdicts []guard.Verdict `json:"verdicts"`
}

// CheckHop answers POST /agents/check: a dry run of the guards. A refusal is an
// answer and therefore 200.
func (a *API) CheckHop(c echo.Context) error {
	var in hopQuestion
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
	out := hopAnswer{Allowed: refused == nil, Message: "Yes. Nothing was sent.", Verdicts: append([]guard.Verdict{}, verdicts...)}
	if refused != nil {
		out.Code, out.Message = refused.Code, refused.Message
	}
	return c.JSON(http.StatusOK, out)
}
