package review

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// maxPicture is the largest picture that is shown, in bytes.
const maxPicture = 8 << 20

// pictureTypes are what a picture may be; a vector image is text, and is read as such.
func pictureTypes() []string { return []string{"image/png", "image/jpeg", "image/gif", "image/webp"} }

// pictured reports whether the name of a file promises a picture.
func pictured(f patch.File) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp"}, strings.ToLower(path.Ext(f.Path))) && f.OldSize <= maxPicture && f.NewSize <= maxPicture
}

// pictureHref is where one side of a file's picture is, "" for none.
func pictureHref(page *view.ReviewPage, n int, side, blob string) string {
	if strings.Trim(blob, "0") == "" {
		return ""
	}
	href := fmt.Sprintf("%s/picture?rev=%d&file=%d&side=%s", views.ApprovalHref(page.ID), page.Revision, n, side)
	if page.Against > 0 {
		href += "&since=" + strconv.Itoa(page.Against)
	}
	return href
}

// Picture answers GET /approvals/{id}/picture?rev=&file=&side=: a picture of the change as
// it was (L) or would be (R). It is foreign: whatever is no picture by its own first bytes
// is not sent, and what is sent can run and load nothing.
func (p *Pages) Picture(c echo.Context) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	r, err := p.request(c)
	if err != nil {
		return err
	}
	v, all, err := p.revision(ctx, q, r)
	if err != nil {
		return err
	}
	if v, err = p.compared(ctx, q, &view.ReviewPage{}, r, v, all); err != nil {
		return err
	}
	none := handlers.Refuse(orchestrator.CodeNotFound, "There is no picture at this address.")
	n := handlers.Count(q.Get("file"))
	if n < 1 || n > len(v.Files) || !pictured(v.Files[n-1]) {
		return none
	}
	blob := v.Files[n-1].NewBlob
	if q.Get("side") == "L" {
		blob = v.Files[n-1].OldBlob
	}
	if strings.Trim(blob, "0") == "" {
		return none
	}
	content, err := p.Reviewer.Content(ctx, v, r.Repository, blob, maxPicture)
	if err != nil {
		return err
	}
	kind := http.DetectContentType(content)
	if !slices.Contains(pictureTypes(), kind) {
		return none
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(echo.HeaderContentDisposition, "inline")
	return c.Blob(http.StatusOK, kind, content)
}
