package api

import (
	"net/http"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/origin"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Tell answers POST /delegations/{id}/messages {text, key?}: 202 with the message, which the
// agent is told before its next turn.
func (a *API) Tell(c echo.Context) error {
	var in wire.Words
	if err := read(c, &in); err != nil {
		return err
	}
	ctx, who := c.Request().Context(), caller(c)
	d, err := a.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return err
	}
	if err := handlers.MayTell(ctx, a.Reader, who, d); err != nil {
		return err
	}
	said, d, err := a.Engine.Tell(ctx, d.ID, orchestrator.Words{Text: in.Text, Key: in.Key, By: who.User, Via: origin.From(handlers.Channel(c))})
	return send(c, http.StatusAccepted, messageOf(d, said), err)
}

// Messages answers GET /delegations/{id}/messages.
func (a *API) Messages(c echo.Context) error {
	d, err := a.Ids.Delegation(c.Request().Context(), caller(c), c.Param("id"))
	out := wire.Messages{Items: []wire.Message{}}
	for _, m := range d.Work.Said() {
		out.Items = append(out.Items, messageOf(d, m))
	}
	return send(c, http.StatusOK, out, err)
}

func messageOf(d orchestrator.Delegation, m orchestrator.Message) wire.Message {
	state := "queued"
	if m.ReadAt != nil {
		state = "delivered"
	}
	return wire.Message{ID: m.ID, DelegationID: d.ID, Agent: d.To, State: state, From: m.From, Via: m.Via.String(), Text: mask.Text(m.Text), At: m.At.UTC(), DeliveredAt: m.ReadAt}
}
