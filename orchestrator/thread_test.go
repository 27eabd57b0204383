package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// threads are the comments that were sent, as a line each, where they stand now.
func (w *world) threads(r approval.Request) string {
	w.t.Helper()
	all, err := w.gateway.Threads(w.t.Context(), r)
	w.must(err)
	w.must(w.gateway.PlaceThreads(w.t.Context(), r, all))
	var lines []string
	for _, t := range all {
		line := fmt.Sprintf("%s %s:%d %s", t.Comment.Side, t.Comment.Path, t.Now, t.Comment.Text)
		if t.Moved {
			line += " moved"
		}
		if t.Gone {
			line += " gone"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (w *world) wantThreads(r approval.Request, want ...string) {
	w.t.Helper()
	if got := w.threads(r); got != strings.Join(want, "\n") {
		w.t.Fatalf("threads:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// comments asks for changes with these comments; the agent makes files of it, and the next
// revision is returned.
func (w *world) comments(root orchestrator.Delegation, r approval.Request, files map[string]string, comments ...agent.LineComment) approval.Request {
	w.t.Helper()
	w.script("coder", changes(files))
	b := w.ballot(w.bob, r, approval.RequestChanges)
	b.Comments, b.StartOver = comments, true // each revision is these files alone
	w.must(errOf(w.gateway.Decide(w.t.Context(), b)))
	return w.request(root.TaskID, r.Revision.N+1)
}

// What was said of an earlier revision stands at the line that it is about, or says that
// the line is gone.
func TestSentCommentsFollowTheirLines(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, root, r, _ := asked(t, url, map[string]string{"core/a.txt": "stays\nmoves\ngoes\ntwice\n", "core/b.txt": "one\n", "core/c.txt": "c\n"}, nil)
		r = w.comments(root, r, map[string]string{"core/a.txt": "stays\nnew\nmoves\ntwice?\ntwice\nx\ntwice\n", "core/b.txt": "one\n"},
			agent.LineComment{Path: "core/a.txt", Text: "all of it"},
			agent.LineComment{Path: "core/a.txt", Line: 1, Text: "one"},
			agent.LineComment{Path: "core/a.txt", Line: 2, Text: "two"},
			agent.LineComment{Path: "core/a.txt", Line: 3, Text: "three"},
			agent.LineComment{Path: "core/a.txt", Line: 4, Text: "four"},
			agent.LineComment{Path: "core/a.txt", Line: 1, Side: "L", Text: "before"},
			agent.LineComment{Path: "core/b.txt", Line: 1, Text: "same file"},
			agent.LineComment{Path: "core/c.txt", Line: 1, Text: "no longer changed"},
			agent.LineComment{Path: "README.md", Text: "never changed"})
		w.wantThreads(r, "R core/a.txt:0 all of it", "R core/a.txt:1 one", "R core/a.txt:3 two moved", "R core/a.txt:3 three gone", "R core/a.txt:4 four gone",
			"L core/a.txt:1 before", "R core/b.txt:1 same file", "R core/c.txt:1 no longer changed gone", "R README.md:0 never changed gone")
		if c := w.thread(r, 2); c.ID != r.Decisions[0].ID+".3" || c.Revision != 1 {
			t.Errorf("a thread is %+v", c)
		}
		// One more revision: each is looked for from where it was written.
		r = w.comments(root, r, map[string]string{"core/a.txt": "goes\nmoves\n", "core/c.txt": "c\n"}, agent.LineComment{Path: "core/a.txt", Line: 2, Text: "newer"})
		w.wantThreads(r, "R core/a.txt:0 all of it", "R core/a.txt:1 one gone", "R core/a.txt:2 two", "R core/a.txt:1 three moved", "R core/a.txt:4 four gone",
			"L core/a.txt:1 before", "R core/b.txt:1 same file gone", "R core/c.txt:1 no longer changed", "R README.md:0 never changed gone", "R core/a.txt:2 newer gone")
	})
}
