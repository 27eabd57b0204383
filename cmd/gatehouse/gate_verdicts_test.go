package main

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/approval"
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
func (n *node) casts(token string, r approval.Request, body map[string]any) (int, problem) {
	n.Helper()
	body["digest"] = r.Revision.Digest
	var p problem
	code, err := n.call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", token, body, &p)
	n.must(err)
	return code, p
}

// revised waits until a request of a task is pending in that revision.
func (p *place) revised(taskID string, n int) approval.Request {
	p.Helper()
	var r approval.Request
	p.until("the next revision", func() bool {
		all := p.requests(taskID, approval.Pending)
		if len(all) != 1 || all[0].Revision.N != n {
			return false
		}
		r = all[0]
		return true
	})
	return r
}

// onMain is a file as it landed, "" when it did not.
func (p *place) onMain(path string) string {
	p.Helper()
	if !strings.Contains(git(p.T, p.repo, "ls-tree", "--name-only", "main"), path) {
		return ""
	}
	return git(p.T, p.repo, "show", "main:"+path)
}

// TestChangesAskedForReachTheAgent: two comments on lines are in the agent's next input,
// the buttons of the old revision are dead, and the new one is approved in Telegram.
func TestChangesAskedForReachTheAgent(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		g := newGate(t, database, verdictTeam)
		n := g.start(g.config, "")
		g.link(n, "bob", 1002)
		task := n.send("coder", "app", "comments")
		r := g.asked(task)
		old := g.shown(r)
		var approve string
		for _, row := range old.Buttons {
			for _, b := range row {
				if b.Text == "Approve" {
					approve = b.Data
				}
			}
		}
		code, p := n.casts(g.approver, r, map[string]any{"verdict": "request_changes", "comment": "Nearly.", "comments": []map[string]any{
			{"path": "a.txt", "line": 2, "text": "Write TWO in capitals."}, {"path": "b.txt", "line": 3, "text": "Leave three out."}}})
		if code != http.StatusOK {
			t.Fatalf("request changes: %d %+v", code, p)
		}
		second := g.revised(task, 2)
		m := g.shown(second)
		if said := g.answer(g.bot.PressData(team, old.ID, approve, g.accounts["bob"])); said != "This is revision 1; 2 is newer." {
			t.Errorf("a button of the old revision is answered %q", said)
		}
		if second.State != approval.Pending || len(g.requests(task, approval.Pending)) != 1 {
			t.Errorf("the old button decided something: %+v", second)
		}
		if said := g.press(m, "Approve", "bob"); !strings.HasPrefix(said, "Approved") {
			t.Fatalf("the press is answered %q", said)
		}
		g.until("the landing", func() bool { return g.root(task).State == orchestrator.Completed })
		input := g.onMain("input.txt")
		for _, want := range []string{"Nearly.", "a.txt:2", "two", "Write TWO in capitals.", "b.txt:3", "three", "Leave three out.", "+two"} {
			if !strings.Contains(input, want) {
				t.Errorf("the agent's second input has no %q:\n%s", want, input)
			}
		}
		n.stop()
	})
}

// TestSomeFilesLand: of three files two are approved, and exactly these land.
func TestSomeFilesLand(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		g := newGate(t, database, verdictTeam)
		n := g.start(g.config, "")
		task := n.send("coder", "app", "files")
		r := g.asked(task)
		if code, p := n.casts(g.approver, r, map[string]any{"verdict": "approve", "files": []string{"a.txt", "nothing.txt"}}); code != http.StatusBadRequest || !strings.Contains(p.Detail, "nothing.txt") {
			t.Fatalf("a file that is not there: %d %+v", code, p)
		}
		if code, p := n.casts(g.approver, r, map[string]any{"verdict": "approve", "files": []string{"a.txt", "b.txt"}}); code != http.StatusOK {
			t.Fatalf("some files: %d %+v", code, p)
		}
		g.until("the landing", func() bool { return g.root(task).State == orchestrator.Completed })
		if g.onMain("a.txt") == "" || g.onMain("b.txt") == "" || g.onMain("input.txt") != "" {
			t.Errorf("on main: %s", git(t, g.repo, "ls-tree", "--name-only", "main"))
		}
		landed := g.requests(task, approval.Landed)
		if len(landed) != 1 || landed[0].Revision.N != 2 || landed[0].Revision.Made != approval.MadeByFiles || len(landed[0].Revision.Declined) != 1 {
			t.Errorf("the request: %+v", landed)
		}
		n.stop()
	})
}

// TestWhoEditsDoesNotApprove: bob edits a file and cannot approve it; cleo can, and what
// bob wrote lands.
func TestWhoEditsDoesNotApprove(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		g := newGate(t, database, verdictTeam)
		dora := g.person("dora", people.Approver)
		n := g.start(g.config, "")
		task := n.send("coder", "app", "edit")
		r := g.asked(task)
		if code, p := n.casts(g.approver, r, map[string]any{"verdict": "edit", "edits": []map[string]any{{"path": "a.txt", "text": "one\nTWO\nthree\n"}}}); code != http.StatusOK {
			t.Fatalf("edit: %d %+v", code, p)
		}
		second := g.revised(task, 2)
		if code, p := n.casts(g.approver, second, map[string]any{"verdict": "approve"}); code != http.StatusForbidden || p.Code != "four_eyes" || !strings.Contains(p.Detail, "You edited this revision") {
			t.Errorf("the editor's own yes: %d %+v", code, p)
		}
		if code, p := n.casts(dora, second, map[string]any{"verdict": "approve"}); code != http.StatusOK {
			t.Fatalf("another's yes: %d %+v", code, p)
		}
		g.until("the landing", func() bool { return g.root(task).State == orchestrator.Completed })
		if got := g.onMain("a.txt"); got != "one\nTWO\nthree" {
			t.Errorf("a.txt on main: %q", got)
		}
		n.stop()
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
	anyPlace(t, func(t *testing.T, database string) {
		g := newGate(t, database, seatsTeam)
		dora := g.person("dora", people.Approver)
		emil := g.person("emil", people.Approver)
		ann := g.person("anna", people.Operator, people.Approver)
		n := g.start(g.config, "")
		g.link(n, "bob", 1002)
		task := n.send("coder", "app", "two") // by ann's token
		r := g.asked(task)
		m := g.shown(r)
		for name, c := range map[string]struct{ token, code, says string }{
			"the owner of the agent":  {dora, "four_eyes", "You own the agent coder"},
			"somebody of no group":    {emil, "not_an_approver", "core or leads"},
			"another without a group": {ann, "not_an_approver", "core or leads"},
		} {
			if code, p := n.casts(c.token, r, map[string]any{"verdict": "approve"}); code != http.StatusForbidden || p.Code != c.code || !strings.Contains(p.Detail, c.says) {
				t.Errorf("%s: %d %+v", name, code, p)
			}
		}
		if said := g.press(m, "Approve", "bob"); !strings.Contains(said, "1 of 2") && !strings.Contains(said, "1 more") {
			t.Errorf("the first yes is answered %q", said)
		}
		// The same person on the web is the same person.
		if code, p := n.casts(g.approver, r, map[string]any{"verdict": "approve"}); code != http.StatusConflict || !strings.Contains(p.Detail, "a person counts once") {
			t.Errorf("bob's second yes: %d %+v", code, p)
		}
		// cleo is away, and emil has her seat.
		if out, code := g.cli(n, "--config", g.config, "user", "away", "cleo", "--to", "emil", "--until", "1h"); code != 0 {
			t.Fatalf("away: %d %s", code, out)
		}
		if code, p := n.casts(emil, r, map[string]any{"verdict": "approve"}); code != http.StatusOK {
			t.Fatalf("the deputy's yes: %d %+v", code, p)
		}
		g.until("the landing", func() bool { return g.root(task).State == orchestrator.Completed })
		landed := g.requests(task, approval.Landed)
		if len(landed) != 1 || len(landed[0].Decisions) != 2 || landed[0].Decisions[1].For != "cleo" {
			t.Errorf("decisions: %+v", landed)
		}
		if merge := git(t, g.repo, "log", "-1", "--format=%B", "main"); !strings.Contains(merge, "Approved-by: bob") || !strings.Contains(merge, "Approved-by: emil") {
			t.Errorf("the merge says:\n%s", merge)
		}
		n.stop()
	})
}
