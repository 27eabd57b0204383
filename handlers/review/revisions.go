package review

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/views"
	view "gatehouse/views/review"
)

// compared turns the shown revision into its difference from an earlier one where
// ?since= names one. What is decided stays the whole revision.
func (p *Pages) compared(ctx context.Context, q url.Values, page *view.ReviewPage, r approval.Request, shown approval.Revision, all []approval.Revision) (approval.Revision, error) {
	s := q.Get("since")
	if s == "" {
		return shown, nil
	}
	i := slices.IndexFunc(all, func(v approval.Revision) bool { return strconv.Itoa(v.N) == s })
	if i < 0 {
		return shown, handlers.Refuse(orchestrator.CodeNotFound, fmt.Sprintf("This request has %d revisions, and none of that number.", len(all)))
	}
	review, err := p.Reviewer.Between(ctx, all[i], shown, r.Repository)
	if err != nil {
		return shown, err
	}
	page.Against = all[i].N
	shown.Base.Tree = all[i].Tree
	shown.Files, shown.Added, shown.Removed = review.Files, review.Added, review.Removed
	return shown, nil
}

// baseMoved says what a branch that moved means for a request that still waits.
func (p *Pages) baseMoved(f *handlers.Frame, page *view.ReviewPage, r approval.Request, v approval.Revision) (string, error) {
	if r.State != approval.Pending || v.N != r.Revision.N {
		return "", nil
	}
	moved, err := p.Gateway.Moved(f.Ctx, r)
	switch {
	case err != nil && f.Ctx.Err() != nil:
		return "", err
	case err != nil: // the change is on the page all the same; landing will tell
		p.Log.Warn("the branch of a request could not be looked at", "request", r.ID, "err", err)
		moved.Overtaken = r.Overtaken()
	}
	if moved.Overtaken != "" {
		page.Overtaken = views.BranchName(v.Base.Branch)
		page.NoYes = cmp.Or(page.NoYes, moved.Overtaken)
	}
	if moved.Head == "" || err != nil {
		return "", nil
	}
	return movedWords(views.BranchName(v.Base.Branch), moved), nil
}

// missed says that the reader's yes landed nothing, in place of the word that it was counted.
func (p *Pages) missed(f *handlers.Frame, page *view.ReviewPage, r approval.Request) (err error) {
	if page.Missed, err = p.Gateway.MissedBy(f.Ctx, r, f.Who.User.ID); page.Missed == "" {
		return err
	}
	if page.Flash != nil && page.Flash.Text == handlers.Done("approve") {
		page.Flash = nil
	}
	if r.State == approval.Pending && r.Revision.Overtaken == nil {
		page.MissedHref = views.SinceHref(r.ID, r.Revision.N, r.Revision.N-1)
		page.MissedLink = fmt.Sprintf("What changed %d→%d", r.Revision.N-1, r.Revision.N)
	}
	return err
}

// movedWords: "main moved by 2 commits since, to 4be1f02. They touch no file …".
func movedWords(branch string, m handlers.Movement) string {
	s, then := branch+" moved", "after a yes this is asked again with the difference."
	if m.Overtaken != "" {
		then = "a yes to this would land nothing."
	}
	switch {
	case m.Rewritten:
		return fmt.Sprintf("%s was rewound or rewritten since, to %.7s: it no longer has the commit that this change was made on. %s%s", branch, m.Head, strings.ToUpper(then[:1]), then[1:])
	case m.More:
		s += fmt.Sprintf(" by more than %d commits", m.Commits)
	case m.Commits == 1:
		s += " by 1 commit"
	case m.Commits > 1:
		s += fmt.Sprintf(" by %d commits", m.Commits)
	}
	s += fmt.Sprintf(" since, to %.7s. ", m.Head)
	if m.Fits.OK {
		return s + "No file of this change was touched there; this change still applies unchanged."
	}
	return s + fmt.Sprintf("There %s changed too; %s", handlers.SomeOf(m.Fits.Moved), then)
}

// standing is the last verdict of each person on the current revision.
func standing(r approval.Request) map[string]approval.Decision {
	last := map[string]approval.Decision{}
	for _, d := range r.Decisions {
		if d.Revision == r.Revision.N {
			maps.DeleteFunc(last, func(_ string, o approval.Decision) bool { return d.Ends(o) })
			last[d.UserID+" "+d.User] = d
		}
	}
	return last
}

func yesOf(r approval.Request) []string {
	var names []string
	for _, d := range standing(r) {
		if d.Verdict == approval.Approve {
			names = append(names, d.By().String())
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

// begun reports whether a call that was approved is being made, or its agent has gone on
// without it: that yes cannot be taken back any more.
func begun(r approval.Request, d orchestrator.Delegation) bool {
	if !r.IsAction() || r.State != approval.Approved {
		return false
	}
	at := slices.IndexFunc(d.Work.Asks, func(o orchestrator.Asked) bool { return o.Request == r.ID })
	return at < 0 || d.Work.Asks[at].Begun || d.State.Ended()
}

// outcome is how a request ended, or what holds it after its yes.
func outcome(r approval.Request) *view.Outcome {
	if r.State == approval.Pending {
		return nil
	}
	o := &view.Outcome{State: string(r.State), At: handlers.At(r.DecidedAt), Commit: r.Landed, Missed: r.Missed() != ""}
	if n := len(r.Decisions); n > 0 {
		last := r.Decisions[n-1]
		o.By, o.For, o.Channel, o.Comment, o.At, o.Anew = last.User, last.For, last.Channel, last.Comment, last.At, last.Anew()
	}
	return o
}

// madeWords says how people made a revision that is not the agent's own.
func madeWords(r approval.Request, v approval.Revision) string {
	switch v.Made {
	case approval.MadeByEdit:
		who := "a person"
		if v.Editor != nil {
			who = v.Editor.User
		}
		return fmt.Sprintf("Edited by %s, from revision %d. %s cannot approve it.", who, v.MadeFrom, who)
	case approval.MadeByFiles:
		who := "Somebody"
		for _, d := range r.Decisions {
			if d.Revision == v.MadeFrom && len(d.Files) > 0 {
				who = d.By().String()
			}
		}
		what := "files"
		if len(v.Declined) == 1 {
			what = "file"
		}
		return fmt.Sprintf("%s left out %d %s of revision %d: %s.", who, len(v.Declined), what, v.MadeFrom, handlers.SomeOf(v.Declined))
	}
	return ""
}

// shadowWords says what the rules on trial would have asked for.
func shadowWords(v approval.Revision) string {
	if v.Shadow == nil {
		return ""
	}
	return fmt.Sprintf("On trial, the rule %q would say: %s. It decides nothing.", v.Shadow.Name, v.Shadow.Outcome())
}
