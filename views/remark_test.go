package views_test

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/agent"
	"gatehouse/views/diff"
	reviewview "gatehouse/views/review"
)

// remarked is a page with two drafts, one of them without a line, and a comment that was sent.
func remarked() reviewview.ReviewPage {
	p := reviewPage(false)
	p.CanComment, p.CanEdit, p.Drafts = true, true, 2
	p.Files[1].Remarks = []diff.Remark{
		{Path: p.Files[1].Path, Side: "R", Line: 42, Text: "Needs ctx. " + hostile, Draft: true, Revision: 1, Was: 40, Moved: true},
		{Path: p.Files[1].Path, Side: "L", Line: 42, Text: "Why was this?", User: "bob", At: before(60)},
		{Path: p.Files[1].Path, Side: "R", Line: 900, Text: "Far away", User: "bob", At: before(60)},
	}
	p.Gone = []diff.Remark{{Path: "old.go", Side: "R", Line: 7, Code: "gone := true // " + hostile, Text: "What for?", Draft: true, Revision: 1, Was: 7}}
	return p
}

// rowOf is a line of the diff with what stands under it.
func rowOf(t *testing.T, html, anchor string) string {
	t.Helper()
	_, row, ok := strings.Cut(html, `id="`+anchor+`-n"`)
	if !ok {
		t.Fatalf("nothing stands under %s", anchor)
	}
	row, _, _ = strings.Cut(row, "</tr>")
	return row
}

func TestCommentsStandUnderTheirLine(t *testing.T) {
	for _, split := range []bool{false, true} {
		p := remarked()
		p.Split = split
		html := render(t, reviewview.Review(p))
		mustContain(t, rowOf(t, html, "F2R42"), "Needs ctx.", "not sent", "moved here from line 40 of revision 1", `value="delete"`)
		mustContain(t, rowOf(t, html, "F2L42"), "Why was this?", "<b>bob</b>")
		mustLack(t, rowOf(t, html, "F2L42"), "not sent", `value="delete"`)
		mustContain(t, html, "On line 900, which is not shown here", "Far away",
			"1 comment whose line is gone", "gone := true", "of revision 1; the line is gone",
			"Your 2 comments on lines go with your verdict, whichever it is.", `id="draft-count"`, `<span class="long-word">Request changes</span>`)
		mustLack(t, html, "<script>alert", "\u202e")
	}
}

func TestACommentFormOpensWithoutScript(t *testing.T) {
	p := remarked()
	p.CommentAt = "F2R42"
	row := rowOf(t, render(t, reviewview.Review(p)), "F2R42")
	mustContain(t, row, `action="/approvals/`+aprID+`/drafts"`, `name="side" value="R"`, `name="line" value="42"`, `name="revision" value="2"`, "Comment on added line 42", "Needs ctx.")
	p.CanComment = false
	mustLack(t, render(t, reviewview.Review(p)), `id="remark-form"`, "data-comment=")
}

// Beside a comparison the left side is another revision: a comment there would be about
// the wrong file.
func TestTheOldSideOfAComparisonTakesNoComments(t *testing.T) {
	p := remarked()
	p.Against, p.Revision, p.Newest = 1, 2, 2
	html := render(t, reviewview.Review(p))
	mustContain(t, html, `data-comment="F2R42"`)
	mustLack(t, html, `data-comment="F2L42"`)
}

// A browser changes names that are no text; a form would bring back another one.
func TestCommentsAreOfferedWhereThePathSurvivesAForm(t *testing.T) {
	for path, want := range map[string]bool{"a/b.go": true, "ä ö.txt": true, "": false, "a\xff": false, " a": false, "a\nb": false, "a\r": false} {
		if reviewview.Commentable(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

func TestChoosingFilesTicksAllOfThemFirst(t *testing.T) {
	p := remarked()
	p.Doing, p.NoYes = reviewview.Picking, ""
	html := render(t, reviewview.Review(p))
	if n := strings.Count(html, `name="pick"`); n != len(p.Files) || strings.Count(html, "checked") < n {
		t.Errorf("%d ticks for %d files", n, len(p.Files))
	}
	mustContain(t, html, "Approve the ticked files", `name="some" value="1"`, "makes revision 3 with these files", "The rest is declined")
	mustLack(t, html, `value="reject"`, `value="request_changes"`)
	p.Picked = []int{1, 3}
	mustContain(t, render(t, reviewview.Review(p)), "Approve 2 of 5 files")
}

// A browser drops the first line feed of a text area, and no other character.
func TestAnEditorShowsAFileAsItIs(t *testing.T) {
	p := remarked()
	p.Doing = reviewview.Editing
	p.Files[1].Edit = &diff.FileEdit{Text: "\n\tfirst </textarea><b>\nlast", Hidden: 2}
	p.Files[4].NoEdit = "It is binary."
	html := render(t, reviewview.Review(p))
	mustContain(t, html, ">\n\n\tfirst &lt;/textarea&gt;&lt;b&gt;\nlast</textarea>", `form="edit"`, "you cannot approve it", "Make revision 3", "It is binary.",
		"2 characters in it cannot be seen", `enctype="multipart/form-data"`)
	mustLack(t, html, `id="verdict"`, "Approve only some files")
}

// Who may not say yes may still say no, ask for changes and edit.
func TestWhoAskedMayStillAskForChanges(t *testing.T) {
	p := remarked()
	p.NoYes = "You asked for this task, so another person must approve it."
	html := render(t, reviewview.Review(p))
	mustContain(t, html, p.NoYes, `value="reject"`, `value="request_changes"`)
	mustLack(t, html, `value="approve"`, "Approve only some files")
}

func TestDecisionsSayForWhomAndAboutWhat(t *testing.T) {
	p := remarked()
	p.Mode, p.Made, p.Shadow = "telegram", "Edited by ann, from revision 1. ann cannot approve it.", `On trial, the rule "core" would say: denied. It decides nothing.`
	p.Decisions = []approval.Decision{
		{User: "cleo", For: "ann", Verdict: "approve", Channel: "telegram", Revision: 1, Files: []string{"a.go", "b.go", "c.go", "d.go"}, At: before(60)},
		{ID: "dec_1", User: "bob", Verdict: "request_changes", Channel: "web", Revision: 1, At: before(60), Comments: []agent.LineComment{{Path: "a.go", Side: "R", Line: 3, Code: "x := 1", Text: "Name it"}}},
		{User: "ann", Verdict: "edit", Channel: "api", Revision: 1, At: before(60)},
	}
	p.Spots = map[string]string{"dec_1.1": "#F1R3"}
	html := render(t, reviewview.Review(p))
	mustContain(t, html, "cleo (for ann)", "approved only a.go, b.go, c.go and 1 other file", "1 comment on a line", "a.go:3", "x := 1", "Name it", `href="#F1R3"`,
		"edited it", "Edited by ann", "approved on Telegram or here", "It decides nothing.")
}

func TestLongLinesOfferMore(t *testing.T) {
	raw := []diff.RawLine{{Op: diff.OpAdded, New: 1, Text: strings.Repeat("x", 100_000)}, {Op: diff.OpAdded, New: 2, Text: strings.Repeat("y", 100_000), To: 70_000}, {Op: diff.OpAdded, New: 3, Text: "z\r"}}
	h := diff.NewHunk("a.min.js", 0, "", raw)
	if cut := []int{h.Lines[0].Cut, h.Lines[1].Cut, h.Lines[2].Cut}; !slices.Equal(cut, []int{96_000, 30_000, 0}) || !h.Lines[2].CR {
		t.Errorf("cut %v, %+v", cut, h.Lines[2])
	}
}

// A comment of an earlier revision stands where its line is now, and says so.
func TestCommentsOfEarlierRevisions(t *testing.T) {
	p := remarked()
	path := p.Files[1].Path
	p.Files[1].Remarks = []diff.Remark{
		{Thread: "dec_a.1", Path: path, Side: "R", Line: 42, Text: "It moved. " + hostile, User: "bob", Revision: 1, Earlier: true, Was: 40, Moved: true, At: before(60)},
		{Thread: "dec_a.1", Path: path, Side: "R", Line: 41, Text: "It is lost.", Code: "gone := 1 // " + hostile, User: "bob", Revision: 1, Earlier: true, Was: 41, Outdated: true, At: before(60)},
	}
	p.Elsewhere = []diff.Remark{{Thread: "dec_a.1", Path: "other\n.go", Side: "R", Line: 3, Code: "x", Text: "Another file. " + hostile, User: "bob", Revision: 1, Earlier: true, Was: 3, Outdated: true, At: before(60)}}
	html := render(t, reviewview.Review(p))
	mustContain(t, rowOf(t, html, "F2R42"), "It moved.", "on revision 1", "moved here from line 40")
	mustContain(t, html, "On line 41 of revision 1; the line is gone", "gone := 1", "outdated", "1 comment on files that this revision does not change", `id="threads-elsewhere"`)
	mustLack(t, html, "<script>alert", "\u202e", `id="F2R41-n"`)
	p.Unplaced = true
	mustContain(t, render(t, reviewview.Review(p)), "could not be placed")
}

// threads is a page with a comment that was answered, one that is done, and one on a
// revision that another line took the place of.
func threads() reviewview.ReviewPage {
	p := remarked()
	path := p.Files[1].Path
	p.OpenComments, p.OpenHref, p.ReplyTo = 2, "#F2R42", "dec_a.1"
	p.Files[1].Remarks = []diff.Remark{
		{Thread: "dec_a.1", CanAnswer: true, Path: path, Side: "R", Line: 42, Text: "Needs ctx. " + hostile, User: "bob", Revision: 1, Earlier: true, Was: 40, Moved: true, At: before(60),
			Answers: []approval.Answer{{User: "cleo", Act: "reply", Text: "It has one. " + hostile, At: before(50)}, {User: "cleo", Act: "resolve", At: before(40)}, {User: "bob", Act: "reopen", At: before(30)}}},
		{Thread: "dec_a.2", CanAnswer: true, Resolved: true, Path: path, Side: "L", Line: 42, Text: "Why was this? " + hostile, User: "bob", Revision: 2, At: before(60),
			Answers: []approval.Answer{{User: "bob", Act: "reply", Text: "I see.", At: before(50)}, {User: "ann", Act: "resolve", At: before(40)}}},
		{Thread: "dec_a.3", Path: path, Side: "R", Line: 41, Text: "It is lost.", Code: "gone := 1", User: "bob", Revision: 1, Earlier: true, Was: 41, Outdated: true, At: before(60)},
	}
	return p
}

func TestACommentHasItsAnswers(t *testing.T) {
	for _, split := range []bool{false, true} {
		p := threads()
		p.Split = split
		html := render(t, reviewview.Review(p))
		open, done := rowOf(t, html, "F2R42"), rowOf(t, html, "F2L42")
		mustContain(t, open, `id="t-dec_a.1"`, "It has one.", "resolved this", "opened this again", `action="/approvals/`+aprID+`/threads"`, `name="thread" value="dec_a.1"`, `name="seen" value="3"`,
			`value="reply"`, `value="resolve"`, "Resolve the comment on ")
		mustContain(t, done, "is-resolved", "Resolved by <b>ann</b>", " · 1 reply", `value="reopen"`)
		mustLack(t, done, `value="resolve"`)
		mustContain(t, html, `id="open-comments"`, `<a href="#F2R42">2 open comments</a>`, "they do not block a yes")
		mustLack(t, html, "<script>alert", "\u202e", `value="dec_a.3"`)
	}
	p := threads()
	p.ReplyTo, p.ReplyText, p.Refused = "dec_a.2", "Kept & shown", "The reply is too long."
	row := rowOf(t, render(t, reviewview.Review(p)), "F2L42")
	mustContain(t, row, "Kept &amp; shown</textarea>", `class="reply" open`)
	p.OpenComments = 0
	mustContain(t, render(t, reviewview.Review(p)), `id="open-comments" hidden`)
}

// A path of 400 folders is cut in the middle; all of it is there on demand.
func TestALongPathIsShownInShort(t *testing.T) {
	p := reviewPage(false)
	long := strings.Repeat("folder/", 400) + "deep.go"
	p.Warnings[0].Path, p.Files[1].Path, p.Files[1].OldPath = long, long, long+"x"
	html := render(t, reviewview.Review(p))
	look, _, _ := strings.Cut(html[strings.Index(html, "What to look at"):], "</section>")
	mustContain(t, look, "…", "folder/deep.go", "<summary>whole path</summary>", long)
	if n := strings.Count(look, long); n != 1 {
		t.Errorf("the warnings have the whole path %d times", n)
	}
	mustContain(t, html, "whole path")
	mustLack(t, render(t, reviewview.Review(reviewPage(false))), "whole path")
}
