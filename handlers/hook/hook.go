package hook

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/trigger"
	"gatehouse/orchestrator/trigger/intake"

	"github.com/labstack/echo/v4"
)

// bodyTime is how long a call may take to come in.
const bodyTime = 30 * time.Second

// Hooks answers webhooks.
type Hooks struct{ Intake *intake.Intake }

// Answer is what a call is told.
type Answer struct {
	ID           string `json:"id,omitempty"` // of the task
	DelegationID string `json:"delegation_id,omitempty"`
	State        string `json:"state"` // of the task's root; else of the delivery
	Delivery     string `json:"delivery"`
	Message      string `json:"message,omitempty"`
}

// Call answers POST /hooks/{name}: 202 with the task of a delivery that came for the first
// time, 200 with the same task when it comes again, 200 without one when the condition was
// not met. Whoever cannot prove who they are, and asks for a hook that there is not, hears
// the same 401. A body is read only where a signature is there.
func (s Hooks) Call(c echo.Context) error {
	r := c.Request()
	hook, err := s.Intake.Hook(c.Param("name"), c.RealIP(), r.Header)
	if err != nil {
		return stranger()
	}
	body, err := read(c)
	if err != nil {
		return err
	}
	receipt, err := hook.Receive(r.Context(), r.Header, body)
	if errors.Is(err, trigger.ErrSignature) {
		return stranger()
	}
	if over := (*intake.TooMany)(nil); errors.As(err, &over) {
		c.Response().Header().Set("Retry-After", strconv.Itoa(over.Seconds()))
		return handlers.Refuse(handlers.CodeRateLimited, over.Error())
	}
	if err != nil {
		return err
	}
	return answer(c, receipt)
}

// stranger says nothing about which hooks there are.
func stranger() error {
	return handlers.Refuse(handlers.CodeUnauthorized, "The call is not signed, or its signature is wrong. Check the name of the webhook and the secret on both sides.")
}

// read reads the body within its size and time.
func read(c echo.Context) ([]byte, error) {
	r := c.Request()
	if r.ContentLength > trigger.MaxBody {
		return nil, tooLarge()
	}
	control := http.NewResponseController(c.Response())
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where there are no deadlines, as in tests that record answers, it has none
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, trigger.MaxBody))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeBadRequest, "The body did not come whole. Send it again.")
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

func tooLarge() error {
	return orchestrator.Errorf(handlers.CodeTooLarge, "The body is larger than %d bytes, which is what a webhook may send.", trigger.MaxBody)
}

// answer says what became of a delivery.
func answer(c echo.Context, r intake.Receipt) error {
	d := r.Delivery
	a := Answer{ID: d.TaskID, State: string(d.State), Delivery: d.ID}
	status := http.StatusOK
	switch d.State {
	case trigger.Started, trigger.Stored:
		if r.Fresh {
			status = http.StatusAccepted
		}
		if r.Root != nil {
			a.DelegationID, a.State = r.Root.ID, string(r.Root.State)
		}
	case trigger.Filtered, trigger.Skipped:
		a.Message = d.Message
	default:
		code := d.Code
		if code == trigger.CodeJSON {
			code = orchestrator.CodeBadRequest
		}
		return handlers.Refuse(code, d.Message)
	}
	return c.JSON(status, a)
}
