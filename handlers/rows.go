package handlers

import (
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/badge"
	"gatehouse/views"
)

// landsOn is the branch of a revision. An older version took a commit's id for one; such a
// change is asked again before it lands.
func landsOn(v approval.Revision) string {
	if v.Base.Branch == "" {
		return "no branch yet"
	}
	return views.BranchName(v.Base.Branch)
}

// turn says who must act next on a request, or that no yes can come.
func (f *frame) turn(r approval.Request) string {
	if !f.voters.Stuck(r) {
		return f.voters.Turn(r, f.who.User.ID)
	}
	return badge.Nobody(f.voters.Needs(r).Have)
}

// approvalRow is one request as lists show it.
func (f *frame) approvalRow(r approval.Request) views.ApprovalRow {
	v := r.Revision
	needs := f.voters.Needs(r)
	row := views.ApprovalRow{
		ID: r.ID, Title: r.Title, State: string(r.State), Read: r.HowRead(), Whose: f.turn(r), Overtaken: r.OvertakenBriefly(), CanDecide: f.mayApprove(r),
		Chain: chainOf(r), Agent: r.Agent, AskedBy: askedBy(r), Repository: r.Repository, Target: landsOn(v), Added: v.Added, Removed: v.Removed,
		Files: len(v.Files), Yes: needs.Have, Need: needs.Count, CreatedAt: v.At, Commit: r.Landed, Delivery: v.Delivery().As(views.BranchName),
	}
	if row.CreatedAt.IsZero() {
		row.CreatedAt = r.CreatedAt
	}
	if r.ExpiresAt != nil {
		row.ExpiresAt = *r.ExpiresAt
	}
	seen := map[string]bool{}
	for _, w := range v.Warnings {
		if !seen[w.Code] && w.Code != "checks_failed" { // counted below
			seen[w.Code] = true
			row.Warnings = append(row.Warnings, w.Code)
		}
	}
	for _, c := range v.Checks {
		if !c.OK {
			row.ChecksBad++
		}
	}
	if n := len(r.Decisions); n > 0 && r.State != approval.Pending {
		row.DecidedBy = r.Decisions[n-1].User
	}
	return row
}

// chainOf is the names of a request's chain.
func chainOf(r approval.Request) []string {
	if len(r.Chain) == 0 {
		return []string{r.Agent}
	}
	return r.Chain
}

// delegationRow is one task or delegation as lists show it. tree is the task's, for
// the path that the work took; without it the row shows how the delegation came about.
func (f *frame) delegationRow(d orchestrator.Delegation, tree []orchestrator.Delegation) views.DelegationRow {
	row := views.DelegationRow{
		ID: d.ID, Title: d.Text, State: string(d.State), Chain: names(d), Requester: d.Requester, Repository: d.Repository,
		Since: d.Since, CreatedAt: d.CreatedAt, Usage: usage(d.Usage), ApprovalID: d.ApprovalID, Whose: f.whose(d, tree),
	}
	if d.ParentID == "" {
		row.ID = d.TaskID
	}
	if d.EndedAt != nil {
		row.EndedAt = *d.EndedAt
	}
	if d.Error != nil {
		row.Code, row.Reason = d.Error.Code, strings.Join(strings.Fields(d.Error.Message), " ")
	}
	if d.Result != nil {
		row.Commit = d.Result.Commit
	}
	if len(tree) > 0 && d.ParentID == "" {
		row.Below = len(tree) - 1
		deepest := d
		for _, x := range tree {
			if x.Depth > deepest.Depth {
				deepest = x
			}
		}
		row.Chain = wayTo(tree, deepest)
		row.Below -= len(row.Chain) - 1
	}
	return row
}

// wayTo is the agents from the root of the tree to d.
func wayTo(tree []orchestrator.Delegation, d orchestrator.Delegation) []string {
	byID := make(map[string]orchestrator.Delegation, len(tree))
	for _, x := range tree {
		byID[x.ID] = x
	}
	all := []string{d.To}
	for range tree {
		up, ok := byID[d.ParentID]
		if !ok {
			break
		}
		all = append(all, up.To)
		d = up
	}
	slices.Reverse(all)
	return all
}

// names is the agents from the root to d.
func names(d orchestrator.Delegation) []string {
	steps := d.Chain.Steps()
	if len(steps) == 0 {
		return []string{d.To}
	}
	all := []string{steps[0].From}
	for _, s := range steps {
		all = append(all, s.To)
	}
	return all
}

// waitsFor is turn, and that a yes would land nothing.
func (f *frame) waitsFor(r approval.Request) string {
	who := f.turn(r)
	if o := r.OvertakenBriefly(); o != "" {
		who += " · " + o
	}
	return who
}

// whose says who must act next.
func (f *frame) whose(d orchestrator.Delegation, tree []orchestrator.Delegation) string {
	switch d.State {
	case orchestrator.Running:
		return d.To + " works"
	case orchestrator.Queued:
		return d.To + " is next in line"
	case orchestrator.Checking:
		return "checks run"
	case orchestrator.Landing:
		if d.Work.Problem != "" {
			return "landing waits for a person"
		}
		return "landing"
	case orchestrator.AwaitingApproval:
		for _, r := range f.pending {
			if r.ID == d.ApprovalID {
				return f.waitsFor(r)
			}
		}
		return "an approver"
	case orchestrator.Waiting:
		for _, x := range tree {
			if x.ParentID == d.ID && !x.State.Ended() {
				return "waits for " + x.To
			}
		}
		return "waits for others"
	default:
		return ""
	}
}

// usage is what was reported; nothing at all is not zero.
func usage(u agent.Usage) views.Usage {
	return views.Usage{Reported: u.InputTokens+u.OutputTokens > 0 || u.USD != nil, Tokens: int(u.InputTokens + u.OutputTokens), USD: u.USD}
}

// usageOf is what a delegation and all below it used, with its budget.
func usageOf(d orchestrator.Delegation) views.Usage {
	u := usage(d.Usage)
	if b := d.Work.Budget; b != nil {
		u.MaxTokens = b.Limits.Tokens
		if b.Limits.MicroUSD != nil {
			usd := float64(*b.Limits.MicroUSD) / 1e6
			u.MaxUSD = &usd
		}
	}
	return u
}

// at is the time that t points to, or the zero time.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
