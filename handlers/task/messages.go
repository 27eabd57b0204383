package task

import (
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// Tell answers POST /delegations/{id}/messages: what its agent is told before its next turn. What
// is refused is shown above the form, with what was typed.
func (p *Pages) Tell(c echo.Context) error {
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	d, err := p.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return err
	}
	if err := handlers.MayTell(ctx, p.Reader, who, d); err != nil {
		return err
	}
	typed := c.FormValue("text")
	_, _, err = p.Engine.Tell(ctx, d.ID, orchestrator.Words{Text: typed, Key: c.FormValue("key"), By: who.User, Via: origin.From(handlers.Channel(c))})
	if f := handlers.FaultOf(err); err != nil && f.ID == "" {
		return p.delegation(c, f.Status, view.Tell{Text: typed, Refused: f.Message})
	}
	if err != nil {
		return err
	}
	return handlers.SeeOther(c, views.DelegationHref(d.ID), "told")
}

// messages fills what people said to the selected agent, and the form where they may.
func (p *Pages) messages(f *handlers.Frame, page *view.DelegationPage, d orchestrator.Delegation, typed view.Tell) error {
	for _, m := range d.Work.Said() {
		page.Messages = append(page.Messages, view.Message{ID: m.ID, From: m.From, Text: m.Text, Via: m.Via, At: m.At, ReadAt: handlers.At(m.ReadAt)})
	}
	page.Tell = typed
	if p.Engine.Hearing(&d) != nil {
		return nil
	}
	switch err := handlers.MayTell(f.Ctx, p.Reader, f.Who, d); {
	case err == nil:
		page.CanTell = true
		page.Tell.Apart = p.FourEyes() && f.Who.Has(people.ApprovalsDecide) && f.Who.User.Name != page.Requester
	case orchestrator.CodeOf(err) != orchestrator.CodeForbidden:
		return err
	}
	return nil
}
