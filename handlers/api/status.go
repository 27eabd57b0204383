package api

import (
	"net/http"

	"gatehouse/orchestrator"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

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
