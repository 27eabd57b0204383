package handlers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// compared turns the shown revision into its difference from an earlier one where
// ?since= names one. What is decided stays the whole revision.
func (p *Pages) compared(c echo.Context, page *views.ReviewPage, r approval.Request, shown approval.Revision, all []approval.Revision) (approval.Revision, error) {
	s := c.QueryParam("since")
	if s == "" {
		return shown, nil
	}
	i := slices.IndexFunc(all, func(v approval.Revision) bool { return strconv.Itoa(v.N) == s })
	if i < 0 {
		return shown, Refuse(orchestrator.CodeNotFound, fmt.Sprintf("This request has %d revisions, and none of that number.", len(all)))
	}
	review, err := p.Reviewer.Between(c.Request().Context(), all[i], shown, r.Repository)
	if err != nil {
		return shown, err
	}
	page.Against = all[i].N
	page.WholeFiles, page.WholeAdded, page.WholeRemoved = len(shown.Files), shown.Added, shown.Removed
	shown.Base.Tree = all[i].Tree
	shown.Files, shown.Added, shown.Removed = review.Files, review.Added, review.Removed
	return shown, nil
}

// baseMoved says what a branch that moved means for a request that still waits.
func (p *Pages) baseMoved(f *frame, r approval.Request, v approval.Revision) (string, error) {
	if r.State != approval.Pending || v.N != r.Revision.N {
		return "", nil
	}
	head, fits, err := p.Reviewer.Moved(f.ctx, v, r.Repository)
	switch {
	case err != nil && f.ctx.Err() != nil:
		return "", err
	case err != nil: // the change is on the page all the same; landing will tell
		p.Log.Warn("the branch of a request could not be looked at", "request", r.ID, "err", err)
		return "", nil
	case head == "":
		return "", nil
	case fits.OK:
		return fmt.Sprintf("%s moved to %.7s since; this change still applies unchanged.", v.Base.Branch, head), nil
	}
	return fmt.Sprintf("%s moved to %.7s since and changed %s too; after a yes it is asked again with the difference.",
		v.Base.Branch, head, someOf(fits.Moved)), nil
}

// someOf names a few paths and counts the rest.
func someOf(paths []string) string {
	const most = 3
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more files", strings.Join(paths[:most], ", "), len(paths)-most)
}

// standing is the last verdict of each person on the current revision.
func standing(r approval.Request) map[string]approval.Decision {
	last := map[string]approval.Decision{}
	for _, d := range r.Decisions {
		if d.Revision == r.Revision.N {
			last[d.UserID+" "+d.User] = d
		}
	}
	return last
}

func yesOf(r approval.Request) []string {
	var names []string
	for _, d := range standing(r) {
		if d.Verdict == approval.Approve {
			names = append(names, d.User)
		}
	}
	slices.Sort(names)
	return names
}

// mayWithdraw reports whether this person's yes still stands and has not landed.
func mayWithdraw(r approval.Request, userID string) bool {
	if r.State != approval.Pending && r.State != approval.Approved {
		return false
	}
	for _, d := range standing(r) {
		if d.UserID == userID && d.Verdict == approval.Approve {
			return true
		}
	}
	return false
}

// outcome is how a request ended, or what holds it after its yes.
func outcome(r approval.Request) *views.Outcome {
	if r.State == approval.Pending {
		return nil
	}
	o := &views.Outcome{State: string(r.State), At: at(r.DecidedAt), Commit: r.Landed}
	if n := len(r.Decisions); n > 0 {
		last := r.Decisions[n-1]
		o.By, o.Channel, o.Comment, o.At = last.User, last.Channel, last.Comment, last.At
	}
	return o
}
