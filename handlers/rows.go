package handlers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
)

// LandsOn is the branch of a revision. An older version took a commit's id for one; such a
// change is asked again before it lands.
func LandsOn(v approval.Revision) string {
	if v.Base.Branch == "" {
		return "no branch yet"
	}
	return views.BranchName(v.Base.Branch)
}

// Turn says who must act next on a request, or that no yes can come. Who asked for the task
// may answer a question of its agents, whoever else may.
func (f *Frame) Turn(r approval.Request) string {
	if turn := f.Voters.Turn(r, f.Who.User.ID); r.IsQuestion() && f.MayDecide(r) && !strings.HasPrefix(turn, "you") {
		if f.Voters.Stuck(r) {
			return "you"
		}
		if strings.Contains(turn, " or ") {
			return "you, " + turn
		}
		return "you or " + turn
	}
	if !f.Voters.Stuck(r) {
		return f.Voters.Turn(r, f.Who.User.ID)
	}
	return badge.Nobody(f.Voters.Needs(r).Have)
}

// ApprovalRow is one request as lists show it.
func (f *Frame) ApprovalRow(r approval.Request) views.ApprovalRow {
	v := r.Revision
	needs := f.Voters.Needs(r)
	row := views.ApprovalRow{
		ID: r.ID, Title: r.Title, State: string(r.State), Read: r.HowRead(), Whose: f.Turn(r), Overtaken: r.OvertakenBriefly(), CanDecide: f.MayDecide(r),
		Chain: ChainOf(r), Agent: r.Agent, AskedBy: askedBy(r), About: about(r), Question: r.IsQuestion(), Repository: r.Repository, Target: LandsOn(v), Added: v.Added, Removed: v.Removed,
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
	for _, n := range v.Notes {
		if r.IsAction() { // that it may have run before bears on every yes
			row.Warnings = append(row.Warnings, n.Code)
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

// ChainOf is the names of a request's chain.
func ChainOf(r approval.Request) []string {
	if len(r.Chain) == 0 {
		return []string{r.Agent}
	}
	return r.Chain
}

// DelegationRow is one task or delegation as lists show it. tree is the task's, for
// the path that the work took; without it the row shows how the delegation came about.
func (f *Frame) DelegationRow(d orchestrator.Delegation, tree []orchestrator.Delegation) views.DelegationRow {
	row := views.DelegationRow{
		ID: d.ID, Title: d.Text, State: string(d.State), Chain: Names(d), Requester: d.Requester, Repository: d.Repository,
		Since: d.Since, CreatedAt: d.CreatedAt, Usage: Usage(d.Usage), Whose: f.whose(d, tree),
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

// OnlyRow is DelegationRow without a tree.
func (f *Frame) OnlyRow(d orchestrator.Delegation) views.DelegationRow {
	return f.DelegationRow(d, nil)
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

// Names is the agents from the root to d.
func Names(d orchestrator.Delegation) []string {
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

// WaitsFor is Turn, and that a yes would land nothing.
func (f *Frame) WaitsFor(r approval.Request) string {
	who := f.Turn(r)
	if o := r.OvertakenBriefly(); o != "" {
		who += " · " + o
	}
	return who
}

// whose says who must act next.
func (f *Frame) whose(d orchestrator.Delegation, tree []orchestrator.Delegation) string {
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
		for _, r := range f.Pending {
			if r.ID == d.ApprovalID {
				return f.WaitsFor(r)
			}
		}
		return "an approver"
	case orchestrator.Waiting:
		if turn := f.AskedTurn(d.ID); turn != "" {
			return turn
		}
		if d.Work.OpenAsks() > 0 {
			return "an approver"
		}
		if leaf := f.leafBelow(d.ID, tree); leaf != "" {
			return "waits for " + leaf
		}
		return "waits for others"
	default:
		return ""
	}
}

// leafBelow names the child that a delegation waits for, and where the work below it is stopped
// by what people are asked, who is asked there.
func (f *Frame) leafBelow(id string, tree []orchestrator.Delegation) string {
	for _, x := range tree {
		if x.ParentID != id || x.State.Ended() {
			continue
		}
		at := x
		for range tree { // no deeper than there are delegations
			turn := f.AskedTurn(at.ID)
			if turn == "" && at.Work.OpenAsks() > 0 {
				turn = "an approver"
			}
			if turn != "" {
				return x.To + ": " + at.To + " waits for " + turn
			}
			below := slices.IndexFunc(tree, func(y orchestrator.Delegation) bool { return y.ParentID == at.ID && !y.State.Ended() })
			if below < 0 {
				break
			}
			at = tree[below]
		}
		return x.To
	}
	return ""
}

// Usage is what was reported; nothing at all is not zero.
func Usage(u agent.Usage) views.Usage {
	return views.Usage{Reported: u.InputTokens+u.OutputTokens > 0 || u.USD != nil, Tokens: int(u.InputTokens + u.OutputTokens), USD: u.USD}
}

// UsageOf is what a delegation and all below it used, with its budget.
func UsageOf(d orchestrator.Delegation) views.Usage {
	u := Usage(d.Usage)
	if b := d.Work.Budget; b != nil {
		u.MaxTokens = b.Limits.Tokens
		if b.Limits.MicroUSD != nil {
			usd := float64(*b.Limits.MicroUSD) / 1e6
			u.MaxUSD = &usd
		}
	}
	return u
}

// At is the time that t points to, or the zero time.
func At(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// LiveStates are those in which something still happens.
func LiveStates() []orchestrator.State {
	return slices.DeleteFunc(orchestrator.States(), orchestrator.State.Ended)
}

// Count reads a number that the page's script counted; anything else is 0.
func Count(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1_000_000 {
		return 0
	}
	return n
}

// Share says how much of a change has landed, and what people left out of it; "" where
// that is nothing.
func Share(landed []patch.File, declined []string) string {
	switch all := len(landed) + len(declined); {
	case len(declined) == 0:
		return ""
	case len(landed) == 0:
		return "left out: " + SomeOf(declined)
	default:
		return fmt.Sprintf("%d of %d files; left out: %s", len(landed), all, SomeOf(declined))
	}
}

// LimitsOf says what a run may use, and the most that it used. What it was started with
// counts, not what the agent would be given now.
func LimitsOf(spec agent.Spec, c *agent.Confinement) (limits, used string) {
	var parts []string
	if spec.Timeout > 0 {
		parts = append(parts, "stops after "+views.Duration(spec.Timeout))
	}
	if c == nil { // it has not begun, or is at it
		c = &agent.Confinement{Limits: spec.Limits, Network: spec.Network}
	}
	if l := c.Limits.String(); l != "" {
		parts = append(parts, l)
	}
	if c.Network == agent.NetworkOff {
		parts = append(parts, "no network")
	}
	return strings.Join(parts, ", "), c.Most.String()
}

// TaskTurn says who must act next on a task: the deepest delegation that does not
// wait for another one.
func (f *Frame) TaskTurn(root orchestrator.Delegation, tree []orchestrator.Delegation) string {
	if root.State.Ended() {
		return ""
	}
	at := root
	waits := func(d orchestrator.Delegation) bool {
		return d.State == orchestrator.Waiting && f.AskedTurn(d.ID) == ""
	}
	for _, d := range tree {
		if !d.State.Ended() && !waits(d) && (waits(at) || d.Depth > at.Depth) {
			at = d
		}
	}
	return f.whose(at, tree)
}

// SomeOf names a few paths and counts the rest.
func SomeOf(paths []string) string {
	const most = 3
	short := each.Of(paths[:min(len(paths), most)], views.ShortPath)
	if len(paths) <= most {
		return strings.Join(short, ", ")
	}
	return fmt.Sprintf("%s and %d more files", strings.Join(short, ", "), len(paths)-most)
}

// RequestStates are the states of requests that lists can be filtered by.
func RequestStates() []approval.State {
	return []approval.State{approval.Pending, approval.Approved, approval.Rejected, approval.ChangesRequested, approval.Expired,
		approval.Superseded, approval.Stale, approval.Landed, approval.Reverted, approval.Failed, approval.Cancelled, approval.Answered}
}

// AsksInCard is what a card shows of what is no change of files: all of it where it may be
// approved there.
func AsksInCard(r approval.Request) string {
	whole := r.Whole()
	if r.IsAction() { // who wants to call what stands above it
		whole = r.Call().Shown()
	}
	if len(whole) <= approval.CutQuestion {
		return whole
	}
	return string([]rune(whole[:approval.CutQuestion])) + "…"
}

// askedBy is the agent that asks for a hand-over, "" for others.
func askedBy(r approval.Request) string {
	if r.IsHandover() {
		return r.Handover.From
	}
	return ""
}

// about is what a request asks that is no change of files, "" for one.
func about(r approval.Request) string {
	switch {
	case r.IsHandover():
		return r.Handover.From + " asks before " + r.Agent + " works"
	case r.IsAction():
		return r.Agent + " wants to call " + callee(r)
	case r.IsQuestion():
		return r.Agent + " asks a question"
	}
	return ""
}

// callee is the tool of a call, with the server that has it.
func callee(r approval.Request) string {
	if r.Action.Server == "" {
		return r.Action.Tool
	}
	return r.Action.Tool + " of " + r.Action.Server
}

// asked is the call or the question that a delegation waits for people with; nil where the
// reader does not know of one.
func (f *Frame) asked(delegationID string) *approval.Request {
	at := slices.IndexFunc(f.Pending, func(r approval.Request) bool {
		return r.DelegationID == delegationID && (r.IsAction() || r.IsQuestion())
	})
	if at < 0 {
		return nil
	}
	return &f.Pending[at]
}

// AskedTurn says who must act next on the call or the question that a delegation waits for
// people with; "" where there is none. Who may not read requests learns no names.
func (f *Frame) AskedTurn(delegationID string) string {
	r := f.asked(delegationID)
	switch {
	case r == nil && f.asking[delegationID]:
		return "a person, with a call or a question"
	case r == nil:
		return ""
	case r.IsQuestion():
		return f.Turn(*r) + ", with an answer"
	}
	return f.Turn(*r) + ", about a call"
}
