package overview

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	view "gatehouse/views/overview"

	"github.com/labstack/echo/v4"
)

// block is how many rows a block of the overview has.
const block = 8

// Overview answers GET /.
func (p *Pages) Overview(c echo.Context) error { return p.overview(c, http.StatusOK, views.SendForm{}) }

// overview draws the page; form is the send form as it was refused, or empty.
func (p *Pages) overview(c echo.Context, status int, form views.SendForm) error {
	f, err := p.Begin(c, views.SectionOverview, "Overview")
	if err != nil {
		return err
	}
	page := view.OverviewPage{Chrome: f.Chrome, Send: p.SendForm(form), Examples: p.Examples}
	if err := p.condition(f, &page); err != nil {
		return err
	}
	if err := p.needsYou(f, &page); err != nil {
		return err
	}
	if err := p.runningNow(f, &page); err != nil {
		return err
	}
	if err := p.today(f, &page); err != nil {
		return err
	}
	return handlers.Render(c, status, view.Overview(page))
}

// needsYou lists what the reader can decide: by deadline, then by age.
func (p *Pages) needsYou(f *handlers.Frame, page *view.OverviewPage) error {
	var mine []approval.Request
	for _, r := range f.Pending {
		if f.MayDecide(r) {
			mine = append(mine, r)
		}
	}
	slices.SortStableFunc(mine, func(a, b approval.Request) int {
		switch {
		case a.ExpiresAt != nil && b.ExpiresAt != nil && !a.ExpiresAt.Equal(*b.ExpiresAt):
			return a.ExpiresAt.Compare(*b.ExpiresAt)
		case (a.ExpiresAt == nil) != (b.ExpiresAt == nil):
			if a.ExpiresAt != nil {
				return -1
			}
			return 1
		}
		return a.CreatedAt.Compare(b.CreatedAt)
	})
	page.NeedsYouAll = len(mine)
	for _, r := range mine {
		if page.OldestNeed.IsZero() || r.CreatedAt.Before(page.OldestNeed) {
			page.OldestNeed = r.CreatedAt
		}
	}
	first := mine[:min(len(mine), block)]
	if err := p.Gateway.WithReaders(f.Ctx, f.Who.Principal, first); err != nil {
		return err
	}
	page.NeedsYou = each.Of(first, f.ApprovalRow)
	return nil
}

// runningNow lists what is worked on, and who works below each task.
func (p *Pages) runningNow(f *handlers.Frame, page *view.OverviewPage) error {
	tasks, counts, err := p.Sums.LiveTasks(f.Ctx, block, activeStates()...)
	if err != nil {
		return err
	}
	for state, n := range counts {
		page.RunningAll += n
		page.RunningMore = page.RunningMore || n >= mostCounted
		if state == orchestrator.AwaitingApproval {
			page.Parked = n
		}
	}
	page.AnyTasks = page.RunningAll > 0
	below, err := p.workBelow(f, tasks)
	if err != nil {
		return err
	}
	for _, d := range tasks {
		row := f.DelegationRow(d, nil)
		for _, b := range below[d.ID] {
			row.Chain, row.Whose = append(row.Chain, b.Agent), turnOf(b, f)
			if b.State == orchestrator.Queued {
				row.QueuedSince = b.Since
			}
		}
		page.Running = append(page.Running, row)
	}
	return nil
}

// mostCounted is from where on the count of a state says "and more".
const mostCounted = 500

// workBelow follows each task down to where the work is: at every step to the newest live
// child that is waited for. One question a level serves all tasks.
func (p *Pages) workBelow(f *handlers.Frame, tasks []orchestrator.Delegation) (map[string][]orchestrator.Below, error) {
	path, at := map[string][]orchestrator.Below{}, map[string]string{} // by task; at: whose children come next
	for _, d := range tasks {
		if d.OpenChildren > 0 {
			at[d.ID] = d.ID
		}
	}
	for range maxLevels {
		if len(at) == 0 {
			break
		}
		children, err := p.Sums.LiveBelow(f.Ctx, slices.Sorted(maps.Values(at)))
		if err != nil {
			return nil, err
		}
		for task, parent := range at {
			delete(at, task)
			for _, b := range slices.Backward(children[parent]) {
				if !b.Spawned {
					path[task], at[task] = append(path[task], b), b.ID
					break
				}
			}
		}
	}
	return path, nil
}

// maxLevels is how deep a row of the overview looks.
const maxLevels = 6

// turnOf says who must act next where the work of a task is.
func turnOf(b orchestrator.Below, f *handlers.Frame) string {
	if turn := f.AskedTurn(b.ID); turn != "" && b.State == orchestrator.Waiting {
		return "waits for " + turn
	}
	switch b.State {
	case orchestrator.Queued:
		return b.Agent + " is next in line"
	case orchestrator.AwaitingApproval:
		for _, r := range f.Pending {
			if r.DelegationID == b.ID {
				who := f.WaitsFor(r)
				if f.Voters.Stuck(r) {
					return who
				}
				return "waits for " + who
			}
		}
		return "waits for an approver"
	case orchestrator.Running:
		return b.Agent + " works"
	default:
		return b.Agent + ": " + views.StateWord(string(b.State))
	}
}

// today counts what has happened since midnight, and lists what went wrong.
func (p *Pages) today(f *handlers.Frame, page *view.OverviewPage) error {
	midnight := p.midnight()
	got, err := p.Sums.Today(f.Ctx, midnight)
	if err != nil {
		return err
	}
	page.Today = view.TodayFigures{Tasks: got.Tasks, More: got.More, Landed: got.Landed, Delivered: deliveredWord(p.Engine.Config().Repositories), Rejected: got.Rejected, USD: got.USD, MedianYes: got.MedianYes, Since: midnight}
	if most := p.Engine.Config().Settings.DailyUSD; most > 0 {
		page.Today.MaxUSD = &most
	}
	if err := p.wentWrong(f, midnight, page); err != nil {
		return err
	}
	if page.AnyTasks = page.AnyTasks || got.Tasks > 0; page.AnyTasks {
		return nil
	}
	any, err := p.Reader.List(f.Ctx, orchestrator.Filter{RootsOnly: true, Limit: 1})
	page.AnyTasks = len(any.Items) > 0
	return err
}

// deliveredWord says what has become of changes that were approved: where a yes pushes the
// agent's branch, nothing is on the target by Gatehouse's hand.
func deliveredWord(all map[string]orchestrator.Repository) string {
	pushes := 0
	for _, r := range all {
		if (patch.Delivery{Mode: r.Deliver}).Pushes() {
			pushes++
		}
	}
	switch pushes {
	case 0:
		return "landed"
	case len(all):
		return "pushed"
	}
	return "landed or pushed"
}

// wentWrong lists the tasks that ended as nobody wanted and the hand-overs that guards
// refused, the newest first.
func (p *Pages) wentWrong(f *handlers.Frame, midnight time.Time, page *view.OverviewPage) error {
	tasks, n, err := p.Sums.Wrong(f.Ctx, midnight, block)
	if err != nil {
		return err
	}
	refusals, refused, err := p.Sums.Refusals(f.Ctx, midnight, block)
	if err != nil {
		return err
	}
	page.Wrong = each.Of(tasks, f.OnlyRow)
	for _, r := range refusals {
		page.Wrong = append(page.Wrong, views.DelegationRow{ID: r.TaskID, Key: fmt.Sprintf("%s-%d", r.TaskID, r.N), Title: r.Task, State: "refused", Chain: []string{r.From, r.To}, EndedAt: r.At, Code: r.Code, Case: r.Reason, Reason: r.Message})
	}
	slices.SortStableFunc(page.Wrong, func(a, b views.DelegationRow) int { return b.EndedAt.Compare(a.EndedAt) })
	page.Wrong, page.WrongAll, page.RefusedAll = page.Wrong[:min(len(page.Wrong), block)], n, refused
	return nil
}

// Send answers POST /delegations and POST /tasks: the form that makes a task.
func (p *Pages) Send(c echo.Context) error {
	who, _ := handlers.Who(c)
	in := views.SendForm{Agent: c.FormValue("agent"), Text: c.FormValue("text"), Repository: c.FormValue("repository"), Handoffs: c.FormValue("handoffs") != "", Key: c.FormValue("key")}
	files, err := handlers.SentFiles(c)
	if err != nil {
		return err
	}
	t, _, _, err := p.Engine.Submit(c.Request().Context(), orchestrator.Submission{
		Attachments: files, Agent: in.Agent, Text: in.Text, Repository: in.Repository, Key: in.Key, Handoffs: in.Handoffs, Via: origin.From(origin.Web), RequesterID: who.User.ID, Requester: who.User.Name,
	})
	if err != nil {
		f := handlers.FaultOf(err)
		if f.ID != "" {
			return err
		}
		handlers.RefuseSend(&in, f, len(files))
		return p.overview(c, f.Status, in)
	}
	return handlers.SeeOther(c, views.DelegationHref(t.ID), "sent")
}
