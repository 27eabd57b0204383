package review

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	"gatehouse/views/diff"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// Draft answers POST /approvals/{id}/drafts: a line comment is kept until a verdict sends
// it, or deleted. The form leads back to its line.
func (p *Pages) Draft(c echo.Context) error {
	id, form, who, err := p.posted(c)
	if err != nil {
		return err
	}
	revision, line := handlers.Count(form.Get("revision")), handlers.Count(form.Get("line"))
	d := approval.Draft{Path: form.Get("path"), Side: form.Get("side"), Line: line, Text: form.Get("text")}
	if first := handlers.Count(form.Get("from")); first < line {
		d.First = first
	}
	switch form.Get("do") {
	case "delete":
		d.Text = ""
	case "save":
		if d.Text == "" {
			return p.review(c, refused{status: http.StatusBadRequest, message: "The comment is empty. Write it, or cancel.", at: form.Get("at"), from: d.First, back: form.Get("back")})
		}
	default:
		return handlers.Refuse(orchestrator.CodeBadRequest, "A comment can be saved or deleted.")
	}
	if err := p.Gateway.SaveDraft(c.Request().Context(), who.Principal, id, revision, d); err != nil {
		return p.refuse(c, err, refused{at: form.Get("at"), remark: d.Text, from: d.First, back: form.Get("back")})
	}
	q, _ := url.ParseQuery(placeOf(form.Get("back"))) // placeOf made it
	q.Del("comment")
	q.Del("from")
	at := "#files"
	if a := form.Get("at"); a != "" {
		at = "#" + url.PathEscape(a)
	}
	return c.Redirect(http.StatusSeeOther, withQuery(views.ApprovalHref(id), q.Encode())+at)
}

// remarks puts comments under their lines: those that were sent, and the reader's own
// drafts.
func (p *Pages) remarks(f *handlers.Frame, page *view.ReviewPage, r approval.Request, shown approval.Revision) error {
	if err := p.threads(f, page, r, shown); err != nil {
		return err
	}
	goesOn := []approval.State{approval.Pending, approval.Superseded, approval.ChangesRequested, approval.Stale}
	if f.Who.User.ID == "" || !slices.Contains(goesOn, r.State) {
		return nil
	}
	drafts, err := p.Gateway.Drafts(f.Ctx, f.Who.User.ID, r.ID)
	switch {
	case err != nil && f.Ctx.Err() != nil:
		return err
	case err != nil: // the change is on the page all the same
		p.Log.Warn("the drafts of a person could not be placed", "request", r.ID, "err", err)
		page.Refused = "Your comments that are not sent could not be read, so they are not shown. They are kept. Load the page again."
		return nil
	}
	page.Drafts = len(drafts)
	for _, d := range drafts {
		if page.Revision != r.Revision.N { // an older page shows what was written on it
			d.Now, d.Moved, d.Gone = d.Line, false, d.Revision != page.Revision
			if d.Gone {
				continue
			}
		}
		x := diff.Remark{Path: d.Path, Side: d.Side, Line: d.Now, First: view.FirstOf(d.Now, d.Code), Code: d.Code, Text: d.Text, Draft: true, Revision: d.Revision, Was: d.Line, Moved: d.Moved}
		if d.Gone || page.Revision == r.Revision.N && !slices.ContainsFunc(r.Revision.Files, fileNamed(d.Path)) {
			page.Gone = append(page.Gone, x)
			continue
		}
		place(page, x)
	}
	return nil
}

// place puts a remark under its file and returns where it stands, "" for nowhere. Where the
// page has not the file's lines, that is the page that has them.
func place(page *view.ReviewPage, x diff.Remark) string {
	i := slices.IndexFunc(page.Files, func(f diff.DiffFile) bool { return f.Path == x.Path })
	if i < 0 {
		return ""
	}
	f := &page.Files[i]
	x.Hidden = page.Against > 0 && x.Side == approval.LeftSide
	f.Remarks = append(f.Remarks, x)
	if f.Elsewhere != "" && f.Edit == nil {
		return f.Elsewhere
	}
	if x.Line == 0 || x.Hidden || x.Outdated {
		return fmt.Sprintf("#F%d", f.N)
	}
	return fmt.Sprintf("#F%d%s%d", f.N, x.Side, x.Line)
}

// pickedOf reads the ticked files of the form, by their numbers on the page.
func pickedOf(form url.Values) []int {
	picked := []int{}
	for _, s := range form["pick"] {
		if n, err := strconv.Atoi(s); err == nil && n > 0 {
			picked = append(picked, n)
		}
	}
	return picked
}

// pathsOf are the paths of files by their numbers: a form would not bring back a name
// that is no text.
func pathsOf(v approval.Revision, picked []int) []string {
	paths := []string{}
	for _, n := range picked {
		if n <= len(v.Files) {
			paths = append(paths, v.Files[n-1].Path)
		}
	}
	return paths
}

// threads puts the comments that were sent under their lines: on the current revision
// those of all revisions, on an older one its own.
func (p *Pages) threads(f *handlers.Frame, page *view.ReviewPage, r approval.Request, shown approval.Revision) error {
	all, err := p.Gateway.Threads(f.Ctx, r)
	if err != nil {
		return err
	}
	current := page.Revision == r.Revision.N
	if current && len(page.Files) > 0 { // the live head needs no lines
		switch err := p.Gateway.PlaceThreads(f.Ctx, r, all); {
		case err != nil && f.Ctx.Err() != nil:
			return err
		case err != nil: // the change is on the page all the same
			p.Log.Warn("comments of earlier revisions could not be placed", "request", r.ID, "err", err)
			page.Unplaced = true
		}
	}
	hrefs, offered := map[string]string{}, false
	for _, t := range all {
		if own := t.Revision == page.Revision; own || current && !page.Unplaced {
			x := threadOf(t, own)
			x.CanAnswer = f.Voters.MayAnswer(f.Who.Principal, r, t) == nil
			hrefs[t.ID] = placeThread(page, x, shown)
			offered = offered || x.CanAnswer && t.ID == page.ReplyTo && strings.HasPrefix(hrefs[t.ID], "#")
		}
		if !t.Resolved() {
			page.OpenComments++
			if page.OpenHref == "" { // an older revision's page has not all of them
				page.OpenHref = hrefs[t.ID]
			}
		}
	}
	if page.ReplyTo != "" && !offered { // nothing on the page takes the reply any more
		page.ReplyTo, page.Unsent = "", page.ReplyText
	}
	page.Spots = hrefs
	return nil
}

// threadOf is a thread as it stands on the page; own: it was written on the shown revision.
func threadOf(t approval.Thread, own bool) diff.Remark {
	d, c := t.Decision, t.Comment
	x := diff.Remark{Thread: t.ID, Resolved: t.Resolved(), Path: c.Path, Side: c.Side, Line: t.Now, First: view.FirstOf(t.Now, c.Code), Code: c.Code, Text: c.Text,
		Revision: t.Revision, Was: c.Line, Moved: t.Moved, Earlier: !own, Outdated: t.Gone, User: d.By().String(), At: d.At, Answers: t.Answers}
	return x
}

// Answer answers POST /approvals/{id}/threads: a reply to a line comment that was sent, or
// that it is resolved or open again. The form leads back to the comment.
func (p *Pages) Answer(c echo.Context) error {
	id, form, who, err := p.posted(c)
	if err != nil {
		return err
	}
	s := approval.Said{RequestID: id, Thread: form.Get("thread"), Principal: who.Principal, Channel: handlers.Channel(c), Act: approval.Act(form.Get("do")), Text: form.Get("text"), Seen: handlers.Count(form.Get("seen"))}
	if err := p.Gateway.Answer(c.Request().Context(), s); err != nil {
		return p.refuse(c, err, refused{thread: s.Thread, remark: s.Text, back: form.Get("back")})
	}
	return c.Redirect(http.StatusSeeOther, withQuery(views.ApprovalHref(id), placeOf(form.Get("back")))+"#"+url.PathEscape(views.ThreadAnchor(s.Thread)))
}

// placeThread puts a thread under its file and returns where it stands; one on a file that
// the shown revision does not change stands above all files.
func placeThread(page *view.ReviewPage, x diff.Remark, shown approval.Revision) string {
	n := slices.IndexFunc(shown.Files, fileNamed(x.Path)) + 1
	if len(page.Files) == 0 && n > 0 { // the live head
		return fmt.Sprintf("#F%d", n)
	}
	if at := place(page, x); at != "" {
		return at
	}
	page.Elsewhere = append(page.Elsewhere, x)
	return "#threads-elsewhere"
}

func fileNamed(path string) func(patch.File) bool {
	return func(f patch.File) bool { return f.Path == path }
}
