package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Request changes with comments on lines: the agent runs again and has them, each with
// its line, and so has the history.
func TestLineCommentsReachTheNextRun(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		long := strings.Repeat("ä", 300)
		w, root, r, _ := asked(t, url, map[string]string{"core/a.txt": "one\r\n\t2\r\nthree " + long + "\n", "core/b.txt": "-"}, nil)
		b := w.ballot(w.bob, r, approval.RequestChanges)
		for says, c := range map[string]agent.LineComment{
			`"core/a.txt" has 3 lines in revision 1, so there is no line 4`: {Path: "core/a.txt", Line: 4, Text: "x"},
			`There is no file "core/c.txt"`:                                 {Path: "core/c.txt", Line: 1, Text: "x"},
			`There is no file "core"`:                                       {Path: "core", Text: "x"},
			`There is no file "../core/a.txt"`:                              {Path: "../core/a.txt", Line: 1, Text: "x"},
			`There is no file "core/b.txt" on that side`:                    {Path: "core/b.txt", Line: 1, Side: "R", Text: "x"},
			`A line comment needs`:                                          {Path: "core/a.txt", Line: -1, Text: "x"},
			`The side of a line comment is "X"`:                             {Path: "core/a.txt", Line: 1, Side: "X", Text: "x"},
		} {
			b.Comments = []agent.LineComment{{Path: "core/a.txt", Line: 1, Text: "fine"}, c}
			w.refused(errOf(w.gateway.Decide(t.Context(), b)), orchestrator.CodeBadRequest, says)
		}
		second := make(chan agent.Feedback, 1)
		w.script("coder", func(ctx context.Context, job agent.Job, h agent.Host) (agent.Outcome, error) {
			second <- *job.Feedback
			return changes(three)(ctx, job, h)
		})
		b.Comment = "Almost."
		b.Comments = []agent.LineComment{
			{Path: "core/a.txt", Line: 2, Text: "tabs\x00?"},
			{Path: "core/a.txt", Line: 3, Text: "too long"},
			{Path: "core/a.txt", Line: 2, Side: "L", Text: "it was good"},
			{Path: "core/b.txt", Line: 1, Text: "why gone?"},
			{Path: "README.md", Text: "mention it"},
			{Path: "core/a.txt", Line: 1, Code: "what I saw", Text: "x"},
		}
		w.must(errOf(w.gateway.Decide(t.Context(), b)))
		want := []agent.LineComment{
			{Path: "core/a.txt", Line: 2, Code: "\t2", Text: "tabs?"},
			{Path: "core/a.txt", Line: 3, Code: "three " + strings.Repeat("ä", 197), Text: "too long"},
			{Path: "core/a.txt", Line: 2, Side: "L", Code: "two", Text: "it was good"},
			{Path: "core/b.txt", Line: 1, Code: "b", Text: "why gone?"},
			{Path: "README.md", Text: "mention it"},
			{Path: "core/a.txt", Line: 1, Code: "what I saw", Text: "x"},
		}
		got := <-second
		if fmt.Sprint(got.Comments) != fmt.Sprint(want) || got.Comment != "Almost." || !strings.Contains(got.Diff, "the diff") {
			t.Errorf("the agent was told %+v", got)
		}
		r = w.request(root.TaskID, 2)
		if fmt.Sprint(r.Decisions[0].Comments) != fmt.Sprint(want) {
			t.Errorf("the decision keeps %+v", r.Decisions[0].Comments)
		}
		for _, e := range w.events(root.TaskID) {
			var data struct{ Comments []agent.LineComment }
			if e.Type == event.ChangesRequested && (json.Unmarshal(e.Data, &data) != nil || len(data.Comments) != len(want)) {
				t.Errorf("the event has %s", e.Data)
			}
		}
	})
}

// draft keeps a comment of somebody's on a line.
func (w *world) draft(u people.User, r approval.Request, revision, line int, text string) error {
	return w.gateway.SaveDraft(w.t.Context(), people.As(u, nil), r.ID, revision, approval.Draft{Path: "core/a.txt", Line: line, Text: text})
}

// drafts are bob's, as a line each.
func (w *world) drafts(r approval.Request) string {
	w.t.Helper()
	placed, err := w.gateway.Drafts(w.t.Context(), w.bob.ID, r.ID)
	w.must(err)
	var lines []string
	for _, p := range placed {
		line := fmt.Sprintf("%s %d %q %s", p.Side, p.Now, p.Code, p.Text)
		if p.Moved {
			line += " moved"
		}
		if p.Gone {
			line += " gone"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (w *world) wantDrafts(r approval.Request, want ...string) {
	w.t.Helper()
	if got := w.drafts(r); got != strings.Join(want, "\n") {
		w.t.Fatalf("drafts:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// Drafts survive until they are sent, and follow their lines into the next revision.
func TestDraftsFollowTheirLines(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, map[string]string{"core/a.txt": "stays\nmoves\ngoes\ntwice\n"}, nil)
		for line, text := range []string{"about all", "one", "two", "three", "four"} {
			w.must(w.draft(w.bob, r, 1, line, text))
		}
		w.must(w.draft(w.bob, r, 1, 1, "one, better"))
		w.must(w.draft(w.bob, r, 1, 2, "two"))
		w.must(w.draft(cleo, r, 1, 1, "cleo's"))
		w.refused(w.draft(w.ann, r, 1, 1, "x"), orchestrator.CodeNotAnApprover, "")
		w.refused(w.draft(w.bob, r, 1, 5, "x"), orchestrator.CodeBadRequest, "no line 5")
		w.refused(w.draft(w.bob, r, 2, 1, "x"), orchestrator.CodeBadRequest, "none of number 2")
		w.refused(w.draft(w.bob, r, 1, 1, strings.Repeat("x", approval.MaxComment+1)), orchestrator.CodeBadRequest, "1 to")
		w.wantDrafts(r, `R 0 "" about all`, `R 1 "stays" one, better`, `R 2 "moves" two`, `R 3 "goes" three`, `R 4 "twice" four`)

		w.script("coder", changes(map[string]string{"core/a.txt": "stays\nnew\nmoves\ntwice?\ntwice\nx\ntwice\n"}))
		b := w.ballot(cleo, r, approval.RequestChanges)
		w.must(errOf(w.gateway.Decide(t.Context(), b)))
		r = w.request(root.TaskID, 2)
		if c := r.Decisions[0].Comments; len(c) != 1 || c[0].Text != "cleo's" || c[0].Code != "stays" {
			t.Errorf("cleo sent %+v", c)
		}
		w.wantDrafts(r, `R 0 "" about all`, `R 1 "stays" one, better`, `R 3 "moves" two moved`, `R 3 "goes" three gone`, `R 4 "twice" four gone`)
		if all, err := w.gateway.Drafts(t.Context(), cleo.ID, r.ID); err != nil || len(all) != 0 {
			t.Errorf("cleo still has %+v, %v", all, err)
		}
		// Written again where it has moved to, it is still one; what is gone can be deleted.
		w.must(w.draft(w.bob, r, 2, 3, "two, better"))
		w.wantDrafts(r, `R 3 "goes" three gone`, `R 0 "" about all`, `R 1 "stays" one, better`, `R 3 "moves" two, better`, `R 4 "twice" four gone`)
		w.must(w.draft(w.bob, r, 2, 4, ""))
		w.wantDrafts(r, `R 3 "goes" three gone`, `R 0 "" about all`, `R 1 "stays" one, better`, `R 3 "moves" two, better`)
		w.must(w.draft(w.bob, r, 1, 1, "")) // also by the place where it was written
		w.must(w.draft(w.bob, r, 2, 7, "seven"))

		next := make(chan agent.Feedback, 1)
		w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			next <- *job.Feedback
			return agent.Outcome{}, os.ErrInvalid
		})
		b = w.ballot(w.bob, r, approval.RequestChanges)
		b.Comments = []agent.LineComment{{Path: "core/a.txt", Line: 2, Text: "direct"}}
		w.must(errOf(w.gateway.Decide(t.Context(), b)))
		told := <-next
		if got := fmt.Sprint(told.Comments); got != fmt.Sprint([]agent.LineComment{
			{Path: "core/a.txt", Line: 2, Code: "new", Text: "direct"}, {Path: "core/a.txt", Side: "R", Code: "goes", Text: "three"}, {Path: "core/a.txt", Side: "R", Text: "about all"},
			{Path: "core/a.txt", Line: 3, Side: "R", Code: "moves", Text: "two, better"}, {Path: "core/a.txt", Line: 7, Side: "R", Code: "twice", Text: "seven"},
			{Path: "core/a.txt", Line: 1, Side: "R", Code: "stays", Text: "(open since revision 1) cleo's"}}) {
			t.Errorf("the agent was told %s", got)
		}
		w.wantDrafts(r)
	})
}

func TestDraftsHaveALimitAndNoneIsNothingToSend(t *testing.T) {
	t.Parallel()
	w, _, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), map[string]string{"core/a.txt": strings.Repeat("x\n", 300)}, nil)
	b := w.ballot(w.bob, r, approval.RequestChanges)
	w.refused(errOf(w.gateway.Decide(t.Context(), b)), orchestrator.CodeBadRequest, "Nothing says what should change")
	for i := range approval.MaxDrafts {
		w.must(w.store.SaveDraft(t.Context(), approval.Draft{UserID: w.bob.ID, RequestID: r.ID, Revision: 1, Path: "core/a.txt", Side: "R", Line: i + 1, Text: "x", At: r.CreatedAt}, approval.MaxDrafts))
	}
	w.refused(w.draft(w.bob, r, 1, 250, "x"), orchestrator.CodeConflict, "You have 200 comments")
	w.must(w.draft(w.bob, r, 1, 3, "changed"))
	w.must(errOf(w.decide(r, approval.Reject, "no")))
	w.refused(w.draft(w.bob, r, 1, 4, "changed"), orchestrator.CodeConflict, "rejected")
	w.must(w.draft(w.bob, r, 1, 4, ""))
}

// A comment may be about a run of lines: it keeps all of them, and goes where they go.
func TestACommentOnLinesFollowsThem(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, map[string]string{"core/a.txt": "one\ntwo\n\tthree\nfour\n" + strings.Repeat("more\n", 50)}, nil)
		about := func(first, line int, text string) error {
			return w.gateway.SaveDraft(t.Context(), people.As(w.bob, nil), r.ID, 1, approval.Draft{Path: "core/a.txt", First: first, Line: line, Text: text})
		}
		w.must(about(2, 3, "both"))
		w.must(about(3, 4, "parted"))
		w.must(about(1, 1, "alone"))
		w.refused(about(5, 2, "x"), orchestrator.CodeBadRequest, "first line before the last")
		w.refused(about(-1, 2, "x"), orchestrator.CodeBadRequest, "first line before the last")
		w.refused(about(1, 41, "x"), orchestrator.CodeBadRequest, "40 lines at most")
		w.refused(about(50, 60, "x"), orchestrator.CodeBadRequest, "no line 55")
		w.wantDrafts(r, `R 1 "one" alone`, `R 3 "two\n\tthree" both`, `R 4 "\tthree\nfour" parted`)

		w.script("coder", changes(map[string]string{"core/a.txt": "new\none\ntwo\n\tthree\nnew\nfour\n"}))
		b := w.ballot(cleo, r, approval.RequestChanges)
		b.Comment = "Again."
		w.must(errOf(w.gateway.Decide(t.Context(), b)))
		r = w.request(root.TaskID, 2)
		w.wantDrafts(r, `R 2 "one" alone moved`, `R 4 "two\n\tthree" both moved`, `R 4 "\tthree\nfour" parted gone`)

		w.script("coder", changes(map[string]string{"core/a.txt": "done\n"}))
		b = w.ballot(w.bob, r, approval.RequestChanges)
		w.must(errOf(w.gateway.Decide(t.Context(), b)))
		c := w.request(root.TaskID, 3).Decisions[1].Comments
		if len(c) != 3 || c[1].Line != 4 || c[1].String() != "core/a.txt:4: both\n> two\n> \tthree" {
			t.Errorf("bob sent %+v", c)
		}
	})
}
