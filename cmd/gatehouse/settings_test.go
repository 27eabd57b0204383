package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// settledTeam is one agent that adds a file, with what a story changes in SETTINGS and RULES.
const settledTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main SETTINGS}
agents:
  coder:
    kind: command
    repository: app
    command: [sh, -c, 'mkdir -p core; cat > core/note.txt']
groups: {maintainers: [cleo, dora]}
RULES
`

// settled is the text of that team.
func settled(settings, rules string) string {
	return strings.NewReplacer("SETTINGS", settings, "RULES", rules).Replace(settledTeam)
}

// reload writes another configuration and has the server take it.
func (n *node) reload(text string) {
	n.Helper()
	n.configure("one", text)
	code, err := n.call(http.MethodPost, "/api/v1/config/reload", n.asker, nil, nil)
	if n.must(err); code != http.StatusOK {
		n.Fatalf("the new configuration: %d", code)
	}
}

// yes casts a yes with every tick.
func (n *node) yes(token string, r approval.Request) (int, notCounted) {
	code, p := n.casts(token, r, map[string]any{"verdict": "approve", "revision": r.Revision.N, "ticked": approval.Ticks(r)})
	return code, notCounted{p.Code, p.Detail}
}

// notCounted is why a verdict did not count.
type notCounted struct{ code, detail string }

// TestAYesToABranchDoesNotMoveMain: people said yes to a push of the agent's branch. When
// the repository is delivered by merge by then, they are asked about that.
func TestAYesToABranchDoesNotMoveMain(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		p := newPlace(t, database, settled(", deliver: branch", ""))
		n := p.start(p.config, "")
		before := git(t, p.repo, "rev-parse", "main")
		task := n.send("coder", "app", "branch")
		r := p.asked(task)
		n.reload(settled("", ""))
		if code, why := n.yes(n.approver, r); code != http.StatusOK {
			t.Fatalf("the yes: %d %+v", code, why)
		}
		again := p.revised(task, 2)
		if again.Revision.Deliver != "merge" || again.Revision.Digest == r.Revision.Digest || again.Revision.Tree != r.Revision.Tree {
			t.Errorf("what is asked now: %+v", again.Revision)
		}
		if now := git(t, p.repo, "rev-parse", "main"); now != before {
			t.Error("main moved by a yes to a branch")
		}
		if code, why := n.yes(n.approver, again); code != http.StatusOK {
			t.Fatalf("the yes to the merge: %d %+v", code, why)
		}
		p.until("the landing", func() bool { return p.root(task).State == orchestrator.Completed })
		if git(t, p.repo, "rev-parse", "main") == before {
			t.Error("the yes to the merge landed nothing")
		}
		n.stop()
	})
}

// TestRulesThatBecameStricterHoldForWhatIsAsked: a question of before is decided by the
// rules of now, where these ask more, and the history says so.
func TestRulesThatBecameStricterHoldForWhatIsAsked(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		p := newPlace(t, database, settled("", ""))
		cleo, dora := p.person("cleo", people.Approver), p.person("dora", people.Approver)
		n := p.start(p.config, "")
		task := n.send("coder", "app", "core")
		r := p.asked(task)

		n.reload(settled("", "approval: {rules: [{name: frozen, when: 'true', deny: true}]}"))
		if code, why := n.yes(n.approver, r); code != http.StatusForbidden || !strings.Contains(why.detail, `rule "frozen" denies it now`) {
			t.Fatalf("a yes to what is denied now: %d %+v", code, why)
		}
		n.reload(settled("", `approval: {rules: [{name: core, when: 'any(patch.files, .path startsWith "core/")', need: 2, from: [maintainers]}]}`))
		if code, why := n.yes(n.approver, r); code != http.StatusForbidden {
			t.Fatalf("bob, who is no maintainer: %d %+v", code, why)
		}
		if code, why := n.yes(cleo, r); code != http.StatusOK {
			t.Fatalf("the first maintainer: %d %+v", code, why)
		}
		now := p.requests(task)[0]
		if now.State != approval.Pending || now.Rule.Name != "core" || now.Rule.Need != 2 {
			t.Fatalf("after one yes: %s under %+v", now.State, now.Rule)
		}
		n.reload(settled("", "")) // what asks less changes nothing: nobody is asked less
		if code, why := n.yes(dora, r); code != http.StatusOK {
			t.Fatalf("the second maintainer: %d %+v", code, why)
		}
		p.until("the landing", func() bool { return p.root(task).State == orchestrator.Completed })
		told := 0
		for _, e := range p.events(task) {
			if strings.Contains(string(e.Data), `"rule_changed"`) {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the history tells of %d changed rules, want 1", told)
		}
		n.stop()
	})
}

// TestWhatIsProtectedSinceTheYesDoesNotLand: the landing waits, with the approval standing,
// and goes on when the setting is taken back.
func TestWhatIsProtectedSinceTheYesDoesNotLand(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "sqlite:"+t.TempDir()+"/db", settled("", ""))
	n := p.start(p.config, "")
	task := n.send("coder", "app", "core")
	r := p.asked(task)
	n.reload(settled(`, protect: ["core/**"]`, ""))
	if code, why := n.yes(n.approver, r); code != http.StatusOK {
		t.Fatalf("the yes: %d %+v", code, why)
	}
	p.until("the landing to wait", func() bool { return strings.Contains(p.root(task).Work.Problem, "app protects core/note.txt") })
	if merges := git(t, p.repo, "log", "--merges", "--format=%H", "main"); merges != "" {
		t.Errorf("it landed: %s", merges)
	}
	n.reload(settled("", ""))
	p.until("the landing", func() bool { return p.root(task).State == orchestrator.Completed })
	n.stop()
}

// TestAPassThatTheRulesTakeBackIsAsked: a rule passed it, and the landing waits. When the
// rules want a person by then, a person is asked.
func TestAPassThatTheRulesTakeBackIsAsked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "sqlite:"+t.TempDir()+"/db", settled("", "approval: {rules: [{name: all, when: 'true', need: 0}]}"))
	p.must(os.MkdirAll(p.repo+"/core", 0o700))
	p.must(os.WriteFile(p.repo+"/core/note.txt", []byte("in the way"), 0o600))
	n := p.start(p.config, "")
	task := n.send("coder", "app", "core")
	p.until("the landing to wait", func() bool { return p.root(task).Work.Problem != "" })
	n.reload(settled("", ""))
	p.must(os.RemoveAll(p.repo + "/core"))
	if code, err := n.call(http.MethodPost, "/api/v1/delegations/"+task+"/retry", n.asker, nil, nil); err != nil || code >= http.StatusBadRequest && code != http.StatusConflict { // 409: it tried by itself
		t.Fatalf("trying again: %d, %v", code, err)
	}
	r := p.asked(task)
	if r.Rule.Name != "default" || r.Rule.Need != 1 {
		t.Errorf("it is asked under %+v", r.Rule)
	}
	if code, why := n.yes(n.approver, r); code != http.StatusOK {
		t.Fatalf("bob's yes: %d %+v", code, why)
	}
	p.until("the landing", func() bool { return p.root(task).State == orchestrator.Completed })
	if message := git(t, p.repo, "log", "-1", "--format=%B", "main"); !strings.Contains(message, "Approved-by: bob") || strings.Contains(message, "rule:") {
		t.Errorf("the merge says %q", message)
	}
	n.stop()
}
