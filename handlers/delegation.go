package handlers

import (
	"net/http"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	taskview "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// maxStory is from how many events on a task's drawings and figures are renewed slowly.
const maxStory = 5000

// Delegation answers GET /delegations/{id}: the tree of a task with the named delegation
// selected. A failed task that is named by its own id opens where it failed.
func (p *Pages) Delegation(c echo.Context) error {
	f, err := p.begin(c, views.SectionDelegations, "")
	if err != nil {
		return err
	}
	d, err := p.Ids.Delegation(f.ctx, f.who, c.Param("id"))
	if err != nil {
		return err
	}
	t, err := p.Reader.Task(f.ctx, d.TaskID)
	if err != nil {
		return err
	}
	tree, err := p.Traces.Outline(f.ctx, t.ID)
	if err != nil {
		return err
	}
	tr := newTrace(tree)
	if root := tr.root(); root.State == orchestrator.Failed && d.ID == root.ID && !strings.HasPrefix(c.Param("id"), orchestrator.DelegationPrefix) {
		if where := tr.failing(); where.ID != d.ID {
			if d, err = p.Reader.Delegation(f.ctx, where.ID); err != nil {
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
	page.ID, page.Tab = d.ID, taskview.ParseTab(c.QueryParam("tab"))
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
	if err := p.taskTab(c, f, &page, d, t, tr); err != nil {
		return err
	}
	return render(c, http.StatusOK, taskview.Delegation(page))
}

// forkable counts the turns of a model's conversation that this person may fork at.
func (p *Pages) forkable(f *frame, page *taskview.DelegationPage, d orchestrator.Delegation) error {
	if !p.Engine.Traits(d.To).Conversation || !f.who.Has(people.DelegationsControl) {
		return nil
	}
	var err error
	page.Turns, err = p.Reader.LastTurn(f.ctx, d.ID, d.Work.Runs)
	return err
}

// taskTab fills what the tab shows beside the tree.
func (p *Pages) taskTab(c echo.Context, f *frame, page *taskview.DelegationPage, d orchestrator.Delegation, t orchestrator.Task, tr *trace) error {
	switch page.Tab {
	case taskview.TabEvents:
		return p.eventRows(c, f, page, t, tr)
	case taskview.TabTalk:
		return p.talk(c, f, page, d, tr.tree)
	case taskview.TabFlow, taskview.TabFigures:
		return p.taskDrawings(f, page, tr.tree)
	case taskview.TabContext:
		return p.contextUsed(f, page)
	case taskview.TabTree:
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
func (p *Pages) taskHead(f *frame, t orchestrator.Task, tr *trace) (taskview.DelegationPage, error) {
	tree := tr.tree
	root, err := p.Reader.Delegation(f.ctx, t.RootID)
	if err != nil {
		return taskview.DelegationPage{}, err
	}
	f.chrome.Title, f.chrome.State = orchestrator.Title(t.Text), string(root.State)
	may := f.who.Has(people.DelegationsControl)
	page := taskview.DelegationPage{
		TaskID: t.ID, Text: t.Text, TaskState: string(root.State), Since: root.Since, Requester: t.Requester, Via: t.Via, Source: t.Source,
		CreatedAt: t.CreatedAt, EndedAt: at(root.EndedAt), Repository: root.Repository, On: worksOn(root.Work.Stand, t.Ref), Usage: usageOf(root), HandOffs: t.Handoffs,
		MaxHandOff: mostHandoffs(p.Engine.Config().Settings.MaxHandoffs, root.Work.Budget), CanCancel: may && !root.State.Ended(),
		CanRetry: may && root.State.Ended() && root.State != orchestrator.Completed,
		CanPause: may && !root.State.Ended() && t.PausedAt == nil, CanResume: may && !root.State.Ended() && t.PausedAt != nil,
	}
	page.ViaHref = cameBy(f.who, t)
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
		page.Commit, page.Share = root.Result.Commit, share(nil, root.Result.Declined)
		if to := root.Result.Pushed; to != "" {
			page.Delivery = patch.Delivery{Mode: patch.DeliverBranch, Branch: views.BranchName(to)}
		}
	}
	if err := p.openRequest(f, &page, tree); err != nil {
		return page, err
	}
	page.Whose, page.Chrome = f.taskTurn(root, tree), f.chrome
	return page, nil
}

// heldOf says why a landing of the tree waits for a person, if one does.
func (p *Pages) heldOf(f *frame, tree []orchestrator.Delegation, may bool) (*taskview.Held, error) {
	var held *taskview.Held
	for _, d := range tree {
		if d.State != orchestrator.Landing {
			continue
		}
		full, err := p.Reader.Delegation(f.ctx, d.ID)
		if err != nil {
			return nil, err
		}
		if full.State == orchestrator.Landing && full.Work.Problem != "" {
			held = &taskview.Held{What: full.Work.Problem}
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
func (p *Pages) openRequest(f *frame, page *taskview.DelegationPage, tree []orchestrator.Delegation) error {
	if !f.who.Has(people.ApprovalsRead) {
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
	r, err := p.Requests.Request(f.ctx, id)
	if err != nil {
		return err
	}
	if r, err = p.Gateway.ReadersOf(f.ctx, f.who.Principal, r); err != nil {
		return err
	}
	row := f.approvalRow(r)
	page.Approval = &row
	if r.Landed != "" {
		page.Commit, page.Delivery = r.Landed, r.Revision.Delivery().As(views.BranchName)
		page.Share = share(r.Revision.Files, r.Revision.Declined)
	}
	return nil
}

// taskTurn says who must act next on a task: the deepest delegation that does not
// wait for another.
func (f *frame) taskTurn(root orchestrator.Delegation, tree []orchestrator.Delegation) string {
	if root.State.Ended() {
		return ""
	}
	at := root
	for _, d := range tree {
		if !d.State.Ended() && d.State != orchestrator.Waiting && (at.State == orchestrator.Waiting || d.Depth > at.Depth) {
			at = d
		}
	}
	return f.whose(at, tree)
}
