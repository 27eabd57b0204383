package review

import (
	"maps"
	"net/http"
	"slices"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/views"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// Bounds of the list of requests.
const (
	approvalsPage = 50
	mostInTab     = 1000 // requests of one state; more are "1,000+"
	mineRead      = 2000 // pending requests that are looked through for those of one person
)

// Approvals answers GET /approvals: without ?state= what is pending, oldest first; other
// states newest first. ?repository=, ?agent= and ?rule= narrow it, and ?mine=1 leaves what
// the reader may approve.
func (p *Pages) Approvals(c echo.Context) error {
	f, err := p.Begin(c, views.SectionApprovals, "Approvals")
	if err != nil {
		return err
	}
	q := c.QueryParams()
	page := view.ApprovalsPage{Chrome: f.Chrome, State: q.Get("state"), Repository: q.Get("repository"), Agent: q.Get("agent"), Rule: q.Get("rule")}
	filter := approval.Filter{Repository: page.Repository, Agent: page.Agent, Rule: page.Rule, After: q.Get("after"), Limit: approvalsPage}
	switch page.State {
	case "":
		page.State = string(approval.Pending)
	case "all":
		page.State = ""
	}
	if page.State != "" {
		if !slices.Contains(handlers.RequestStates(), approval.State(page.State)) {
			return handlers.Refuse(orchestrator.CodeBadRequest, "There is no state of that name. Choose one of the tabs.")
		}
		filter.States = []approval.State{approval.State(page.State)}
	}
	if filter.After != "" && !handlers.IsID(filter.After, orchestrator.RequestPrefix) {
		return handlers.Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the first page.")
	}
	filter.Oldest = page.State == string(approval.Pending)
	page.Oldest, page.Mine = filter.Oldest, filter.Oldest && q.Get("mine") != ""
	found, err := p.requestsOf(f, filter, page.Mine)
	if err != nil {
		return err
	}
	if err := p.Gateway.WithReaders(f.Ctx, f.Who.Principal, found.Items); err != nil {
		return err
	}
	page.Rows = each.Of(found.Items, f.ApprovalRow)
	page.Later = filter.After != ""
	if found.Next != "" {
		page.NextHref = handlers.WithParam(f.Chrome.Path, "after", found.Next)
	}
	if err := p.approvalChoices(f, &page, filter); err != nil {
		return err
	}
	if len(page.Rows) == 0 {
		live, err := p.Reader.List(f.Ctx, orchestrator.Filter{States: handlers.LiveStates(), RootsOnly: true, Limit: 200})
		if err != nil {
			return err
		}
		page.Running = len(live.Items)
	}
	return handlers.Render(c, http.StatusOK, view.Approvals(page))
}

// requestsOf reads a page; of mine only those that the reader may approve.
func (p *Pages) requestsOf(f *handlers.Frame, filter approval.Filter, mine bool) (approval.Page, error) {
	if !mine {
		return p.Requests.Requests(f.Ctx, filter)
	}
	var out approval.Page
	filter.Limit = 200
	for read := 0; read < mineRead; {
		found, err := p.Requests.Requests(f.Ctx, filter)
		if err != nil {
			return out, err
		}
		for _, r := range found.Items {
			if !f.MayDecide(r) {
				continue
			}
			if len(out.Items) == approvalsPage {
				out.Next = out.Items[approvalsPage-1].ID
				return out, nil
			}
			out.Items = append(out.Items, r)
		}
		read += len(found.Items)
		if filter.After = found.Next; found.Next == "" {
			return out, nil
		}
	}
	out.Next = filter.After // there may be more further on
	return out, nil
}

// approvalChoices fills what the list can be narrowed to, and how many each tab has.
func (p *Pages) approvalChoices(f *handlers.Frame, page *view.ApprovalsPage, filter approval.Filter) error {
	conf := p.Engine.Config()
	page.Repositories = slices.Sorted(maps.Keys(conf.Repositories))
	page.Agents = each.Of(conf.Agents.All(), func(s agent.Spec) string { return s.Name })
	if rules := p.Gateway.Config().Policy; rules != nil {
		for _, r := range rules.Rules() {
			page.Rules = append(page.Rules, r.Name)
		}
	}
	page.Counts = map[string]int{}
	for _, state := range view.ApprovalTabs() {
		filter.States = nil
		if state != "" {
			filter.States = []approval.State{approval.State(state)}
		}
		n, err := p.Requests.CountRequests(f.Ctx, filter, mostInTab+1)
		if err != nil {
			return err
		}
		page.Counts[state] = n
	}
	if !page.Filtered() {
		page.Total = page.Counts[""]
		return nil
	}
	n, err := p.Requests.CountRequests(f.Ctx, approval.Filter{}, mostInTab+1)
	page.Total = n
	return err
}
