package main

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// verdictTeam is an agent that writes three files, and keeps what it was given.
const verdictTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    env: {PLACE: MARK}
    command: [sh, -c, 'cat > input.txt; for f in a b; do printf "one\ntwo\nthree\n" > $f.txt; done']
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// casts sends a verdict by the API as the owner of a token.
func casts(n *placetest.Node, token string, r approval.Request, body map[string]any) (int, problem) {
	n.Helper()
	body["digest"] = r.Revision.Digest
	var p problem
	code, err := n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", token, body, &p)
	n.Must(err)
	return code, p
}

// onMain is a file as it landed, "" when it did not.
func onMain(p *placetest.Place, path string) string {
	p.Helper()
	if !strings.Contains(placetest.Git(p.T, p.Repo, "ls-tree", "--name-only", "main"), path) {
		return ""
	}
	return placetest.Git(p.T, p.Repo, "show", "main:"+path)
}

// TestChangesAskedForReachTheAgent: two comments on lines are in the agent's next input,
// the buttons of the old revision are dead, and the new one is approved in Telegram.
func TestChangesAskedForReachTheAgent(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, verdictTeam)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		task := n.Send("coder", "app", "comments")
		r := g.Asked(task)
		old := g.Shown(r)
		var approve string
		for _, row := range old.Buttons {
			for _, b := range row {
				if b.Text == "Approve" {
					approve = b.Data
				}
			}
		}
		code, p := casts(n, g.Approver, r, map[string]any{"verdict": "request_changes", "comment": "Nearly.", "comments": []map[string]any{
			{"path": "a.txt", "line": 2, "text": "Write TWO in capitals."}, {"path": "b.txt", "line": 3, "text": "Leave three out."}}})
		if code != http.StatusOK {
			t.Fatalf("request changes: %d %+v", code, p)
		}
		second := g.Revised(task, 2)
		m := g.Shown(second)
		if said := g.Answer(g.Bot.PressData(placetest.Team, old.ID, approve, g.Accounts["bob"])); said != "This is revision 1; 2 is newer." {
			t.Errorf("a button of the old revision is answered %q", said)
		}
		if second.State != approval.Pending || len(g.Requests(task, approval.Pending)) != 1 {
			t.Errorf("the old button decided something: %+v", second)
		}
		if said := g.Press(m, "Approve", "bob"); !strings.HasPrefix(said, "Approved") {
			t.Fatalf("the press is answered %q", said)
		}
		g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
		input := onMain(g.Place, "input.txt")
		for _, want := range []string{"Nearly.", "a.txt:2", "two", "Write TWO in capitals.", "b.txt:3", "three", "Leave three out.", "+two"} {
			if !strings.Contains(input, want) {
				t.Errorf("the agent's second input has no %q:\n%s", want, input)
			}
		}
		n.Stop()
	})
}

// TestSomeFilesLand: of three files two are approved, and exactly these land.
func TestSomeFilesLand(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, verdictTeam)
		n := g.Start(g.Config, "")
		task := n.Send("coder", "app", "files")
		r := g.Asked(task)
		if code, p := casts(n, g.Approver, r, map[string]any{"verdict": "approve", "files": []string{"a.txt", "nothing.txt"}}); code != http.StatusBadRequest || !strings.Contains(p.Detail, "nothing.txt") {
			t.Fatalf("a file that is not there: %d %+v", code, p)
		}
		if code, p := casts(n, g.Approver, r, map[string]any{"verdict": "approve", "files": []string{"a.txt", "b.txt"}}); code != http.StatusOK {
			t.Fatalf("some files: %d %+v", code, p)
		}
		g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
		if onMain(g.Place, "a.txt") == "" || onMain(g.Place, "b.txt") == "" || onMain(g.Place, "input.txt") != "" {
			t.Errorf("on main: %s", placetest.Git(t, g.Repo, "ls-tree", "--name-only", "main"))
		}
		landed := g.Requests(task, approval.Landed)
		if len(landed) != 1 || landed[0].Revision.N != 2 || landed[0].Revision.Made != approval.MadeByFiles || len(landed[0].Revision.Declined) != 1 {
			t.Errorf("the request: %+v", landed)
		}
		n.Stop()
	})
}

// TestWhoEditsDoesNotApprove: bob edits a file and cannot approve it; cleo can, and what
// bob wrote lands.
func TestWhoEditsDoesNotApprove(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, verdictTeam)
		dora := g.Person("dora", people.Approver)
		n := g.Start(g.Config, "")
		task := n.Send("coder", "app", "edit")
		r := g.Asked(task)
		if code, p := casts(n, g.Approver, r, map[string]any{"verdict": "edit", "edits": []map[string]any{{"path": "a.txt", "text": "one\nTWO\nthree\n"}}}); code != http.StatusOK {
			t.Fatalf("edit: %d %+v", code, p)
		}
		second := g.Revised(task, 2)
		if code, p := casts(n, g.Approver, second, map[string]any{"verdict": "approve"}); code != http.StatusForbidden || p.Code != "four_eyes" || !strings.Contains(p.Detail, "You edited this revision") {
			t.Errorf("the editor's own yes: %d %+v", code, p)
		}
		if code, p := casts(n, dora, second, map[string]any{"verdict": "approve"}); code != http.StatusOK {
			t.Fatalf("another's yes: %d %+v", code, p)
		}
		g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
		if got := onMain(g.Place, "a.txt"); got != "one\nTWO\nthree" {
			t.Errorf("a.txt on main: %q", got)
		}
		n.Stop()
	})
}

// seatsTeam needs one yes of each of two groups' people, two in all.
const seatsTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder: {kind: command, repository: app, owner: dora, env: {PLACE: MARK}, command: [sh, -c, 'cat > "note-$GATEHOUSE_TASK_ID.txt"']}
approval:
  rules: [{name: two, when: "true", need: 2, from: [core, leads]}]
groups: {core: [ann, bob, dora], leads: [cleo]}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// TestTwoPeopleOfTwoGroups: two yeses are two people, wherever they say them; who owns the
// token or the agent is not one of them, and who is away is spoken for by one other.
func TestTwoPeopleOfTwoGroups(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, seatsTeam)
		dora := g.Person("dora", people.Approver)
		emil := g.Person("emil", people.Approver)
		ann := g.Person("anna", people.Operator, people.Approver)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		task := n.Send("coder", "app", "two") // by ann's token
		r := g.Asked(task)
		m := g.Shown(r)
		for name, c := range map[string]struct{ token, code, says string }{
			"the owner of the agent":  {dora, "four_eyes", "You own the agent coder"},
			"somebody of no group":    {emil, "not_an_approver", "core or leads"},
			"another without a group": {ann, "not_an_approver", "core or leads"},
		} {
			if code, p := casts(n, c.token, r, map[string]any{"verdict": "approve"}); code != http.StatusForbidden || p.Code != c.code || !strings.Contains(p.Detail, c.says) {
				t.Errorf("%s: %d %+v", name, code, p)
			}
		}
		if said := g.Press(m, "Approve", "bob"); !strings.Contains(said, "1 of 2") && !strings.Contains(said, "1 more") {
			t.Errorf("the first yes is answered %q", said)
		}
		// The same person on the web is the same person.
		if code, p := casts(n, g.Approver, r, map[string]any{"verdict": "approve"}); code != http.StatusConflict || !strings.Contains(p.Detail, "a person counts once") {
			t.Errorf("bob's second yes: %d %+v", code, p)
		}
		// cleo is away, and emil has her seat.
		if out, code := g.Cli(n, "--config", g.Config, "user", "away", "cleo", "--to", "emil", "--until", "1h"); code != 0 {
			t.Fatalf("away: %d %s", code, out)
		}
		if code, p := casts(n, emil, r, map[string]any{"verdict": "approve"}); code != http.StatusOK {
			t.Fatalf("the deputy's yes: %d %+v", code, p)
		}
		g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
		landed := g.Requests(task, approval.Landed)
		if len(landed) != 1 || len(landed[0].Decisions) != 2 || landed[0].Decisions[1].For != "cleo" {
			t.Errorf("decisions: %+v", landed)
		}
		if merge := placetest.Git(t, g.Repo, "log", "-1", "--format=%B", "main"); !strings.Contains(merge, "Approved-by: bob") || !strings.Contains(merge, "Approved-by: emil") {
			t.Errorf("the merge says:\n%s", merge)
		}
		n.Stop()
	})
}
