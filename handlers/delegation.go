package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/people"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// maxStory is how many events of a task a page reads for its bars, refusals and logs;
// the events tab pages over all of them.
const maxStory = 5000

// eventsShown is one page of the events tab.
const eventsShown = 100

// Delegation answers GET /delegations/{id}: the whole tree of a task with the named
// delegation selected.
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
	tree, err := p.Reader.Tree(f.ctx, t.ID)
	if err != nil {
		return err
	}
	story, err := p.story(f, t.ID)
	if err != nil {
		return err
	}
	page, err := p.taskHead(f, t, tree)
	if err != nil {
		return err
	}
	page.ID, page.Tab = d.ID, views.ParseTab(c.QueryParam("tab"))
	page.Open = c.QueryParam("pinch") == "off"
	page.Tree = p.treeRows(tree, story)
	page.Selected = p.pane(d, story)
	page.EventsN = int(t.LastN)
	if spec, ok := p.Engine.Config().Agents.Get(d.To); ok && spec.Kind == agent.LLM && f.who.Has(people.DelegationsControl) {
		turns, err := p.Reader.Turns(f.ctx, d.ID, d.Work.Runs)
		if err != nil {
			return err
		}
		page.Turns = len(turns)
	}
	if err := p.taskTabs(f, &page, tree, story); err != nil {
		return err
	}
	switch page.Tab {
	case views.TabEvents:
		err = p.eventRows(c, f, &page, t, tree)
	case views.TabTalk:
		err = p.talk(c, f, &page, d, tree)
	}
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Delegation(page))
}

// story reads the first events of a task, oldest first.
func (p *Pages) story(f *frame, taskID string) ([]event.Event, error) {
	var all []event.Event
	for after := int64(0); len(all) < maxStory; {
		batch, err := p.Reader.Events(f.ctx, taskID, after, 500)
		if err != nil {
			return nil, err
		}
		all = append(all, batch...)
		if len(batch) < 500 {
			break
		}
		after = batch[len(batch)-1].N
	}
	return all, nil
}

// mostHandoffs is how many a task may make: the settings' limit, or its own lower one.
func mostHandoffs(limit int, b *budget.Account) int {
	if b != nil && b.Limits.Handoffs != nil {
		return min(limit, *b.Limits.Handoffs)
	}
	return limit
}

// taskHead is what the page says of the task as a whole.
func (p *Pages) taskHead(f *frame, t orchestrator.Task, tree []orchestrator.Delegation) (views.DelegationPage, error) {
	var root orchestrator.Delegation
	for _, d := range tree {
		if d.ID == t.RootID {
			root = d
		}
	}
	f.chrome.Title, f.chrome.State = orchestrator.Title(t.Text), string(root.State)
	may := f.who.Has(people.DelegationsControl)
	page := views.DelegationPage{
		TaskID: t.ID, Text: t.Text, TaskState: string(root.State), Since: root.Since, Requester: t.Requester, Via: t.Via,
		CreatedAt: t.CreatedAt, EndedAt: at(root.EndedAt), Repository: root.Repository, Usage: usageOf(root), HandOffs: t.Handoffs,
		MaxHandOff: mostHandoffs(p.Engine.Config().Settings.MaxHandoffs, root.Work.Budget), CanCancel: may && !root.State.Ended(),
		CanRetry: may && root.State.Ended() && root.State != orchestrator.Completed,
		CanPause: may && !root.State.Ended() && t.PausedAt == nil, CanResume: may && !root.State.Ended() && t.PausedAt != nil,
	}
	if root.Error != nil {
		where := root
		for _, d := range tree { // the deepest one that failed is where it began
			if d.Error != nil && d.State == orchestrator.Failed && d.Depth > where.Depth {
				where = d
			}
		}
		page.Failure = &views.Failure{What: where.Error.Message, Where: where.To, Code: where.Error.Code}
		if page.CanRetry {
			page.Failure.Next = "Retry runs it again from the start."
		}
	}
	for _, d := range tree {
		if d.State == orchestrator.Landing && d.Work.Problem != "" {
			page.Held = &views.Held{What: d.Work.Problem}
			if may {
				page.Held.RetryID = d.ID
			}
		}
	}
	if root.Result != nil {
		page.Commit, page.Share = root.Result.Commit, share(nil, root.Result.Declined)
	}
	if err := p.openRequest(f, &page, tree); err != nil {
		return page, err
	}
	page.Whose, page.Chrome = f.taskTurn(root, tree), f.chrome
	return page, nil
}

// openRequest finds the request of the tree that people should see on top: one that
// is pending, else the newest.
func (p *Pages) openRequest(f *frame, page *views.DelegationPage, tree []orchestrator.Delegation) error {
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
	row := f.approvalRow(r)
	page.Approval = &row
	if r.Landed != "" {
		page.Commit, page.Branch = r.Landed, r.Revision.Base.Branch
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

// pane is one delegation in full.
func (p *Pages) pane(d orchestrator.Delegation, story []event.Event) views.DelegationPane {
	spec, _ := p.Engine.Config().Agents.Get(d.To)
	pane := views.DelegationPane{
		ID: d.ID, Name: d.To, From: d.From, Kind: string(spec.Kind), State: string(d.State), Text: d.Text, Chain: names(d),
		Attempt: 1, Sandbox: d.Work.Sandbox, StartedAt: at(d.StartedAt), EndedAt: at(d.EndedAt), Usage: usage(d.Usage),
	}
	if d.Work.Problem == "" { // a landing that waits counts its tries there, too
		pane.Attempt += d.Losses
	}
	if pane.From == "" {
		pane.From = d.Requester
	}
	if spec.Timeout > 0 {
		pane.Limits = "stops after " + views.Duration(spec.Timeout)
	}
	if d.Error != nil {
		pane.Exit = d.Error.Message
	}
	if d.Result != nil {
		pane.Result = d.Result.Text
		for _, a := range d.Result.Artifacts {
			pane.Artifacts = append(pane.Artifacts, views.Artifact{Name: a.Name, Size: int64(len(a.Text))})
		}
	}
	for _, e := range story {
		facts := factsOf(e)
		switch {
		case e.Type == event.Delegated && facts.Child == d.ID:
			for _, g := range facts.Guards {
				pane.Guards = append(pane.Guards, views.GuardVerdict{Guard: g, Allowed: true})
			}
		case e.DelegationID != d.ID:
		case e.Type == event.Progress:
			for line := range strings.Lines(facts.Text) {
				pane.LogTail = append(pane.LogTail, strings.TrimRight(line, "\r\n"))
			}
		case e.Type == event.PatchRejected:
			pane.Rejected = append(pane.Rejected, rejected(facts)...)
		}
	}
	pane.LogLines = len(pane.LogTail)
	pane.LogTail = pane.LogTail[max(0, len(pane.LogTail)-40):]
	return pane
}

func rejected(facts eventFacts) []views.RejectedFile {
	var out []views.RejectedFile
	for _, path := range facts.Files {
		out = append(out, views.RejectedFile{Path: path, Code: facts.Code, Text: facts.Message})
	}
	if len(out) == 0 {
		out = append(out, views.RejectedFile{Path: facts.Path, Code: facts.Code, Text: facts.Message})
	}
	return out
}

// eventRows fills the events tab: the newest first, ?before= goes back.
func (p *Pages) eventRows(c echo.Context, f *frame, page *views.DelegationPage, t orchestrator.Task, tree []orchestrator.Delegation) error {
	end := t.LastN
	if s := c.QueryParam("before"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 1 {
			return Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the newest event.")
		}
		end = min(end, n-1)
	}
	start := max(0, end-eventsShown)
	found, err := p.Reader.Events(f.ctx, t.ID, start, int(max(1, end-start)))
	if err != nil {
		return err
	}
	who := map[string]string{}
	for _, d := range tree {
		who[d.ID] = d.To
	}
	for i := len(found) - 1; i >= 0; i-- {
		e := found[i]
		if e.N > end {
			continue
		}
		raw, err := json.MarshalIndent(e, "", "  ")
		if err != nil {
			return err
		}
		page.Events = append(page.Events, views.EventRow{N: e.N, Type: string(e.Type), Actor: e.Actor, Who: doer(e, who[e.DelegationID]), At: e.At, Text: eventLine(e), JSON: string(raw)})
	}
	if start > 0 {
		page.OlderURL = withParam(f.chrome.Path, "before", strconv.FormatInt(start+1, 10))
	}
	return nil
}
