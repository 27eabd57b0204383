package review

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/handlers/change"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// Viewed answers POST /approvals/{id}/viewed: the mark on one file of a revision is set
// or removed. A script that asks for JSON gets no body; a form leads back to the file.
func (p *Pages) Viewed(c echo.Context) error {
	id, form, who, err := p.posted(c)
	if err != nil {
		return err
	}
	file := handlers.Count(form.Get("file"))
	if err := p.Gateway.MarkViewed(c.Request().Context(), who.Principal, id, handlers.Count(form.Get("revision")), file, form.Get("viewed") != ""); err != nil {
		return err
	}
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), echo.MIMEApplicationJSON) {
		return c.NoContent(http.StatusNoContent)
	}
	return c.Redirect(http.StatusSeeOther, withQuery(views.ApprovalHref(id), placeOf(form.Get("back")))+"#F"+strconv.Itoa(file))
}

// Opened answers POST /approvals/{id}/opened: files that were before the person to their
// end. Only the page's script sends it; sent again, it changes nothing.
func (p *Pages) Opened(c echo.Context) error {
	id, form, who, err := p.posted(c)
	if err != nil {
		return err
	}
	files := each.Of(form["file"], handlers.Count)
	if err := p.Gateway.MarkOpened(c.Request().Context(), who.Principal, id, handlers.Count(form.Get("revision")),
		files); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// reading puts onto the page how far the reader has come with the revision. Only a page
// that a person opens counts as opened: neither its live parts nor what a browser fetches
// in advance does.
func (p *Pages) reading(c echo.Context, f *handlers.Frame, page *view.ReviewPage, q url.Values, r approval.Request, v approval.Revision) error {
	read := p.Gateway.Open
	h := c.Request().Header
	if c.Request().Method != http.MethodGet || q.Get("part") != "" || h.Get("Sec-Purpose") != "" || h.Get("Purpose") != "" {
		read = p.Gateway.Reading
	}
	if named := openedBy(c, q, v); len(named) > 0 && f.Who.User.ID != "" {
		if err := p.Gateway.MarkOpened(f.Ctx, f.Who.Principal, page.ID, page.Revision, named); err != nil {
			p.Log.Warn("which file a person opened could not be stored", "request", page.ID, "err", err)
		}
	}
	got, err := read(f.Ctx, f.Who.Principal, page.ID, page.Revision)
	switch {
	case err != nil && f.Ctx.Err() != nil:
		return err
	case err != nil: // the change is on the page all the same
		p.Log.Warn("how far a person has read could not be looked up", "request", page.ID, "err", err)
	}
	page.Viewed, page.CanMark = got.Viewed, f.Who.User.ID != ""
	page.Unviewed = v.N == r.Revision.N && approval.Unviewed(r, got)
	return nil
}

// openedBy are the files that the address asks to open, by their numbers: the one that it
// names, or of which it unfolds lines. Another site cannot open them in a person's name.
func openedBy(c echo.Context, q url.Values, v approval.Revision) []int {
	h := c.Request().Header
	site := h.Get("Sec-Fetch-Site")
	if c.Request().Method != http.MethodGet || q.Get("since") != "" || h.Get("Sec-Purpose") != "" || h.Get("Purpose") != "" || site == "cross-site" {
		return nil
	}
	var files []int
	if only := q.Get("file"); only != "" {
		files = append(files, slices.IndexFunc(v.Files, func(f patch.File) bool { return f.Path == only })+1)
	}
	files = append(files, partOf(q))
	files = slices.AppendSeq(files, maps.Keys(change.OpensOf(q)))
	return slices.DeleteFunc(files, func(n int) bool { return n < 1 || n > len(v.Files) })
}

// viewedOn marks the files of the page that the reader has marked.
func viewedOn(page *view.ReviewPage) {
	if page.Against > 0 { // the numbers are those of other files
		page.CanMark = false
		return
	}
	for i, f := range page.Files {
		page.Files[i].Viewed = slices.Contains(page.Viewed, f.N)
	}
}
