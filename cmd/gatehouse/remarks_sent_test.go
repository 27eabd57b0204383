package main

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
)

// remarks saves a comment on line 1 of the note, as the page's form does.
func remarks(n *placetest.Node, c *http.Client, r approval.Request, text string) {
	n.Helper()
	res, err := c.PostForm(n.URL+"/approvals/"+r.ID+"/drafts", url.Values{"do": {"save"}, "path": {"core/note.txt"}, "side": {"R"}, "line": {"1"},
		"revision": {strconv.Itoa(r.Revision.N)}, "at": {"F1R1"}, "text": {text}})
	n.Must(err)
	n.Must(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		n.Fatalf("saving a comment: %s", res.Status)
	}
}

// TestSavedCommentsGoWithEveryVerdict: bob has written a comment on a line. Whatever he says
// then, and wherever, it is on the request
// and in its evidence. Only
// an API that says so leaves it where it was.
func TestSavedCommentsGoWithEveryVerdict(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, settled("", ""))
		n := p.Start(p.Config, "")
		bob := n.Browser("bob")
		api := func(verdict string, take any) func(approval.Request) int {
			return func(r approval.Request) int {
				body := map[string]any{"verdict": verdict, "revision": r.Revision.N, "ticked": approval.Ticks(r), "comment": "said"}
				if take != nil {
					body["take_drafts"] = take
				}
				code, _ := casts(n, n.Approver, r, body)
				return code
			}
		}
		form := func(at, verdict string) func(approval.Request) int {
			return func(r approval.Request) int { code, _ := n.Say(bob, at, r, verdict, "said"); return code }
		}
		for name, story := range map[string]struct {
			say  func(approval.Request) int
			left int
		}{
			"a yes on the page": {form("/approvals/", "approve"), 0}, "a no on the page": {form("/approvals/", "reject"), 0},
			"a yes in the chat": {form("/chat/approvals/", "approve"), 0}, "a yes by the API": {api("approve", nil), 0},
			"changes by the API": {api("request_changes", nil), 0}, "a no that leaves them": {api("reject", false), 1},
		} {
			r := p.Asked(n.Send("coder", "app", name))
			words := "needs a line " + strings.ReplaceAll(name, " ", "-")
			remarks(n, bob, r, words)
			if page := n.Page(bob, "/approvals/"+r.ID); !strings.Contains(page, "go with your verdict") {
				t.Errorf("%s: the page does not say where the comment goes", name)
			}
			if code := story.say(r); code != http.StatusOK {
				t.Fatalf("%s: %d", name, code)
			}
			if name != "changes by the API" { // the next one is made on what landed
				p.Until("the end of "+name, func() bool { return p.Root(r.TaskID).State.Ended() })
			}
			now, err := p.Store.Request(t.Context(), r.ID)
			p.Must(err)
			left, err := p.Store.Drafts(t.Context(), now.Decisions[0].UserID, r.ID)
			p.Must(err)
			if sent := now.Decisions[0].Comments; len(sent) != 1-story.left || len(left) != story.left {
				t.Errorf("%s: %d sent, %d left", name, len(sent), len(left))
				continue
			}
			if story.left > 0 {
				continue
			}
			if c := now.Decisions[0].Comments[0]; c.Text != words || c.Path != "core/note.txt" || c.Line != 1 || c.Code != "Do "+name {
				t.Errorf("%s: sent as %+v", name, c)
			}
			for _, path := range []string{"/approvals/" + r.ID, "/approvals/" + r.ID + "/evidence"} {
				if !strings.Contains(n.Page(bob, path), words) {
					t.Errorf("%s: %s lacks the comment", name, path)
				}
			}
		}
		n.Stop()
	})
}
