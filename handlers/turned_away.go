package handlers

import (
	"errors"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// TurnedAway puts a verdict into the history that the rights of its door did not let in: who
// may not decide has tried to, whatever door it was at.
func TurnedAway(c echo.Context, ids Ids, gateway Gateway, refused error) {
	known := new(orchestrator.Error)
	id, err := ids.Request(c.Request().Context(), c.Param("id"))
	if err != nil || !errors.As(refused, &known) {
		return // there is no such request
	}
	who, _ := Who(c)
	channel := Channel(c)
	if strings.HasPrefix(c.Path(), views.ChatPath+"/") {
		channel = "chat" // as ChatDecide says
	}
	gateway.TurnedAway(c.Request().Context(), approval.Refusal{RequestID: id, Actor: who.Name(), Channel: channel, Code: known.Code, Message: known.Message})
}
