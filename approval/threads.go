package approval

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/orchestrator/agent"
)

// maxPlaced is how many files are read to find where comments of earlier revisions stand
// now; what is on further ones counts as outdated.
const maxPlaced = 100

// maxCarried is how much of the comments that are still open an agent is told again, in
// bytes: they stand in the row of its delegation.
const maxCarried = 256 << 10

// Thread is a line comment that was sent with a decision. Now, Moved and Gone say where
// it stands on the current revision once PlaceThreads has looked.
type Thread struct {
	ID       string // the decision's id, a dot, and the comment's number in it, from 1
	Revision int    // on which it was written
	Decision Decision
	Comment  agent.LineComment // its Side is never ""
	Now      int               // its line on the current revision; the old one when Gone
	Moved    bool              // the line is elsewhere in the file
	Gone     bool              // the line, or the file, is not there any more
	Answers  []Answer          // what was said and done under it, oldest first
}

// ThreadID is the id of the i-th line comment of a decision, from 0.
func ThreadID(d Decision, i int) string { return d.ID + "." + strconv.Itoa(i+1) }

// Resolved reports whether the comment is done.
func (t Thread) Resolved() bool {
	for i := len(t.Answers) - 1; i >= 0; i-- {
		if t.Answers[i].Act != Reply {
			return t.Answers[i].Act == Resolve
		}
	}
	return false
}

// Threads are the comments of all decisions on a request, oldest first, each on its own
// revision's line, with what was said under them.
func (g *Gateway) Threads(ctx context.Context, r Request) ([]Thread, error) {
	if all := r.threads(nil); len(all) == 0 {
		return nil, nil
	}
	said, err := g.store.Answers(ctx, r.ID)
	return r.threads(said), err
}

func (r Request) threads(said []Answer) []Thread {
	var all []Thread
	for _, d := range r.Decisions {
		for i, c := range d.Comments {
			if c.Side == "" {
				c.Side = RightSide
			}
			all = append(all, Thread{ID: ThreadID(d, i), Revision: d.Revision, Decision: d, Comment: c, Now: c.Line})
		}
	}
	for _, a := range said {
		if i := slices.IndexFunc(all, func(t Thread) bool { return t.ID == a.Thread }); i >= 0 {
			all[i].Answers = append(all[i].Answers, a)
		}
	}
	return all
}

// PlaceThreads finds where the comments of earlier revisions stand on the current one. It
// reads a file only where the current revision has another text of it.
func (g *Gateway) PlaceThreads(ctx context.Context, r Request, threads []Thread) error {
	if !slices.ContainsFunc(threads, func(t Thread) bool { return t.Revision != r.Revision.N }) {
		return nil
	}
	revisions, err := g.store.Revisions(ctx, r.ID)
	if err != nil {
		return err
	}
	was := map[int]Revision{}
	for _, v := range revisions {
		was[v.N] = v
	}
	files, read := g.reader(r, r.Revision), map[string]bool{}
	for i := range threads {
		t := &threads[i]
		at := t.Comment.Side + t.Comment.Path
		if t.Revision == r.Revision.N || sameText(was[t.Revision], r.Revision, t.Comment.Path, t.Comment.Side) {
			continue
		}
		if !changes(r.Revision, t.Comment.Path) || len(read) >= maxPlaced && !read[at] {
			t.Gone = true
			continue
		}
		read[at] = true
		lines, found, err := files.lines(ctx, t.Comment.Path, t.Comment.Side)
		if err != nil {
			return err
		}
		t.Now, t.Moved, t.Gone = stands(t.Comment.Code, t.Comment.Line, lines, found)
	}
	return nil
}

// changes reports whether a revision changes a file.
func changes(v Revision, path string) bool {
	for _, f := range v.Files {
		if f.Path == path {
			return true
		}
	}
	return false
}

// sameText reports whether both revisions change a file and have the same text of it on
// one side.
func sameText(a, b Revision, path, side string) bool {
	blob := func(v Revision) string {
		for _, f := range v.Files {
			switch {
			case f.Path == path && side == LeftSide:
				return f.OldBlob
			case f.Path == path:
				return f.NewBlob
			}
		}
		return ""
	}
	return blob(a) != "" && blob(a) == blob(b)
}

// stillOpen are the comments of decisions before, at the lines where they stand now, that
// nobody has resolved, with what was said under them: an agent that works again is told
// them again. Of more than most, and of those that are too long, the newest are; left is how
// many are not.
func (g *Gateway) stillOpen(ctx context.Context, r Request, most int) (open []agent.LineComment, left int, err error) {
	all, err := g.Threads(ctx, r)
	if err != nil || len(all) == 0 {
		return nil, 0, err
	}
	if err := g.PlaceThreads(ctx, r, all); err != nil {
		return nil, 0, err
	}
	room := maxCarried
	for _, t := range slices.Backward(all) {
		if t.Resolved() {
			continue
		}
		c := t.carried()
		if room -= len(c.Text) + len(c.Code); room < 0 || len(open) >= most {
			room = -1 // what is older is left out, too
			left++
			continue
		}
		open = append(open, c)
	}
	slices.Reverse(open)
	return open, left, nil
}

// carried is a comment that is still open as an agent is told it again. The lines of a reply
// stand further in than the name of who wrote it, so that none of them can pass for
// somebody else's.
func (t Thread) carried() agent.LineComment {
	c := t.Comment
	if c.Line = t.Now; t.Gone {
		c.Line = 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "(open since revision %d) %s", t.Revision, c.Text)
	for _, a := range t.Answers {
		if a.Act == Reply {
			fmt.Fprintf(&b, "\n%s: %s", a.User, strings.ReplaceAll(a.Text, "\n", "\n    "))
		}
	}
	c.Text = b.String()
	return c
}
