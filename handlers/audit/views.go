package audit

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"
	view "gatehouse/views/audit"

	"github.com/labstack/echo/v4"
)

// auditViews are the saved views that the reader sees.
func (p *Pages) auditViews(f *handlers.Frame) ([]view.AuditView, error) {
	saved, err := p.SavedViews.Views(f.Ctx, f.Who.User.ID)
	if err != nil {
		return nil, err
	}
	all := make([]view.AuditView, 0, len(saved))
	for _, v := range saved {
		mine := v.UserID == f.Who.User.ID
		all = append(all, view.AuditView{ID: v.ID, Name: v.Name, Owner: v.Owner, Mine: mine, Shared: v.Shared,
			Delete: mine || f.Who.Has(people.AdminScope), Href: auditBack(v.List, v.Line, strings.Join(v.Columns, ","))})
	}
	return all, nil
}

// SaveView answers POST /audit/views: the list gets a name.
func (p *Pages) SaveView(c echo.Context) error {
	who, _ := handlers.Who(c)
	if who.User.ID == "" {
		return handlers.Refuse(orchestrator.CodeForbidden, "A view belongs to a person. Sign in to save one.")
	}
	list, line, columns := history.List(c.FormValue("list")), c.FormValue("filter"), c.FormValue("columns")
	v := history.View{UserID: who.User.ID, Name: strings.TrimSpace(c.FormValue("name")), List: list, Line: line, Shared: c.FormValue("shared") == "yes"}
	for _, col := range view.AuditColumns(list, strings.Split(columns, ",")) {
		if col.On {
			v.Columns = append(v.Columns, col.Key)
		}
	}
	if v.Shared && !who.Has(people.AdminScope) {
		return handlers.Refuse(orchestrator.CodeForbidden, "Only an admin may show a view to everybody. Save it for yourself, or ask an admin.")
	}
	ctx := c.Request().Context()
	_, err := history.Parse(list, line, p.Now(), p.ReaderZone(c))
	if err == nil {
		err = p.SavedViews.SaveView(ctx, who.Name(), v, history.MaxViews)
	}
	var bad *history.Error
	problem := ""
	switch {
	case errors.As(err, &bad):
		problem = bad.Text
	case errors.Is(err, orchestrator.ErrExists):
		problem = "You have as many views as can be kept. Delete one first."
	case err != nil && handlers.FaultOf(err).Status == http.StatusBadRequest:
		problem = handlers.FaultOf(err).Message
	case err != nil:
		return err
	}
	if problem != "" {
		asked := auditAsked{list: list, line: line, columns: v.Columns, refused: refusedView{name: v.Name, problem: problem}}
		if !slices.Contains(auditLists, list) {
			return handlers.Refuse(orchestrator.CodeBadRequest, problem)
		}
		return p.audit(c, asked, p.auditLine(c, asked))
	}
	return c.Redirect(http.StatusSeeOther, handlers.WithParam(auditBack(list, line, columns), "done", "view_saved"))
}

// DeleteView answers POST /audit/views/{id}/delete.
func (p *Pages) DeleteView(c echo.Context) error {
	who, _ := handlers.Who(c)
	err := p.SavedViews.DeleteView(c.Request().Context(), who.Name(), who.User.ID, c.Param("id"), who.Has(people.AdminScope))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return handlers.Refuse(orchestrator.CodeNotFound, "There is no such view of yours. It may have been deleted already.")
	}
	if err != nil {
		return err
	}
	return handlers.SeeOther(c, views.AuditPath, "view_deleted")
}
