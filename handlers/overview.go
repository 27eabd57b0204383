package handlers

import (
	"net/http"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// block is how many rows a block of the overview has.
const block = 8

// Overview answers GET /.
func (p *Pages) Overview(c echo.Context) error { return p.overview(c, http.StatusOK, views.SendForm{}) }

// overview draws the page; form is the send form as it was refused, or empty.
func (p *Pages) overview(c echo.Context, status int, form views.SendForm) error {
	f, err := p.begin(c, views.SectionOverview, "Overview")
	if err != nil {
		return err
	}
	page := views.OverviewPage{Chrome: f.chrome, Send: p.sendForm(form), Examples: p.Examples}
	if page.Problems, err = p.channelProblems(f.ctx); err != nil {
		return err
	}
	p.needsYou(f, &page)
	if err := p.runningNow(f, &page); err != nil {
		return err
	}
	if err := p.today(f, &page); err != nil {
		return err
	}
	return render(c, status, views.Overview(page))
}

// needsYou lists what the reader can decide: by deadline, then by age.
func (p *Pages) needsYou(f *frame, page *views.OverviewPage) {
	var mine []approval.Request
	for _, r := range f.pending {
		if f.mayApprove(r) {
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
	for i, r := range mine {
		if page.OldestNeed.IsZero() || r.CreatedAt.Before(page.OldestNeed) {
			page.OldestNeed = r.CreatedAt
		}
		if i < block {
			page.NeedsYou = append(page.NeedsYou, f.approvalRow(r))
		}
	}
}

// liveStates are those in which something still happens.
func liveStates() []orchestrator.State {
	return slices.DeleteFunc(orchestrator.States(), orchestrator.State.Ended)
}

// wrongStates are the ends that nobody wanted.
func wrongStates() []orchestrator.State {
	return []orchestrator.State{orchestrator.Failed, orchestrator.Rejected, orchestrator.Expired}
}

func (p *Pages) runningNow(f *frame, page *views.OverviewPage) error {
	live, err := p.Reader.List(f.ctx, orchestrator.Filter{States: liveStates(), RootsOnly: true, Limit: 200})
	if err != nil {
		return err
	}
	page.RunningAll = len(live.Items)
	page.AnyTasks = page.RunningAll > 0
	for _, d := range live.Items[:min(block, len(live.Items))] {
		tree, err := p.Reader.Tree(f.ctx, d.TaskID)
		if err != nil {
			return err
		}
		page.Running = append(page.Running, f.delegationRow(d, tree))
	}
	return nil
}

// today counts the tasks since midnight, at most 200 of them, and all that landed or was
// rejected, whoever in a task made it.
func (p *Pages) today(f *frame, page *views.OverviewPage) error {
	now := f.chrome.Now.UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	tasks, err := p.Reader.List(f.ctx, orchestrator.Filter{RootsOnly: true, From: midnight, Limit: 200})
	if err != nil {
		return err
	}
	t := &page.Today
	t.Tasks = len(tasks.Items)
	if t.Landed, t.Rejected, err = p.Requests.Outcomes(f.ctx, midnight); err != nil {
		return err
	}
	for _, d := range tasks.Items {
		if d.Usage.USD != nil {
			sum := *d.Usage.USD
			if t.USD != nil {
				sum += *t.USD
			}
			t.USD = &sum
		}
		if slices.Contains(wrongStates(), d.State) {
			page.WrongAll++
			if len(page.Wrong) < block {
				page.Wrong = append(page.Wrong, f.delegationRow(d, nil))
			}
		}
	}
	if !page.AnyTasks && t.Tasks == 0 {
		any, err := p.Reader.List(f.ctx, orchestrator.Filter{RootsOnly: true, Limit: 1})
		if err != nil {
			return err
		}
		page.AnyTasks = len(any.Items) > 0
	}
	page.AnyTasks = page.AnyTasks || t.Tasks > 0
	if !f.who.Has(people.ApprovalsRead) {
		return nil
	}
	return p.medianYes(f, midnight, t)
}

// medianYes is the median time from request to decision of what landed today.
func (p *Pages) medianYes(f *frame, midnight time.Time, t *views.TodayFigures) error {
	landed, err := p.Requests.Requests(f.ctx, approval.Filter{States: []approval.State{approval.Landed, approval.Approved}, Limit: 100})
	if err != nil {
		return err
	}
	var waits []time.Duration
	for _, r := range landed.Items {
		if r.DecidedAt != nil && !r.DecidedAt.Before(midnight) {
			waits = append(waits, r.DecidedAt.Sub(r.CreatedAt))
		}
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		t.MedianYes = waits[len(waits)/2]
	}
	return nil
}
