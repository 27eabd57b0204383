package handlers

import (
	"gatehouse/orchestrator"
	"gatehouse/views"
	"slices"

	"github.com/labstack/echo/v4"
)

// sendForm fills the choices of the form that makes a task.
func (p *Pages) sendForm(form views.SendForm) views.SendForm {
	c := p.Engine.Config()
	for _, s := range c.Agents.All() {
		form.Agents = append(form.Agents, views.Choice{Value: s.Name, Text: s.Name, Note: string(s.Kind)})
	}
	for name := range c.Repositories {
		form.Repositories = append(form.Repositories, views.Choice{Value: name, Text: name})
	}
	slices.SortFunc(form.Repositories, func(a, b views.Choice) int {
		if a.Value < b.Value {
			return -1
		}
		return 1
	})
	if form.Agent == "" && len(p.Examples) > 0 {
		form.Agent = p.Examples[0].Agent // the demo's team has one who is asked, and others who are not
	}
	if form.Key == "" {
		form.Key = "web-" + ErrorID() + ErrorID() // a double click is one task
	}
	return form
}

// Send answers POST /delegations and POST /tasks: the form that makes a task.
func (p *Pages) Send(c echo.Context) error {
	who, _ := Who(c)
	in := views.SendForm{Agent: c.FormValue("agent"), Text: c.FormValue("text"), Repository: c.FormValue("repository"), Key: c.FormValue("key")}
	t, _, _, err := p.Engine.Submit(c.Request().Context(), orchestrator.Submission{
		Agent: in.Agent, Text: in.Text, Repository: in.Repository, Key: in.Key, Via: "web", RequesterID: who.User.ID, Requester: who.User.Name,
	})
	if err != nil {
		f := FaultOf(err)
		if f.ID != "" {
			return err
		}
		in.Error, in.Key = f.Message, ""
		return p.overview(c, f.Status, in)
	}
	return seeOther(c, views.DelegationHref(t.ID), "sent")
}
