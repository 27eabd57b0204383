package review

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// refused is what was not taken, shown on the page with what was typed.
type refused struct {
	status  int
	message string
	comment string
	anew    bool           // start over was ticked
	ticked  []string       // codes of what was looked at
	picked  []int          // numbers of the ticked files; nil: there was no choice
	at      string         // the line that was commented on: F3R42
	thread  string         // the comment that was answered
	remark  string         // with this
	from    int            // on the lines from this one on; 0: on that line alone
	edits   map[int]string // texts by number of the file
	input   string         // of a call, as it was edited
	back    string         // query of the page that the form was on
}

// Review answers GET /approvals/{id}; ?rev= shows an older revision, ?since= only what
// changed from an earlier one, ?view=split both sides, ?ctx= more context, ?file= one
// file, ?page= and ?find= a part of a large change, ?more=&to= another part of a long line,
// ?whole=3:1-2000 lines of a file that moved, ?open= shows folded lines, ?at= leads to the
// page that has a line. ?comment= opens the form of a line, ?pick= the choice of files, ?edit=
// files in an editor. ?part=head leaves the diff out, for the live parts; ?part=F3 is one file.
func (p *Pages) Review(c echo.Context) error { return p.review(c, refused{status: http.StatusOK}) }

// review draws the page; after a form that was refused it is the page of the form.
func (p *Pages) review(c echo.Context, no refused) error {
	f, err := p.Begin(c, views.SectionApprovals, "")
	if err != nil {
		return err
	}
	r, err := p.readable(c, f.Who)
	if err != nil {
		return err
	}
	q := c.QueryParams()
	if c.Request().Method == http.MethodPost {
		q, _ = url.ParseQuery(placeOf(no.back)) // placeOf made it
	}
	f.Chrome.Path = withQuery(views.ApprovalHref(r.ID), placeOf(q.Encode()))
	shown, all, err := p.revision(f.Ctx, q, r)
	if err != nil {
		return err
	}
	d, err := p.Reader.Delegation(f.Ctx, r.DelegationID)
	if err != nil {
		return err
	}
	page := p.reviewHead(f, r, shown, d)
	if err := p.reading(c, f, &page, q, r, shown); err != nil {
		return err
	}
	if page.Read, err = p.howRead(f, r, shown); err != nil {
		return err
	}
	switch {
	case r.IsHandover():
		return p.reviewHandover(c, f, q, page, r, shown, no)
	case !r.IsPatch():
		return p.reviewAsk(c, f, q, page, r, shown, all, no)
	}
	return p.reviewChange(c, f, q, page, r, shown, all, no)
}

// reviewChange draws the page of a change of files.
func (p *Pages) reviewChange(c echo.Context, f *handlers.Frame, q url.Values, page view.ReviewPage, r approval.Request, shown approval.Revision, all []approval.Revision, no refused) (err error) {
	for _, v := range all {
		page.Revisions = append(page.Revisions, v.N)
	}
	page.Split = q.Get("view") == "split"
	if page.BaseMoved, err = p.baseMoved(f, &page, r, shown); err != nil {
		return err
	}
	if err := p.missed(f, &page, r); err != nil {
		return err
	}
	if shown, err = p.compared(f.Ctx, q, &page, r, shown, all); err != nil {
		return err
	}
	if q.Get("at") != "" {
		to, err := p.seek(f.Ctx, q, f.Chrome.Path, r, shown)
		if err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, to)
	}
	doing(q, &page, no)
	if err := p.change(f, q, &page, r, shown, no); err != nil {
		return err
	}
	page.Warnings = shown.Warnings
	return wholeOrPart(c, q, page, no)
}

// change draws the files with the comments on them, and those that are open in an editor.
func (p *Pages) change(f *handlers.Frame, q url.Values, page *view.ReviewPage, r approval.Request, shown approval.Revision, no refused) error {
	if q.Get("part") != "head" || page.Doing == view.Editing {
		if err := p.diff(f.Ctx, q, page, r, shown); err != nil {
			return err
		}
		p.tabs(f.Ctx, page, r, shown)
	}
	viewedOn(page)
	if err := p.remarks(f, page, r, shown); err != nil || page.Doing != view.Editing {
		return err
	}
	return p.openFiles(f.Ctx, q.Get("edit"), no.edits, page, r, shown)
}

// doing opens the page for what the address asks, as far as this person may.
func doing(q url.Values, page *view.ReviewPage, no refused) {
	page.Refused, page.Comment, page.StartOver, page.Picked, page.Ticked = no.message, no.comment, no.anew, no.picked, no.ticked
	if no.thread != "" {
		page.ReplyTo, page.ReplyText, no.remark = no.thread, no.remark, ""
	}
	page.Back = placeOf(q.Encode())
	open := page.State == string(approval.Pending) && page.Newest == page.Revision
	page.CanComment = page.CanDecide && open
	page.CanEdit = page.CanDecide && open && page.Against == 0
	if !open || !page.CanDecide { // the forms that these words came from are gone
		page.Unsent = no.remark + no.comment
	}
	switch {
	case q.Get("edit") != "" && page.CanEdit:
		page.Doing = view.Editing
	case q.Get("pick") != "" && page.CanDecide && page.NoYes == "" && page.Against == 0:
		page.Doing = view.Picking
	}
	if page.CanComment && page.Doing != view.Editing {
		page.CommentAt, page.CommentText, page.CommentFrom = q.Get("comment"), no.remark, handlers.Count(q.Get("from"))
		if no.at != "" {
			page.CommentAt, page.CommentFrom = no.at, no.from
		}
	}
}

// placeOf keeps of a page's query what says which page it is, so that a form leads back
// to it and to nowhere else.
func placeOf(query string) string {
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	for key := range q {
		if !slices.Contains([]string{"rev", "since", "view", "ctx", "file", "page", "find", "more", "to", "open", "whole", "pick", "edit", "comment", "from"}, key) {
			q.Del(key)
		}
	}
	return q.Encode()
}

func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// howRead says who has read the revision that is shown, and where.
func (p *Pages) howRead(f *handlers.Frame, r approval.Request, shown approval.Revision) (string, error) {
	r.Revision = shown
	r, err := p.Gateway.ReadersOf(f.Ctx, f.Who.Principal, r)
	return r.HowRead(), err
}

// posted is a form about a request, which id names, and who sent it.
func (p *Pages) posted(c echo.Context) (id string, form url.Values, who handlers.Caller, err error) {
	if id, err = p.Ids.Request(c.Request().Context(), c.Param("id")); err != nil {
		return "", nil, who, err
	}
	if form, err = c.FormParams(); err != nil {
		err = handlers.Refuse(orchestrator.CodeBadRequest, "The form could not be read. Load the page again.")
	}
	who, _ = handlers.Who(c)
	return id, form, who, err
}

// refuse shows the page again with what was typed and why it was not taken; what is no refusal is an error.
func (p *Pages) refuse(c echo.Context, err error, no refused) error {
	f := handlers.FaultOf(err)
	if f.ID != "" || f.Status == http.StatusNotFound {
		return err
	}
	no.status, no.message = f.Status, f.Message
	return p.review(c, no)
}

// readable is the request that the address names, for who may read requests. Who sent a task
// also reads what its agents ask.
func (p *Pages) readable(c echo.Context, who handlers.Caller) (approval.Request, error) {
	r, err := p.request(c)
	if err != nil || handlers.OwnQuestion(who, r) {
		return r, err
	}
	return r, who.Require([]handlers.Right{handlers.ApprovalsRead})
}

// request reads the request that the address names.
func (p *Pages) request(c echo.Context) (approval.Request, error) {
	id, err := p.Ids.Request(c.Request().Context(), c.Param("id"))
	if err != nil {
		return approval.Request{}, err
	}
	r, err := p.Requests.Request(c.Request().Context(), id)
	return r, handlers.Known(err, "request", c.Param("id"))
}

// revision is the one that ?rev= names, else the current one, and all there are.
func (p *Pages) revision(ctx context.Context, q url.Values, r approval.Request) (approval.Revision, []approval.Revision, error) {
	all, err := p.Requests.Revisions(ctx, r.ID)
	if err != nil || q.Get("rev") == "" {
		return r.Revision, all, err
	}
	n, err := strconv.Atoi(q.Get("rev"))
	if err == nil && n == r.Revision.N {
		return r.Revision, all, nil
	}
	for _, v := range all {
		if err == nil && v.N == n {
			return v, all, nil
		}
	}
	return r.Revision, nil, handlers.Refuse(orchestrator.CodeNotFound, fmt.Sprintf("This request has %d revisions, and none of that number.", len(all)))
}

// reviewHead fills everything but the diff.
func (p *Pages) reviewHead(f *handlers.Frame, r approval.Request, v approval.Revision, d orchestrator.Delegation) view.ReviewPage {
	f.Chrome.Title, f.Chrome.State = orchestrator.Title(r.Title), string(r.State)
	page := view.ReviewPage{
		Chrome: f.Chrome, ID: r.ID, TaskID: r.TaskID, Title: r.Title, State: string(r.State),
		Whose: f.Turn(r), TooFew: f.Voters.TooFew(r), Since: v.At, ExpiresAt: handlers.At(r.ExpiresAt),
		Revision: v.N, Newest: r.Revision.N, NewestAt: r.Revision.At, Digest: v.Digest, Repository: r.Repository,
		Target: handlers.LandsOn(v), Branch: views.BranchName(v.Branch), Deliver: v.Deliver, Base: v.Base.Commit, BaseAt: v.Base.At, Commit: r.Landed, Requester: r.Requester, Via: r.Via,
		Chain: handlers.ChainOf(r), Agent: r.Agent, Says: v.Text, FourEyes: p.FourEyes(), Added: v.Added, Removed: v.Removed,
		Rule:       view.RuleLine{Name: r.Rule.Name, Need: r.Rule.Need, From: r.Rule.From, Yes: yesOf(r)},
		WholeFiles: len(v.Files), WholeAdded: v.Added, WholeRemoved: v.Removed, Mode: r.Mode, Made: madeWords(r, v), Shadow: shadowWords(v),
		Ticks:       approval.Ticks(r),
		LandProblem: d.Work.Problem, Outcome: outcome(r),
	}
	if r.Landed != "" && v.N == r.Revision.N {
		page.Share = handlers.Share(v.Files, v.Declined)
	}
	if page.Since.IsZero() {
		page.Since = r.CreatedAt
	}
	if r.State == approval.Pending {
		none, yes := f.Voters.May(f.Who.Principal, r, approval.RequestChanges), f.Voters.May(f.Who.Principal, r, approval.Approve)
		if r.IsQuestion() {
			none, yes = f.Voters.May(f.Who.Principal, r, approval.Respond), nil
		}
		switch {
		case none != nil:
			page.MayNot = none.Message
		case yes != nil:
			page.NoYes = yes.Message
		}
		page.CanDecide = none == nil && v.N == r.Revision.N
	}
	page.CanWithdraw = mayWithdraw(r, f.Who.User.ID) && !begun(r, d)
	page.CanRevert = r.State == approval.Landed && !r.Revision.Delivery().Pushes() && r.RevertedBy == "" && (f.Who.Has(people.TasksWrite) || f.Who.Has(people.ApprovalsDecide))
	page.CanLand = d.Work.Problem != "" && d.State == orchestrator.Landing && (f.Who.Has(people.DelegationsControl) || f.Who.Has(people.ApprovalsDecide))
	page.Decisions, page.Notes, page.Checks = r.Decisions, v.Notes, v.Checks
	return page
}

// reviewHandover is the rest of the review page where r asks about a hand-over.
func (p *Pages) reviewHandover(c echo.Context, f *handlers.Frame, q url.Values, page view.ReviewPage, r approval.Request, shown approval.Revision, no refused) error {
	page.Ask = askOf(r.DelegationID, *r.Handover)
	page.Split = q.Get("view") == "split"
	if r.Travels() && q.Get("part") != "head" {
		if err := p.diff(f.Ctx, q, &page, r, shown); err != nil {
			return err
		}
		viewedOn(&page)
	}
	page.Warnings = shown.Warnings
	page.Refused, page.Comment, page.Ticked, page.Back = no.message, no.comment, no.ticked, placeOf(q.Encode())
	if page.State != string(approval.Pending) || !page.CanDecide {
		page.Unsent = no.comment
	}
	return wholeOrPart(c, q, page, no)
}

// wholeOrPart answers with the review page, or with the one file of it that q asks for.
func wholeOrPart(c echo.Context, q url.Values, page view.ReviewPage, no refused) error {
	if n := partOf(q); n > 0 && n <= len(page.Files) {
		return handlers.Render(c, no.status, view.ReviewFile(page, n))
	}
	return handlers.Render(c, no.status, view.Review(page))
}

// askOf is the question about a hand-over as a page shows it; root is a delegation of its task.
func askOf(root string, q orchestrator.HandoverQuestion) *view.HandoverAsk {
	a := &view.HandoverAsk{Files: views.AttachedTo(root, q.Attachments), From: q.From, To: q.To, Text: q.Text, Command: q.Command(), Place: q.Place(), Travels: q.Tree != "", Stands: q.Stands()}
	for _, key := range slices.Sorted(maps.Keys(q.Context)) {
		a.Context = append(a.Context, views.ContextLine{Key: key, Value: q.Context[key]})
	}
	return a
}
