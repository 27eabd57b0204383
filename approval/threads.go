package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
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
			c.Side = cmp.Or(c.Side, RightSide)
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

func changes(v Revision, path string) bool {
	return slices.ContainsFunc(v.Files, func(f patch.File) bool { return f.Path == path })
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

// Act is what a person does under a line comment that was sent.
type Act string

// The acts. A comment is open until it is resolved, and again once it is reopened.
const (
	Reply   Act = "reply"
	Resolve Act = "resolve"
	Reopen  Act = "reopen"
)

// The limits of what is said and done under all comments of one request: every page of the
// request has all of it.
const (
	MaxAnswers  = 2000    // acts
	MaxAnswered = 1 << 20 // bytes of replies
)

// Answer is one act under a line comment.
type Answer struct {
	N       int    // counts from 1 within the request
	Thread  string // Thread.ID
	Act     Act
	UserID  string
	User    string
	Channel origin.Channel
	Text    string // of a reply, else ""
	At      time.Time
}

// Said is an act as it comes in. One that was done already changes nothing: to resolve
// what is resolved, or a reply that is sent twice.
type Said struct {
	RequestID string
	Thread    string
	Principal people.Principal
	Channel   origin.Channel
	Act       Act
	Text      string // needed with reply; with resolve and reopen it is a reply before it
	// Seen is how many acts of the thread the person had before them: a reply of the same
	// words among the later ones is this one. Below 0 it is not known, and only the
	// newest act is compared.
	Seen int
}

var done = map[Act]func(event.Answer) event.Payload{
	Reply:   func(a event.Answer) event.Payload { return event.CommentRepliedData{Answer: a} },
	Resolve: func(a event.Answer) event.Payload { return event.CommentResolvedData{Answer: a} },
	Reopen:  func(a event.Answer) event.Payload { return event.CommentReopenedData{Answer: a} },
}

// Answer does one act. It and its event are one transaction under the task's row, so that
// of two people who answer at once both are kept, one after the other.
func (g *Gateway) Answer(ctx context.Context, s Said) error {
	s.Text = plain(s.Text)
	if refused := s.check(); refused != nil {
		return refused
	}
	r, e, err := g.asked(ctx, s.RequestID)
	if err != nil {
		return err
	}
	return g.store.InGate(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil {
			return err
		}
		said, err := tx.Answers(ctx, r.ID)
		if err != nil {
			return err
		}
		all := cur.threads(said)
		i := slices.IndexFunc(all, func(t Thread) bool { return t.ID == s.Thread })
		if i < 0 {
			return orchestrator.Errorf(orchestrator.CodeNotFound, "This request has no comment %q. Load the page again.", s.Thread)
		}
		if refused := e.MayAnswer(s.Principal, *cur, all[i]); refused != nil {
			return refused
		}
		for _, a := range s.answers(all[i]) {
			if refused := room(said, a); refused != nil {
				return refused
			}
			a.N, a.At = len(said)+1, tx.Now()
			said = append(said, a)
			said := done[a.Act](event.Answer{About: cur.about(), Thread: a.Thread, Path: all[i].Comment.Path, Line: all[i].Comment.Line,
				Channel: a.Channel, Text: a.Text})
			if err := errors.Join(tx.InsertAnswer(ctx, r.ID, a), tx.Append(ctx, cur.event(a.User, said))); err != nil {
				return err
			}
		}
		return nil
	})
}

// room refuses an act where there are too many, or too long ones.
func room(said []Answer, a Answer) *orchestrator.Error {
	size := len(a.Text)
	for _, b := range said {
		size += len(b.Text)
	}
	switch {
	case len(said) >= MaxAnswers:
		return orchestrator.Errorf(orchestrator.CodeConflict, "There are %d answers under the comments of this request; that is the limit. Say it with a verdict.", MaxAnswers)
	case a.Text != "" && size > MaxAnswered: // what is done without words still is
		return orchestrator.Errorf(orchestrator.CodeConflict, "The replies under the comments of this request would have %d bytes; %d is the limit. Say it with a verdict.", size, MaxAnswered)
	}
	return nil
}

func (s Said) check() *orchestrator.Error {
	switch {
	case done[s.Act] == nil:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no act %q. Use reply, resolve or reopen.", s.Act)
	case s.Act == Reply && s.Text == "":
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The reply is empty. Write it, or leave it out.")
	case len(s.Text) > MaxComment:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The reply has %d bytes; %d is the limit.", len(s.Text), MaxComment)
	}
	return nil
}

// answers are the acts that are new: none where all was done already.
func (s Said) answers(t Thread) []Answer {
	a := Answer{Thread: t.ID, UserID: s.Principal.User.ID, User: s.Principal.Name(), Channel: s.Channel}
	var fresh []Answer
	if s.Text != "" && !s.repeats(t) {
		a.Act, a.Text = Reply, s.Text
		fresh = append(fresh, a)
	}
	if s.Act == Resolve && !t.Resolved() || s.Act == Reopen && t.Resolved() {
		a.Act, a.Text = s.Act, ""
		fresh = append(fresh, a)
	}
	return fresh
}

// repeats reports whether the person has said the same since they looked.
func (s Said) repeats(t Thread) bool {
	since := s.Seen
	if since < 0 || since > len(t.Answers) {
		since = max(0, len(t.Answers)-1)
	}
	return slices.ContainsFunc(t.Answers[since:], func(a Answer) bool {
		return a.Act == Reply && a.UserID == s.Principal.User.ID && a.Text == s.Text
	})
}

// MayAnswer returns nil when p may reply to a comment, resolve and reopen it: who wrote
// it, and whoever may ask for changes, as long as a further revision can come.
func (e Electorate) MayAnswer(p people.Principal, r Request, t Thread) *orchestrator.Error {
	refused := e.May(p, r, RequestChanges)
	own := p.Run == nil && p.User.ID != "" && p.User.ID == t.Decision.UserID && Approves(e.current(p.User)) && p.Has(people.ApprovalsDecide)
	switch {
	case refused != nil && !own:
		return refused
	case r.DecidedAt != nil && !r.revisable():
		return orchestrator.Errorf(orchestrator.CodeConflict, "This request is %s, so its comments stay as they are.", r.State)
	}
	return nil
}
