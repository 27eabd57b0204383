package handlers

import (
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"

	"github.com/labstack/echo/v4"
)

// The scopes that a yes to a call may name.
const (
	scopeOnce = "once"
	scopeTask = "task"
)

// AskFields reads from a form what is said of calls and questions only: scope and choice.
func AskFields(c echo.Context, b *approval.Ballot) error {
	switch c.FormValue("scope") {
	case "", scopeOnce:
	case scopeTask:
		b.ForTask = true
	default:
		return Refuse(orchestrator.CodeBadRequest, "A yes is for once or for the rest of the task: scope is once or task.")
	}
	b.Choice = strings.ReplaceAll(c.FormValue("choice"), "\r\n", "\n") // as browsers send a line break
	return nil
}

// AsksPeople reports whether e is of the story of a call or a question.
func AsksPeople(e event.Event) bool {
	kind := approval.Kind(e.Kind())
	return kind == approval.Action || kind == approval.Question
}
