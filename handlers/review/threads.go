package review

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	"gatehouse/views/diff"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

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
