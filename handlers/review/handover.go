package review

import (
	"maps"
	"net/url"
	"slices"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/views"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// reviewHandover is the rest of the review page where r asks about a hand-over.
func (p *Pages) reviewHandover(c echo.Context, f *handlers.Frame, q url.Values, page view.ReviewPage, r approval.Request, shown approval.Revision, no refused) error {
	page.Ask = askOf(*r.Question)
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

// askOf is the question about a hand-over as a page shows it.
func askOf(q orchestrator.Question) *view.HandoverAsk {
	a := &view.HandoverAsk{From: q.From, To: q.To, Text: q.Text, Command: q.Command(), Place: q.Place(), Travels: q.Tree != "", Stands: q.Stands()}
	for _, key := range slices.Sorted(maps.Keys(q.Context)) {
		a.Context = append(a.Context, views.ContextLine{Key: key, Value: q.Context[key]})
	}
	return a
}
