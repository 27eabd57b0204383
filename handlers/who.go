package handlers

import (
	"context"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"

	"github.com/labstack/echo/v4"
)

// Caller is who makes a request, and by what.
type Caller struct {
	people.Principal
	// Session is set when a browser's cookie was used.
	Session bool
	// SessionName tells one session from another and is no secret; "" without a session.
	SessionName string
	// Alive looks again whether the credential is still good and has its rights; streams ask
	// each minute and when the log says that it may have changed, sockets also at each message.
	Alive func(ctx context.Context) bool
}

const callerKey = "gatehouse.caller"

// SetCaller records who makes the request; web does, once it knows.
func SetCaller(c echo.Context, who Caller) { c.Set(callerKey, who) }

// Who returns the caller; ok is false on routes that anyone may ask.
func Who(c echo.Context) (Caller, bool) {
	who, ok := c.Get(callerKey).(Caller)
	return who, ok
}

// Channel names how a decision or task came in: web, cli or api.
func Channel(c echo.Context) origin.Channel {
	who, _ := Who(c)
	switch {
	case who.Session:
		return origin.Web
	case strings.HasPrefix(c.Request().UserAgent(), "gatehouse-cli/"):
		return origin.CLI
	default:
		return origin.API
	}
}

// Sees says whether the caller may know of a task at all: a run sees its own.
func (w Caller) Sees(taskID string) bool { return w.Run == nil || w.Run.TaskID == taskID }

// NotFound is the answer for an id that names nothing, or nothing that the caller
// may know of.
func NotFound(what, id string) error {
	return orchestrator.Errorf(orchestrator.CodeNotFound, "No %s has the id %q. It may be in another database; check the id, or list what there is.", what, id)
}

// SeesStream says whether the caller may see events of a stream among those of all
// tasks: sign-ins, tokens and the like are for those who may read the audit.
func (w Caller) SeesStream(taskID string) bool {
	return w.Sees(taskID) && (taskID != event.System || w.Has(people.AuditRead))
}

// MayTell refuses who may say nothing to the agents of a task: it is told by whoever asked for
// it, and by who may cancel it.
func MayTell(ctx context.Context, tasks Reader, who Caller, d orchestrator.Delegation) error {
	if who.Run == nil && who.Has(people.DelegationsControl) {
		return nil
	}
	t, err := tasks.Task(ctx, d.TaskID)
	if err != nil {
		return err
	}
	if who.Run != nil || who.User.ID == "" || t.RequesterID != who.User.ID {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "%s asked for this task, so only they and who may control tasks say something to its agents. Ask one of them.", t.Requester)
	}
	return nil
}
