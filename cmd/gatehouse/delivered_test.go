package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

const pushingTeam = `
repositories:
  app: {path: "REPO", branch: main, deliver: DELIVER, commit: {name: Ledger Bot, email: bot@ledger.example}}
agents:
  coder: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, "cat; echo x >> x.txt"]}
  lead: {kind: command, protocol: jsonl, command: [sh, -c, 'read task; echo ''{"type":"delegate","to":"coder","text":"add x","ref":"r1"}''; read answer; printf ''{"type":"result","text":"%s"}'' "$(printf %s "$answer" | base64 -w0)"; echo']}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// TestABranchThatWasPushedIsNotCalledLanded: with deliver: branch the yes pushes the
// agent's branch. The page, the chat, Telegram, the command line, the API and the event
// name that branch, main stays where it was, and the commit says who asked and approved.
func TestABranchThatWasPushedIsNotCalledLanded(t *testing.T) {
	t.Parallel()
	s := placetest.NewGate(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.Replace(pushingTeam, "DELIVER", "branch", 1))
	carol := s.Person("carol", people.Auditor)
	n := s.Start(s.Config, "")
	bob := n.Browser("bob")
	s.Link(n, "bob", private)
	before := placetest.Git(t, s.Repo, "rev-parse", "main")
	task := n.Send("coder", "", "add x")
	r := s.Asked(task)
	branch := r.Revision.Branch
	if page := n.Page(bob, "/approvals/"+r.ID); !strings.Contains(page, "<b>"+branch+"</b>; main stays as it is") || !strings.Contains(tagShape.ReplaceAllString(page, ""), "stays as it is in app.") || strings.Contains(page, "lands on") {
		t.Error("before the yes the page does not say what is pushed where")
	}
	if out, _ := s.Cli(n, "review", r.ID); !strings.Contains(out, "yes pushes "+branch+"; main stays as it is") {
		t.Errorf("before the yes review does not say what is pushed where:\n%s", out)
	}
	root := n.Through(task)
	commit := placetest.Git(t, s.Repo, "rev-parse", "refs/heads/"+branch)
	if placetest.Git(t, s.Repo, "rev-parse", "main") != before || root.Result.Commit != commit || root.Result.Pushed != branch {
		t.Fatalf("main moved, or the result names something else: %+v, pushed %s", root.Result, commit)
	}
	if got := placetest.Git(t, s.Repo, "log", "-1", "--format=%an <%ae> %T%n%B", commit); !strings.HasPrefix(got, "Ledger Bot <bot@ledger.example> "+r.Revision.Tree) ||
		!strings.Contains(got, "Requested-by: ann") || !strings.Contains(got, "Approved-by: bob") || !strings.Contains(got, "Gatehouse-Digest: "+r.Revision.Digest) {
		t.Errorf("the commit says\n%s", got)
	}

	short := commit[:7]
	faces := map[string]string{"the review page": n.Page(bob, "/approvals/"+r.ID), "the task's page": n.Page(n.Browser("ann"), "/delegations/"+task), "the chat": n.Page(bob, "/chat?request="+r.ID)}
	for _, args := range [][]string{{"status", task}, {"tree", task}, {"wait", task}, {"review", r.ID}} {
		faces[args[0]], _ = s.Cli(n, args...)
	}
	s.Bot.Say(private, s.Accounts["bob"], "/status "+r.ID, 0)
	s.Bot.Until(s, "the card", func() bool { return len(s.Bot.FromBot(private)) > 1 })
	faces["Telegram"] = s.Bot.Last(private).Text
	for face, text := range faces {
		text = tagShape.ReplaceAllString(text, "")
		if !strings.Contains(text, branch) || strings.Contains(strings.ToLower(text), "landed on main") || strings.Contains(text, "landed "+short) {
			t.Errorf("%s does not say where the change is:\n%s", face, text)
		}
	}
	if listed, _ := s.Cli(n, "approvals", "--state", "all"); !strings.Contains(listed, "✓ pushed") || !strings.Contains(listed, "→ app/"+branch) || strings.Contains(listed, "landed") {
		t.Errorf("the list of requests says\n%s", listed)
	}
	if tree, _ := s.Cli(n, "--token", n.Asker, "tree", task); !strings.Contains(tree, "pushed "+short+" to "+branch) {
		t.Errorf("who may read no requests reads\n%s", tree)
	}
	evidence := tagShape.ReplaceAllString(n.Page(n.Browser("carol"), "/approvals/"+r.ID+"/evidence"), "")
	if !strings.Contains(evidence, "Commit that was pushed") || !strings.Contains(evidence, "pushed · ") || strings.Contains(evidence, "landed · ") {
		t.Errorf("the evidence says\n%s", evidence)
	}
	if today := tagShape.ReplaceAllString(n.Page(bob, "/"), ""); !strings.Contains(today, "pushed") || strings.Contains(today, "landed or") {
		t.Errorf("the overview says\n%s", today)
	}
	for _, filter := range []string{"state:pushed", "state:pushed,pending repository:app", "state:pushed state:landed"} {
		if found, _ := s.Cli(n, append([]string{"--token", carol, "audit", "list"}, strings.Fields(filter)...)...); !strings.Contains(found, "✓ pushed "+short) {
			t.Errorf("%s finds\n%s", filter, found)
		}
	}
	if found, code := s.Cli(n, "--token", carol, "audit", "list", "--", "state:landed", "-state:pushed"); code != 0 || strings.Contains(found, short) {
		t.Errorf("not pushed: %d\n%s", code, found)
	}
	// A list has no room for the branch; the word is there.
	listed, _ := s.Cli(n, "--token", carol, "audit", "list", "repository:app")
	if !strings.Contains(listed, "✓ pushed "+short) || strings.Contains(listed, "landed") {
		t.Errorf("the audit list says\n%s", listed)
	}
	for _, page := range []string{n.Page(bob, "/approvals?state=landed"), n.Page(bob, "/approvals/"+r.ID), n.Page(n.Browser("carol"), "/audit?filter=repository:app")} {
		if !strings.Contains(page, `data-state="pushed"`) || strings.Contains(page, `-ok" data-state="landed"`) || strings.Contains(page, ">Revert<") {
			t.Errorf("a page calls it landed, or offers to revert it:\n%s", tagShape.ReplaceAllString(page, ""))
		}
	}
	var api struct{ Deliver, Branch, Commit string }
	if status, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, n.Approver, nil, &api); err != nil || status != http.StatusOK || api.Deliver != "branch" || api.Branch != branch || api.Commit != commit {
		t.Errorf("the API: %d %+v %v", status, api, err)
	}
	for _, e := range s.Events(task) {
		if e.Type == event.PatchLanded && (!strings.Contains(string(e.Data), `"branch":"`+branch+`"`) || !strings.Contains(string(e.Data), `"deliver":"branch"`)) {
			t.Errorf("the event: %s", e.Data)
		}
	}
	if out, code := s.Cli(n, "--token", n.Asker, "revert", task); code == 0 || !strings.Contains(out, "was pushed to "+branch) {
		t.Errorf("a revert of what is on no target: %d %s", code, out)
	}
	toldThePush(s, n)
}

// toldThePush: a program whose child's change was pushed is told the branch with the commit.
func toldThePush(s *placetest.Gate, n *placetest.Node) {
	s.Helper()
	root := n.Through(n.Send("lead", "", "have x added"))
	if root.Result == nil {
		s.Fatalf("lead ended with %+v", root.Error)
	}
	line, err := base64.StdEncoding.DecodeString(root.Result.Text)
	s.Must(err)
	var told struct{ State, Commit, Pushed string }
	s.Must(json.Unmarshal(line, &told))
	if told.State != "completed" || told.Pushed == "" || told.Commit != placetest.Git(s.T, s.Repo, "rev-parse", "refs/heads/"+told.Pushed) {
		s.Errorf("lead read %s", line)
	}
}

// TestAHostThatRefusesIsQuoted: the words of a protected branch reach whoever approved, who may
// wait for somebody to change that, or give up.
func TestAHostThatRefusesIsQuoted(t *testing.T) {
	t.Parallel()
	s := placetest.NewGate(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.NewReplacer("DELIVER", "merge", "REPO", "DIR/hub.git").Replace(pushingTeam))
	hub := filepath.Join(s.Dir, "hub.git")
	placetest.Git(t, "", "clone", "-q", "--bare", s.Repo, hub)
	hook := "#!/bin/sh\necho 'GH006: Protected branch update failed.' >&2\necho 'At least 1 approving review is required.' >&2\nexit 1\n"
	s.Must(os.WriteFile(filepath.Join(hub, "hooks", "pre-receive"), []byte(hook), 0o700)) //nolint:gosec // a hook runs
	n := s.Start(s.Config, "")
	task := n.Send("coder", "", "add x")
	r := s.Asked(task)
	if status, err := n.Decide(r); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	s.Until("the landing is held up", func() bool { return s.Root(task).Work.Problem != "" })
	root := s.Root(task)
	says := n.Page(n.Browser("bob"), "/approvals/"+r.ID)
	if root.State != orchestrator.Landing || !strings.Contains(says, "GH006: Protected branch update failed. At least 1 approving review is required.") || !strings.Contains(says, "deliver: branch") {
		t.Errorf("the task is %s, and it waits for %q", root.State, root.Work.Problem)
	}
	if tree, _ := s.Cli(n, "tree", task); !strings.Contains(tree, "GH006") {
		t.Errorf("the tree does not say why:\n%s", tree)
	}
	if waited, code := s.Cli(n, "wait", task, "--timeout", "1s"); code != console.ExitTimeout || !strings.Contains(waited, "has not ended after 1s. Its landing is held up: ") || !strings.Contains(waited, "gatehouse retry") {
		t.Errorf("out of time, wait says %d\n%s", code, waited)
	}
	if home := n.Page(n.Browser("bob"), "/"); !strings.Contains(home, "1 approved change of app waits to land; something is in its way") {
		t.Error("the overview does not say that a landing is held up")
	}
	if got := s.Requests(task, approval.Approved); len(got) != 1 {
		t.Errorf("the approval stands no more")
	}
	// Nothing was pushed, so it can be cancelled while it waits for somebody to change that;
	// not in the moment in which it is tried once more.
	s.Until("the cancel is taken", func() bool {
		status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+root.ID+"/cancel", s.Asker, nil, nil)
		if err != nil || status != http.StatusOK && status != http.StatusConflict {
			t.Fatalf("the cancel is answered %d, %v", status, err)
		}
		return status == http.StatusOK
	})
	if root := s.Root(task); root.State != orchestrator.Cancelled {
		t.Errorf("the task is %s", root.State)
	}
}
