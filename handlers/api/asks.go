package api

import (
	"net/http"

	"gatehouse/approval"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Ask answers POST /asks: a run asks whether it may make a call, or asks people a question. 200
// once there is an answer, 202 after at most 30 s without one; a repeat is fine. A client that
// goes away takes its question with it.
func (a *API) Ask(c echo.Context) error {
	var in wire.Ask
	if err := read(c, &in); err != nil {
		return err
	}
	switch {
	case in.Ref == "" || len(in.Ref) > 128:
		return bad("The ask has no ref, or one of more than 128 bytes. Name it, so that it is the same when it is sent again.")
	case (in.Action == nil) == (in.Question == nil):
		return bad("The ask has either an action or a question.")
	}
	ask := agent.Ask{Ref: in.Ref}
	if x := in.Action; x != nil {
		ask.Action = &agent.Action{Tool: x.Tool, Input: x.Input, Server: x.Server}
		if x.Hints != nil {
			ask.Action.Hints = agent.Hints(*x.Hints)
		}
	} else {
		ask.Question = &agent.Question{Text: in.Question.Text, Choices: in.Question.Choices, To: in.Question.To}
	}
	if err := ask.Check(); err != nil {
		return bad("%s", err.Error())
	}
	said, err := a.Engine.Ask(c.Request().Context(), *caller(c).Run, ask, awaitMost)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if said.State == agent.AskOpen {
		status = http.StatusAccepted
	}
	return c.JSON(status, wire.Answered{State: string(said.State), RequestID: said.ID, Input: said.Input, Edited: said.Edited, Text: said.Text, By: said.By})
}

// Grants answers GET /delegations/{id}/grants with those of its task.
func (a *API) Grants(c echo.Context) error {
	d, err := a.Ids.Delegation(c.Request().Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	all, err := a.Gateway.Grants(c.Request().Context(), d.TaskID)
	return send(c, http.StatusOK, wire.Grants{Items: append([]wire.Grant{}, each.Of(all, grantOf)...)}, err)
}

// Revoke answers DELETE /grants/{id} with the grant as it is then.
func (a *API) Revoke(c echo.Context) error {
	g, err := a.Gateway.Revoke(c.Request().Context(), c.Param("id"), caller(c).Principal)
	return send(c, http.StatusOK, grantOf(g), err)
}

func grantOf(g approval.Grant) wire.Grant {
	return wire.Grant{ID: g.ID, TaskID: g.TaskID, Agent: g.Agent, Scope: mask.Text(g.Scope.String()), Tool: g.Scope.Tool, RequestID: g.RequestID,
		By: append([]string{}, each.Of(g.By, func(b approval.Granter) string { return b.User })...), Uses: g.Uses,
		CreatedAt: g.CreatedAt.UTC(), UsedAt: utc(g.UsedAt), RevokedAt: utc(g.RevokedAt), RevokedBy: g.RevokedBy}
}

// askedOf adds what a call or a question asks to the published shape.
func askedOf(s *wire.Request, r approval.Request) {
	switch {
	case r.IsAction():
		call := r.Call()
		hints := wire.Hints(call.Hints)
		s.Action = &wire.Action{Tool: call.Tool, Input: mask.JSON(call.Input), Server: call.Server, Hints: &hints, DelegationID: r.DelegationID}
		if scope, ok := r.Scope(); ok {
			s.Scope = mask.Text(scope.String())
		}
	case r.IsQuestion():
		s.Question = &wire.Question{From: r.Agent, To: r.Question.To, Text: mask.Text(r.Question.Text), Choices: r.Question.Choices}
		answer, _ := r.Reply()
		s.Answer = mask.Text(answer)
	}
}
