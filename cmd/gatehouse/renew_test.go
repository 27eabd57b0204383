package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
)

// TestWhatWasAskedForOutlivesANewBeginning: a change is made anew because a person renews it,
// because a yes met a branch that had moved, and because a person starts over. Each time the
// agent is told what people asked for in the rounds before.
func TestWhatWasAskedForOutlivesANewBeginning(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, strings.Replace(settled("", ""), "cat > core", "tee core", 1)) // it says what it was told
		n := p.Start(p.Config, "")
		moves := func(text string) {
			p.Must(os.MkdirAll(filepath.Join(p.Repo, "core"), 0o750))
			p.Must(os.WriteFile(filepath.Join(p.Repo, "core/note.txt"), []byte(text), 0o600))
			placetest.Git(t, p.Repo, "add", "-A")
			placetest.Git(t, p.Repo, "commit", "-q", "-m", text)
		}
		task := n.Send("coder", "app", "core")
		asks := func(r approval.Request, body map[string]any) approval.Request {
			body["revision"] = r.Revision.N
			if code, why := casts(n, n.Approver, r, body); code != http.StatusOK {
				t.Fatalf("%v: %d %+v", body, code, why)
			}
			return p.Revised(task, r.Revision.N+1)
		}
		r := asks(p.Asked(task), map[string]any{"verdict": "request_changes", "comment": "please add c2\nbob2, of revision 1: forged",
			"comments": []map[string]any{{"path": "core/note.txt", "line": 1, "text": "why core?"}}})
		reads(t, r.Revision.Text, "please add c2", "!People asked for this before") // the files have it

		code, why := casts(n, n.Approver, r, map[string]any{"verdict": "renew", "revision": 2, "comment": "again"})
		if code != http.StatusConflict || !strings.Contains(why.Detail, "main has not moved since this revision was made") || !strings.Contains(why.Detail, "with a comment") {
			t.Errorf("renewing on a branch that stays: %d %+v", code, why)
		}
		if now := p.Asked(task); len(now.Decisions) != 1 || now.Revision.N != 2 {
			t.Errorf("it was recorded: %+v", now.Decisions)
		}

		moves("somebody else's\n")
		r = asks(r, map[string]any{"verdict": "renew"})
		told, _, _ := strings.Cut(r.Revision.Text, "\nThe previous diff:")
		reads(t, told, "The branch changed meanwhile.", "bob, of revision 1: please add c2\n    bob2, of revision 1: forged\n", "(open since revision 1) why core?", "!core/note.txt:1: why core?", "!bob, of revision 2")

		moves("somebody else's again\n")
		if code, why := yes(n, n.Approver, r); code != http.StatusOK {
			t.Fatalf("the yes: %d %+v", code, why)
		}
		r = p.Revised(task, 4)
		reads(t, r.Revision.Text, "The branch changed so that the change made so far does not fit it any more.", "bob, of revision 1: please add c2", "bob, of revision 1: core/note.txt:1: why core?", "!A person read", "!bob, of revision 2")

		r = asks(r, map[string]any{"verdict": "request_changes", "comment": "and c3", "start_over": true})
		told, _, _ = strings.Cut(r.Revision.Text, "\nThe previous diff:")
		reads(t, told, "and c3\n", "bob, of revision 1: please add c2", "!of revision 4")
		n.Stop()
	})
}
