package approval

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
)

// The sides of a line comment.
const (
	LeftSide  = "L" // the file as it was
	RightSide = "R" // the file as it would be
)

// Limits of line comments.
const (
	MaxDrafts = 200      // of one person on one request
	maxCode   = 400      // bytes of a quoted line
	maxLines  = 40       // lines that one comment may be about
	maxRead   = 32 << 20 // bytes of a file that are read to find a line
	maxKept   = 64 << 20 // bytes of files that are held at once while lines are looked for
	// maxDraftPath is the longest path with drafts, in bytes: their index on PostgreSQL holds
	// up to 2,704 with the ids beside it.
	maxDraftPath = 2500
	// KeepDrafts is how long a draft is kept after it was written last.
	KeepDrafts = 30 * 24 * time.Hour
)

// Draft is a line comment that its person has not sent with a verdict yet. It is theirs
// alone, survives reload and sign-out, and is kept for KeepDrafts.
type Draft struct {
	UserID    string
	RequestID string
	Revision  int // on which it was written
	Path      string
	Side      string // LeftSide or RightSide
	Line      int    // counts from 1; 0 is the whole file; below 0 it was put aside, see Placed.Now
	// First is where a run of lines begins that ends with Line; 0 is Line alone. It is asked
	// for when a draft is saved and not kept: Code has as many lines.
	First int
	Code  string // the line, or lines, as they were then, at most 400 bytes of each
	Text  string
	At    time.Time
}

// Placed is a draft as it stands on the current revision.
type Placed struct {
	Draft
	Now   int  // its line there; the old one when Gone
	Moved bool // the line is elsewhere in the file
	Gone  bool // the line, or the file, is not there any more
}

// errDrafts: the drafts changed while a verdict that takes them was prepared.
var errDrafts = errors.New("the drafts have changed")

// SaveDraft keeps a line comment of a person on a revision; an empty text removes it.
func (g *Gateway) SaveDraft(ctx context.Context, by people.Principal, requestID string, revision int, d Draft) error {
	r, e, err := g.asked(ctx, requestID)
	if err != nil {
		return err
	}
	if refused := e.May(by, r, RequestChanges); refused != nil {
		return refused
	}
	if refused := r.subject().takes(r, Ballot{Verdict: RequestChanges}); refused != nil {
		return refused
	}
	d.UserID, d.RequestID, d.Revision, d.At = by.User.ID, r.ID, revision, g.now()
	d.Path, d.Text = plain(d.Path), plain(d.Text)
	d.Side = cmp.Or(d.Side, RightSide)
	if d.Text == "" {
		return g.clearPlace(ctx, r, d)
	}
	if r.DecidedAt != nil && !r.revisable() {
		return orchestrator.Errorf(orchestrator.CodeConflict, "This request is %s, so no comment on it will be read. Send a new task.", r.State)
	}
	if refused := checkRemark(agent.LineComment{Path: d.Path, Line: d.Line, Side: d.Side, Text: d.Text}); refused != nil {
		return refused
	}
	if len(d.Path) > maxDraftPath {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The name of this file has %d bytes, and comments on lines are kept up to %d. Write it into the comment of your verdict.", len(d.Path), maxDraftPath)
	}
	v, err := g.revisionN(ctx, r, revision)
	if err != nil {
		return err
	}
	files := g.reader(r, v)
	code, refused, err := files.run(ctx, d)
	switch {
	case err != nil:
		return err
	case refused != nil:
		return refused
	}
	d.Code = code
	if err := g.clearPlace(ctx, r, d); err != nil {
		return err
	}
	err = g.store.SaveDraft(ctx, d, MaxDrafts)
	if errors.Is(err, orchestrator.ErrExists) {
		return orchestrator.Errorf(orchestrator.CodeConflict, "You have %d comments on this request that are not sent; that is the limit. Send them with your verdict, or delete some.", MaxDrafts)
	}
	return err
}

// clearPlace makes room for d: the person's draft that came to its line from another one
// of an older revision goes, and with an empty text every one that is shown there. One
// that has the number of d's line, but whose own line is gone, is put aside.
func (g *Gateway) clearPlace(ctx context.Context, r Request, d Draft) error {
	all, err := g.placed(ctx, r, d.UserID)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Path != d.Path || p.Side != d.Side || p.Now != d.Line && p.Line != d.Line {
			continue
		}
		shown := !p.Gone && p.Now == d.Line && d.Revision == r.Revision.N
		switch {
		case d.Text == "" && (shown || p.Gone || p.Revision == d.Revision), shown && p.Line != d.Line:
			err = g.store.DeleteDraft(ctx, p.Draft)
		case d.Text != "" && p.Gone && p.Line == d.Line:
			err = g.putAside(ctx, p.Draft, all)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putAside gives a draft whose line is gone a number that no line has.
func (g *Gateway) putAside(ctx context.Context, d Draft, all []Placed) error {
	old := d
	taken := func(p Placed) bool { return p.Path == d.Path && p.Side == d.Side && p.Line == d.Line }
	for d.Line = -old.Line; slices.ContainsFunc(all, taken); {
		d.Line -= aside
	}
	if err := g.store.SaveDraft(ctx, d, MaxDrafts+1); err != nil {
		return err
	}
	return g.store.DeleteDraft(ctx, old)
}

// aside is more than any file has lines: drafts that were put aside from one line have
// numbers that differ by it.
const aside = 1 << 30

// Drafts returns a person's drafts on a request, placed on its current revision, by
// path and line.
func (g *Gateway) Drafts(ctx context.Context, userID, requestID string) ([]Placed, error) {
	r, err := g.Request(ctx, requestID)
	if err != nil {
		return nil, err
	}
	return g.placed(ctx, r, userID)
}

func (g *Gateway) placed(ctx context.Context, r Request, userID string) ([]Placed, error) {
	drafts, err := g.store.Drafts(ctx, userID, r.ID)
	if err != nil || len(drafts) == 0 {
		return nil, err
	}
	files := g.reader(r, r.Revision)
	placed := make([]Placed, 0, len(drafts))
	for _, d := range drafts {
		p := Placed{Draft: d, Now: d.Line}
		if d.Line < 0 {
			p.Now, p.Gone = -d.Line%aside, true
		} else if d.Revision != r.Revision.N {
			lines, found, err := files.lines(ctx, d.Path, d.Side)
			if err != nil {
				return nil, err
			}
			p.place(lines, found)
		}
		placed = append(placed, p)
	}
	return placed, nil
}

// place finds the draft's line again.
func (p *Placed) place(lines []string, found bool) {
	p.Now, p.Moved, p.Gone = stands(p.Code, p.Line, lines, found)
}

// remark is a draft as a comment that is sent. One whose line is gone is about the
// file, with the old line quoted.
func (p Placed) remark() agent.LineComment {
	c := agent.LineComment{Path: p.Path, Line: p.Now, Side: p.Side, Code: p.Code, Text: p.Text}
	if p.Gone {
		c.Line = 0
	}
	return c
}

// remarks are the comments of a ballot with the lines that they are about, and the
// drafts that it takes.
func (g *Gateway) remarks(ctx context.Context, r Request, b Ballot) ([]agent.LineComment, []Draft, error) {
	files := g.reader(r, r.Revision)
	comments := slices.Clone(b.Comments)
	for i, c := range comments {
		code, refused, err := files.code(ctx, c.Path, c.Side, c.Line)
		switch {
		case err != nil:
			return nil, nil, err
		case refused != nil:
			return nil, nil, refused
		case c.Code == "":
			comments[i].Code = code
		}
	}
	if !b.takesDrafts() {
		return comments, nil, nil
	}
	placed, err := g.placed(ctx, r, b.Principal.User.ID)
	if err != nil {
		return nil, nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "Your saved comments on lines could not be read, so they could not be sent with your %s. Nothing was stored. Try again. (%w)", noun(b.Verdict), err)
	}
	var drafts []Draft
	for _, p := range placed {
		comments, drafts = append(comments, p.remark()), append(drafts, p.Draft)
	}
	b.Comments = comments
	switch {
	case len(comments) > MaxComments:
		return nil, nil, orchestrator.Errorf(orchestrator.CodeBadRequest, "There are %d line comments; %d is the limit.", len(comments), MaxComments)
	case b.saysNothing():
		return nil, nil, nothingSaid()
	}
	return comments, drafts, nil
}

// takeDrafts removes the drafts that are sent with a verdict, if they are still those
// that it was made of.
func takeDrafts(ctx context.Context, tx Tx, userID, requestID string, b Ballot, want []Draft) error {
	if !b.takesDrafts() {
		return nil
	}
	had, err := tx.TakeDrafts(ctx, userID, requestID)
	if err != nil {
		return err
	}
	same := func(a, b Draft) bool {
		return a.Path == b.Path && a.Side == b.Side && a.Line == b.Line && a.Text == b.Text
	}
	if !slices.EqualFunc(had, want, same) {
		return errDrafts
	}
	return nil
}

func (g *Gateway) revisionN(ctx context.Context, r Request, n int) (Revision, error) {
	if n == r.Revision.N {
		return r.Revision, nil
	}
	all, err := g.store.Revisions(ctx, r.ID)
	if err != nil {
		return Revision{}, err
	}
	if i := slices.IndexFunc(all, func(v Revision) bool { return v.N == n }); i >= 0 {
		return all[i], nil
	}
	return Revision{}, orchestrator.Errorf(orchestrator.CodeBadRequest, "This request has %d revisions, and none of number %d.", r.Revision.N, n)
}
