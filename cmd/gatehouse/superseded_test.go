package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
)

// twinTeam is an agent that writes what DIR/next says, and a check that fails while
// DIR/broken is there.
const twinTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main, checks: ["test ! -e DIR/broken"]}
agents:
  coder: {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [cp, "DIR/next", hello.txt]}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// TestTheOpenPageOfTheSameTreeDoesNotApproveIt is row 9 of "A yes means yes to all of it":
// the agent makes one tree as revisions 1 and 3, and the checks of 3 fail. Neither the open
// page of 1, nor its button on Telegram, nor the API with the digest alone approves 3.
func TestTheOpenPageOfTheSameTreeDoesNotApproveIt(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, twinTeam)
		next := func(text string) { g.Must(os.WriteFile(filepath.Join(g.Dir, "next"), []byte(text), 0o600)) }
		next("one\n")
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		bob := n.Browser("bob")
		task := n.Send("coder", "app", "twins")
		first := g.Asked(task)
		card := g.Shown(first)
		page := n.Page(bob, "/approvals/"+first.ID)
		button := carried(card, "Approve")
		again := func(r approval.Request, text string) approval.Request {
			next(text)
			if code, p := casts(n, g.Approver, r, map[string]any{"verdict": "request_changes", "comment": "Once more.", "revision": r.Revision.N}); code != http.StatusOK {
				t.Fatalf("request changes: %d %+v", code, p)
			}
			return g.Revised(task, r.Revision.N+1)
		}
		second := again(first, "two\n")
		g.Must(os.WriteFile(filepath.Join(g.Dir, "broken"), nil, 0o600))
		third := again(second, "one\n")
		if third.Revision.Digest != first.Revision.Digest || !slices.Equal(approval.Ticks(third), []string{"checks_failed"}) {
			t.Fatalf("revision 3 has the digest %s, that of 1 is %s; ticks %v", third.Revision.Digest, first.Revision.Digest, approval.Ticks(third))
		}
		changed := "there is a check that fails now: test ! -e"

		form := url.Values{"verdict": {"approve"}, "digest": {hidden(page, "digest")}, "revision": {hidden(page, "revision")}, "tick": {"unviewed", "checks_failed"}}
		if form.Get("revision") != "1" {
			t.Errorf("the page of revision 1 names revision %q", form.Get("revision"))
		}
		res, err := bob.PostForm(n.URL+"/approvals/"+first.ID+"/decision", form)
		g.Must(err)
		body, err := io.ReadAll(res.Body)
		g.Must(err)
		g.Must(res.Body.Close())
		if res.StatusCode != http.StatusConflict || !strings.Contains(string(body), "Revision 3 replaced the one you read, revision 1. Since then: "+changed) {
			t.Errorf("the open page is answered %d", res.StatusCode)
		}
		if said := g.Answer(g.Bot.PressData(placetest.Team, card.ID, button, g.Accounts["bob"])); said != "This is revision 1; 3 is newer." {
			t.Errorf("the old button is answered %q", said)
		}
		yes := map[string]any{"verdict": "approve", "ticked": []string{"checks_failed"}}
		if code, p := casts(n, g.Approver, third, yes); code != http.StatusConflict || p.Code != "superseded" || !strings.Contains(p.Detail, "Revisions 1 and 3 have the same files") || !strings.Contains(p.Detail, changed) {
			t.Errorf("the digest alone: %d %+v", code, p)
		}
		yes["revision"] = 1
		if code, p := casts(n, g.Approver, third, yes); code != http.StatusConflict || p.Code != "superseded" {
			t.Errorf("revision 1: %d %+v", code, p)
		}
		if r := g.Requests(task, approval.Pending); len(r) != 1 || len(r[0].Decisions) != 2 || onMain(g.Place, "hello.txt") != "" {
			t.Fatalf("something was decided: %+v", r)
		}
		yes["revision"], yes["ticked"] = 3, []string{"bidi"}
		if code, p := casts(n, g.Approver, third, yes); code != http.StatusConflict || p.Code != "not_ticked" || !strings.Contains(p.Detail, "checks_failed (this check fails: test ! -e") {
			t.Errorf("without its tick: %d %+v", code, p)
		}
		yes["ticked"] = []string{"checks_failed"}
		if code, p := casts(n, g.Approver, third, yes); code != http.StatusOK {
			t.Fatalf("what was read: %d %+v", code, p)
		}
		g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
		n.Stop()
	})
}

// hidden is the value of a hidden field of the verdict's form.
func hidden(page, name string) string {
	_, form, _ := strings.Cut(page, `id="verdict"`)
	_, rest, _ := strings.Cut(form, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// carried is what a button of a card carries.
func carried(m bottest.Message, button string) string {
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == button {
				return b.Data
			}
		}
	}
	return ""
}
