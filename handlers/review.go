package handlers

import (
	"fmt"
	"net/http"
	"strconv"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// refused is a verdict that was not taken, shown beside the form with what was typed.
type refused struct {
	status  int
	message string
	comment string
}

// Review answers GET /approvals/{id}; ?rev= shows an older revision, ?view=split both
// sides, ?ctx= more context, ?file= one file, ?page= a part of a large change.
func (p *Pages) Review(c echo.Context) error { return p.review(c, refused{status: http.StatusOK}) }

func (p *Pages) review(c echo.Context, no refused) error {
	f, err := p.begin(c, views.SectionApprovals, "")
	if err != nil {
		return err
	}
	r, err := p.request(c)
	if err != nil {
		return err
	}
	shown, all, err := p.revision(c, r)
	if err != nil {
		return err
	}
	d, err := p.Reader.Delegation(f.ctx, r.DelegationID)
	if err != nil {
		return err
	}
	page := p.reviewHead(f, r, shown, d)
	page.Refused, page.Comment = no.message, no.comment
	for _, v := range all {
		page.Revisions = append(page.Revisions, v.N)
	}
	page.Split = c.QueryParam("view") == "split"
	if page.BaseMoved, err = p.baseMoved(f, r, shown); err != nil {
		return err
	}
	if shown, err = p.compared(c, &page, r, shown, all); err != nil {
		return err
	}
	if err := p.diff(c, &page, r, shown); err != nil {
		return err
	}
	page.Warnings = warningsOf(shown, page.Files)
	return render(c, no.status, views.Review(page))
}

// request reads the request that the address names.
func (p *Pages) request(c echo.Context) (approval.Request, error) {
	id, err := p.Ids.Request(c.Request().Context(), c.Param("id"))
	if err != nil {
		return approval.Request{}, err
	}
	r, err := p.Requests.Request(c.Request().Context(), id)
	return r, known(err, "request", c.Param("id"))
}

// revision is the one that ?rev= names, else the current one, and all there are.
func (p *Pages) revision(c echo.Context, r approval.Request) (approval.Revision, []approval.Revision, error) {
	all, err := p.Requests.Revisions(c.Request().Context(), r.ID)
	if err != nil || c.QueryParam("rev") == "" {
		return r.Revision, all, err
	}
	n, err := strconv.Atoi(c.QueryParam("rev"))
	if err == nil && n == r.Revision.N {
		return r.Revision, all, nil
	}
	for _, v := range all {
		if err == nil && v.N == n {
			return v, all, nil
		}
	}
	return r.Revision, nil, Refuse(orchestrator.CodeNotFound, fmt.Sprintf("This request has %d revisions, and none of that number.", len(all)))
}

// reviewHead fills everything but the diff.
func (p *Pages) reviewHead(f *frame, r approval.Request, v approval.Revision, d orchestrator.Delegation) views.ReviewPage {
	f.chrome.Title, f.chrome.State = orchestrator.Title(r.Title), string(r.State)
	page := views.ReviewPage{
		Chrome: f.chrome, ID: r.ID, TaskID: r.TaskID, DelegationID: r.DelegationID, Title: r.Title, State: string(r.State),
		Whose: f.voters.Turn(r, f.who.User.ID), TooFew: f.voters.TooFew(r), Since: v.At, ExpiresAt: at(r.ExpiresAt),
		Revision: v.N, Newest: r.Revision.N, NewestAt: r.Revision.At, Digest: v.Digest, Repository: r.Repository,
		Target: v.Base.Branch, Branch: v.Branch, Base: v.Base.Commit, Commit: r.Landed, Requester: r.Requester, Via: r.Via,
		Chain: chainOf(r), Agent: r.Agent, Says: v.Text, FourEyes: p.FourEyes(), Added: v.Added, Removed: v.Removed,
		Rule:      views.RuleLine{Name: r.Rule.Name, Need: r.Rule.Need, From: r.Rule.From, Yes: yesOf(r)},
		CanDecide: f.mayApprove(r) && v.N == r.Revision.N, Careful: approval.RiskOf(r).Level == approval.Careful,
		LandProblem: d.Work.Problem, Outcome: outcome(r),
	}
	if page.Since.IsZero() {
		page.Since = r.CreatedAt
	}
	if no := f.voters.May(f.who.Principal, r, approval.Approve); no != nil && r.State == approval.Pending {
		page.MayNot = no.Message
	}
	page.CanWithdraw = mayWithdraw(r, f.who.User.ID)
	page.CanRevert = r.State == approval.Landed && r.RevertedBy == "" && (f.who.Has(people.TasksWrite) || f.who.Has(people.ApprovalsDecide))
	page.CanLand = d.Work.Problem != "" && d.State == orchestrator.Landing && (f.who.Has(people.DelegationsControl) || f.who.Has(people.ApprovalsDecide))
	for _, x := range r.Decisions {
		page.Decisions = append(page.Decisions, views.DecisionRow{User: x.User, Channel: x.Channel, Verdict: string(x.Verdict), Comment: x.Comment, Digest: x.Digest, At: x.At})
	}
	for _, n := range v.Notes {
		page.Notes = append(page.Notes, views.Note{Code: n.Code, Text: n.Text})
	}
	for _, k := range v.Checks {
		page.Checks = append(page.Checks, views.CheckRow{Command: k.Command, OK: k.OK, Duration: k.Took, Output: k.Output})
	}
	return page
}

// warningsOf points each warning at its file on the page.
func warningsOf(v approval.Revision, files []views.DiffFile) []views.Warning {
	var out []views.Warning
	for _, w := range v.Warnings {
		row := views.Warning{Code: w.Code, Path: w.Path, Text: w.Text}
		for _, f := range files {
			if w.Path != "" && f.Path == w.Path {
				row.Href = fmt.Sprintf("#F%d", f.N)
			}
		}
		out = append(out, row)
	}
	return out
}
