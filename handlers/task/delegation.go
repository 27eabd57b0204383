package task

import (
	"net/http"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// maxStory is from how many events on a task's drawings and figures are renewed slowly.
const maxStory = 5000

// Delegation answers GET /delegations/{id}: the tree of a task with the named delegation
// selected. A failed task that is named by its own id opens where it failed.
func (p *Pages) Delegation(c echo.Context) error { return p.delegation(c, http.StatusOK, view.Tell{}) }

func (p *Pages) delegation(c echo.Context, status int, typed view.Tell) error {
	f, err := p.Begin(c, views.SectionDelegations, "")
	if err != nil {
		return err
	}
	d, err := p.Ids.Delegation(f.Ctx, f.Who, c.Param("id"))
	if err != nil {
		return err
	}
	t, err := p.Reader.Task(f.Ctx, d.TaskID)
	if err != nil {
		return err
	}
	tree, err := p.Traces.Outline(f.Ctx, t.ID)
	if err != nil {
		return err
	}
	tr := newTrace(tree)
	if root := tr.root(); root.State == orchestrator.Failed && d.ID == root.ID && !strings.HasPrefix(c.Param("id"), orchestrator.DelegationPrefix) {
		if where := tr.failing(); where.ID != d.ID {
			if d, err = p.Reader.Delegation(f.Ctx, where.ID); err != nil {
				return err
			}
		}
	}
	page, err := p.taskHead(f, t, tr)
	if err != nil {
		return err
	}
	if err := p.kept(f, t, &page); err != nil {
		return err
	}
	page.ID, page.Tab = d.ID, view.ParseTab(c.QueryParam("tab"))
	page.Open, page.Plain = c.QueryParam("pinch") == "off", c.QueryParam("plain") == "on"
	page.EventsN = int(t.LastN)
	if page.HasTree() {
		if err := p.outlined(f, &page, tr, c.QueryParams()); err != nil {
			return err
		}
	}
	if page.Selected, err = p.pane(f, d, &page, moreOf(c)); err != nil {
		return err
	}
	if err := p.forkable(f, &page, d); err != nil {
		return err
	}
	if err := p.messages(f, &page, d, typed); err != nil {
		return err
	}
	if err := p.taskTab(c, f, &page, d, t, tr); err != nil {
		return err
	}
	return handlers.Render(c, status, view.Delegation(page))
}

// forkable counts the turns of a model's conversation that this person may fork at.
func (p *Pages) forkable(f *handlers.Frame, page *view.DelegationPage, d orchestrator.Delegation) error {
	if !p.Engine.Traits(d.To).Conversation || !f.Who.Has(people.DelegationsControl) {
		return nil
	}
	var err error
	page.Turns, err = p.Reader.LastTurn(f.Ctx, d.ID, d.Work.Runs)
	return err
}

// taskTab fills what the tab shows beside the tree.
func (p *Pages) taskTab(c echo.Context, f *handlers.Frame, page *view.DelegationPage, d orchestrator.Delegation, t orchestrator.Task, tr *trace) error {
	switch page.Tab {
	case view.TabEvents:
		return p.eventRows(c, f, page, t, tr)
	case view.TabTalk:
		return p.talk(c, f, page, d, tr.tree)
	case view.TabFlow, view.TabFigures:
		return p.taskDrawings(f, page, tr.tree)
	case view.TabContext:
		return p.contextUsed(f, page)
	case view.TabTree:
		if err := p.grantsOf(f, t, page); err != nil {
			return err
		}
		return p.taskWaits(f, page, tr)
	}
	return nil
}

// mostHandoffs is how many a task may make: the settings' limit, or its own lower one.
func mostHandoffs(limit int, b *budget.Account) int {
	if b != nil && b.Limits.Handoffs != nil {
		return min(limit, *b.Limits.Handoffs)
	}
	return limit
}

// taskHead is what the page says of the task as a whole.
func (p *Pages) taskHead(f *handlers.Frame, t orchestrator.Task, tr *trace) (view.DelegationPage, error) {
	tree := tr.tree
	root, err := p.Reader.Delegation(f.Ctx, t.RootID)
	if err != nil {
		return view.DelegationPage{}, err
	}
	f.Chrome.Title, f.Chrome.State = orchestrator.Title(t.Text), string(root.State)
	may := f.Who.Has(people.DelegationsControl)
	page := view.DelegationPage{
		TaskID: t.ID, Text: t.Text, TaskState: string(root.State), Since: root.Since, Requester: t.Requester, Via: t.Via, Source: t.Source, Files: views.AttachedFiles(t),
		CreatedAt: t.CreatedAt, EndedAt: handlers.At(root.EndedAt), Repository: root.Repository, On: worksOn(root.Work.Stand, t.Ref),
		MaxHandOff: mostHandoffs(p.Engine.Config().Settings.MaxHandoffs, root.Work.Budget), CanCancel: may && !root.State.Ended(),
		CanRetry: may && root.State.Ended() && root.State != orchestrator.Completed,
		CanPause: may && !root.State.Ended() && t.PausedAt == nil, CanResume: may && !root.State.Ended() && t.PausedAt != nil,
	}
	page.ViaHref = cameBy(f.Who, t)
	page.Meters = metersOf(root, t.Handoffs, page.MaxHandOff)
	if root.Error != nil {
		where := root // the deepest one that failed is where it began
		if found := tr.failing(); root.State == orchestrator.Failed && found.Error != nil {
			where = found
		}
		page.Failure = &views.Failure{What: where.Error.Message, Where: where.To, Code: where.Error.Code, ID: where.ID}
		if page.CanRetry {
			page.Failure.Next = "Retry runs it again from the start."
		}
	}
	if page.Held, err = p.heldOf(f, tree, may); err != nil {
		return page, err
	}
	if root.Result != nil {
		page.Commit, page.Share = root.Result.Commit, handlers.Share(nil, root.Result.Declined)
		if to := root.Result.Pushed; to != "" {
			page.Delivery = patch.Delivery{Mode: patch.DeliverBranch, Branch: views.BranchName(to)}
		}
	}
	if err := p.openRequest(f, &page, tree); err != nil {
		return page, err
	}
	if err := p.askedNow(f, &page); err != nil {
		return page, err
	}
	page.Whose, page.Chrome = f.TaskTurn(root, tree), f.Chrome
	return page, nil
}

// heldOf says why a landing of the tree waits for a person, if one does.
func (p *Pages) heldOf(f *handlers.Frame, tree []orchestrator.Delegation, may bool) (*view.Held, error) {
	var held *view.Held
	for _, d := range tree {
		if d.State != orchestrator.Landing {
			continue
		}
		full, err := p.Reader.Delegation(f.Ctx, d.ID)
		if err != nil {
			return nil, err
		}
		if full.State == orchestrator.Landing && full.Work.Problem != "" {
			held = &view.Held{What: full.Work.Problem}
			if may {
				held.RetryID = d.ID
			}
		}
	}
	return held, nil
}

// worksOn names the branch or the tag that a task works on; before its first run, as it
// was asked for.
func worksOn(s orchestrator.Stand, ref string) string {
	switch {
	case s.Tag != "":
		return "tag " + views.BranchName(s.Tag) + " (read only)"
	case s.Branch != "":
		return views.BranchName(s.Branch)
	}
	return views.BranchName(ref)
}

// openRequest finds the request of the tree that people should see on top: one that
// is pending, else the newest.
func (p *Pages) openRequest(f *handlers.Frame, page *view.DelegationPage, tree []orchestrator.Delegation) error {
	if !f.Who.Has(people.ApprovalsRead) {
		return nil
	}
	id := ""
	for _, d := range tree {
		if d.ApprovalID != "" && (id == "" || d.State == orchestrator.AwaitingApproval) {
			id = d.ApprovalID
		}
	}
	if id == "" {
		return nil
	}
	r, err := p.Requests.Request(f.Ctx, id)
	if err != nil {
		return err
	}
	if r, err = p.Gateway.ReadersOf(f.Ctx, f.Who.Principal, r); err != nil {
		return err
	}
	row := f.ApprovalRow(r)
	page.Approval = &row
	if r.Landed != "" {
		page.Commit, page.Delivery = r.Landed, r.Revision.Delivery().As(views.BranchName)
		page.Share = handlers.Share(r.Revision.Files, r.Revision.Declined)
	}
	return nil
}

// kept fills in what holds a task, and what retention has removed of it.
func (p *Pages) kept(f *handlers.Frame, t orchestrator.Task, page *view.DelegationPage) error {
	var err error
	if page.Legal, err = p.Holds.HoldsOn(f.Ctx, t.ID); err != nil {
		return err
	}
	if t.DroppedAt != nil {
		page.Dropped, page.CanRetry = t.DroppedAt.Format("2006-01-02"), false
	}
	return nil
}
