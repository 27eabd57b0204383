package task

import (
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// maxAsked is how many open calls and questions of a task its page lists; there are not more
// unless the configuration lets there be.
const maxAsked = 20

// askedNow lists the calls and questions of a task that wait for people, oldest first, as far
// as the reader may know of them.
func (p *Pages) askedNow(f *handlers.Frame, page *view.DelegationPage) error {
	if !f.Who.Has(people.ApprovalsRead) && len(f.Pending) == 0 {
		return nil
	}
	ids, err := p.Requests.PendingOf(f.Ctx, page.TaskID)
	if err != nil {
		return err
	}
	for _, id := range ids[:min(len(ids), maxAsked)] {
		r, err := p.Requests.Request(f.Ctx, id)
		if err != nil {
			return err
		}
		if (r.IsAction() || r.IsQuestion()) && (f.Who.Has(people.ApprovalsRead) || handlers.OwnQuestion(f.Who, r)) {
			page.Asked = append(page.Asked, f.ApprovalRow(r))
		}
	}
	return nil
}

// grantsOf lists what people allowed for the rest of a task, those that hold first.
func (p *Pages) grantsOf(f *handlers.Frame, t orchestrator.Task, page *view.DelegationPage) error {
	found, err := p.Gateway.Grants(f.Ctx, t.ID)
	if err != nil {
		return err
	}
	may := f.Who.Has(people.ApprovalsDecide) || f.Who.User.ID != "" && f.Who.User.ID == t.RequesterID && f.Who.Has(people.TasksWrite)
	for _, g := range found {
		by := strings.Join(each.Of(g.By, func(b approval.Granter) string { return b.User }), ", ")
		page.Grants = append(page.Grants, view.Grant{ID: g.ID, Agent: g.Agent, Scope: g.Scope.String(), By: by, At: g.CreatedAt, RequestID: g.RequestID,
			Uses: g.Uses, UsedAt: handlers.At(g.UsedAt), RevokedAt: handlers.At(g.RevokedAt), RevokedBy: g.RevokedBy, CanRevoke: may && g.RevokedAt == nil})
	}
	slices.SortStableFunc(page.Grants, func(a, b view.Grant) int {
		switch {
		case a.Revoked() == b.Revoked():
			return 0
		case a.Revoked():
			return 1
		}
		return -1
	})
	return nil
}

// Revoke answers POST /grants/{id}/revoke and shows the task.
func (p *Pages) Revoke(c echo.Context) error {
	who, _ := handlers.Who(c)
	g, err := p.Gateway.Revoke(c.Request().Context(), c.Param("id"), who.Principal)
	if err != nil {
		return handlers.Known(err, "grant", c.Param("id"))
	}
	return handlers.SeeOther(c, views.DelegationHref(g.TaskID), "grant_revoked")
}
