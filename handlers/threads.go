package handlers

import (
	"fmt"
	"slices"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
)

// threads puts the comments that were sent under their lines: on the current revision
// those of all revisions, on an older one its own.
func (p *Pages) threads(f *frame, page *views.ReviewPage, r approval.Request, shown approval.Revision) error {
	all, current := r.Threads(), page.Revision == r.Revision.N
	if current && len(page.Files) > 0 { // the live head needs no lines
		err := p.Gateway.PlaceThreads(f.ctx, r, all)
		switch {
		case err != nil && f.ctx.Err() != nil:
			return err
		case err != nil: // the change is on the page all the same
			p.Log.Warn("comments of earlier revisions could not be placed", "request", r.ID, "err", err)
			page.Unplaced = true
		}
	}
	hrefs := map[string]string{}
	for _, t := range all {
		if own := t.Revision == page.Revision; own || current && !page.Unplaced {
			hrefs[t.ID] = placeThread(page, threadOf(t, own), shown)
		}
	}
	i := 0
	for d := range page.Decisions { // they have the same comments in the same order
		for c := range page.Decisions[d].Comments {
			page.Decisions[d].Comments[c].Href = hrefs[all[i].ID]
			i++
		}
	}
	return nil
}

// threadOf is a thread as it stands on the page; own: it was written on the shown revision.
func threadOf(t approval.Thread, own bool) views.Remark {
	d, c := t.Decision, t.Comment
	return views.Remark{Path: c.Path, Side: c.Side, Line: t.Now, First: firstOf(t.Now, c.Code), Code: c.Code, Text: c.Text,
		Revision: t.Revision, Was: c.Line, Moved: t.Moved, Earlier: !own, Outdated: t.Gone, User: inPlace(d), At: d.At}
}

// placeThread puts a thread under its file and returns where it stands; one on a file that
// the shown revision does not change stands above all files.
func placeThread(page *views.ReviewPage, x views.Remark, shown approval.Revision) string {
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

// sentOf are the line comments of a decision, for its list.
func sentOf(d approval.Decision) []views.Remark {
	var out []views.Remark
	for _, c := range d.Comments {
		side := c.Side
		if side == "" {
			side = approval.RightSide
		}
		out = append(out, views.Remark{Path: c.Path, Side: side, Line: c.Line, First: firstOf(c.Line, c.Code), Code: c.Code, Text: c.Text, Revision: d.Revision, User: inPlace(d), At: d.At})
	}
	return out
}

func fileNamed(path string) func(patch.File) bool {
	return func(f patch.File) bool { return f.Path == path }
}
