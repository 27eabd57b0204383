package handlers

import (
	"net/http"
	"slices"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// RequestStates are the states of requests that lists can be filtered by.
func RequestStates() []approval.State {
	return []approval.State{approval.Pending, approval.Approved, approval.Rejected, approval.ChangesRequested, approval.Expired,
		approval.Superseded, approval.Stale, approval.Landed, approval.Reverted, approval.Failed, approval.Cancelled}
}

// Approvals answers GET /approvals; without ?state= it shows what is pending.
func (p *Pages) Approvals(c echo.Context) error {
	f, err := p.begin(c, views.SectionApprovals, "Approvals")
	if err != nil {
		return err
	}
	page := views.ApprovalsPage{Chrome: f.chrome, State: c.QueryParam("state")}
	filter := approval.Filter{After: c.QueryParam("after"), Limit: 50}
	switch page.State {
	case "":
		page.State = string(approval.Pending)
	case "all":
		page.State = ""
	}
	if page.State != "" {
		if !slices.Contains(RequestStates(), approval.State(page.State)) {
			return Refuse(orchestrator.CodeBadRequest, "There is no state of that name. Choose one of the tabs.")
		}
		filter.States = []approval.State{approval.State(page.State)}
	}
	if filter.After != "" && !IsID(filter.After, orchestrator.RequestPrefix) {
		return Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the first page.")
	}
	found, err := p.Requests.Requests(f.ctx, filter)
	if err != nil {
		return err
	}
	for _, r := range found.Items {
		page.Rows = append(page.Rows, f.approvalRow(r))
	}
	page.Later = filter.After != ""
	if found.Next != "" {
		page.NextHref = withParam(f.chrome.Path, "after", found.Next)
	}
	if len(page.Rows) == 0 {
		live, err := p.Reader.List(f.ctx, orchestrator.Filter{States: liveStates(), RootsOnly: true, Limit: 200})
		if err != nil {
			return err
		}
		all, err := p.Requests.Requests(f.ctx, approval.Filter{Limit: 200})
		if err != nil {
			return err
		}
		page.Running, page.Total = len(live.Items), len(all.Items)
	}
	return render(c, http.StatusOK, views.Approvals(page))
}
