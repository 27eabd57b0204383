package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
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
func reload(n *placetest.Node, text string) {
	n.Helper()
	n.Configure("one", text)
	code, err := n.Call(http.MethodPost, "/api/v1/config/reload", n.Asker, nil, nil)
	if n.Must(err); code != http.StatusOK {
		n.Fatalf("the new configuration: %d", code)
	}
}

// yes casts a yes with every tick.
func yes(n *placetest.Node, token string, r approval.Request) (int, notCounted) {
	code, p := casts(n, token, r, map[string]any{"verdict": "approve", "revision": r.Revision.N, "ticked": approval.Ticks(r)})
	return code, notCounted{p.Code, p.Detail}
}

// notCounted is why a verdict did not count.
type notCounted struct{ code, detail string }

// TestAYesToABranchDoesNotMoveMain: people said yes to a push of the agent's branch. When
// the repository is delivered by merge by then, they are asked about that.
func TestAYesToABranchDoesNotMoveMain(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, settled(", deliver: branch", ""))
		n := p.Start(p.Config, "")
		before := placetest.Git(t, p.Repo, "rev-parse", "main")
		task := n.Send("coder", "app", "branch")
		r := p.Asked(task)
		reload(n, settled("", ""))
		if code, why := yes(n, n.Approver, r); code != http.StatusOK {
			t.Fatalf("the yes: %d %+v", code, why)
		}
		again := p.Revised(task, 2)
		if again.Revision.Deliver != "merge" || again.Revision.Digest == r.Revision.Digest || again.Revision.Tree != r.Revision.Tree {
			t.Errorf("what is asked now: %+v", again.Revision)
		}
		if now := placetest.Git(t, p.Repo, "rev-parse", "main"); now != before {
			t.Error("main moved by a yes to a branch")
		}
		if code, why := yes(n, n.Approver, again); code != http.StatusOK {
			t.Fatalf("the yes to the merge: %d %+v", code, why)
		}
		p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
		if placetest.Git(t, p.Repo, "rev-parse", "main") == before {
			t.Error("the yes to the merge landed nothing")
		}
		n.Stop()
	})
}

// TestRulesThatBecameStricterHoldForWhatIsAsked: a question of before is decided by the
// rules of now, where these ask more, and the history says so.
func TestRulesThatBecameStricterHoldForWhatIsAsked(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, settled("", ""))
		cleo, dora := p.Person("cleo", people.Approver), p.Person("dora", people.Approver)
		n := p.Start(p.Config, "")
		task := n.Send("coder", "app", "core")
		r := p.Asked(task)

		reload(n, settled("", "approval: {rules: [{name: frozen, when: 'true', deny: true}]}"))
		if code, why := yes(n, n.Approver, r); code != http.StatusForbidden || !strings.Contains(why.detail, `rule "frozen" denies it now`) {
			t.Fatalf("a yes to what is denied now: %d %+v", code, why)
		}
		reload(n, settled("", `approval: {rules: [{name: core, when: 'any(patch.files, .path startsWith "core/")', need: 2, from: [maintainers]}]}`))
		if code, why := yes(n, n.Approver, r); code != http.StatusForbidden {
			t.Fatalf("bob, who is no maintainer: %d %+v", code, why)
		}
		if code, why := yes(n, cleo, r); code != http.StatusOK {
			t.Fatalf("the first maintainer: %d %+v", code, why)
		}
		now := p.Requests(task)[0]
		if now.State != approval.Pending || now.Rule.Name != "core" || now.Rule.Need != 2 {
			t.Fatalf("after one yes: %s under %+v", now.State, now.Rule)
		}
		reload(n, settled("", "")) // what asks less changes nothing: nobody is asked less
		if code, why := yes(n, dora, r); code != http.StatusOK {
			t.Fatalf("the second maintainer: %d %+v", code, why)
		}
		p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
		told := 0
		for _, e := range p.Events(task) {
			if strings.Contains(string(e.Data), `"rule_changed"`) {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the history tells of %d changed rules, want 1", told)
		}
		n.Stop()
	})
}

// TestWhatIsProtectedSinceTheYesDoesNotLand: the landing waits, with the approval standing,
// and goes on when the setting is taken back.
func TestWhatIsProtectedSinceTheYesDoesNotLand(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+t.TempDir()+"/db", settled("", ""))
	n := p.Start(p.Config, "")
	task := n.Send("coder", "app", "core")
	r := p.Asked(task)
	reload(n, settled(`, protect: ["core/**"]`, ""))
	if code, why := yes(n, n.Approver, r); code != http.StatusOK {
		t.Fatalf("the yes: %d %+v", code, why)
	}
	p.Until("the landing to wait", func() bool { return strings.Contains(p.Root(task).Work.Problem, "app protects core/note.txt") })
	if merges := placetest.Git(t, p.Repo, "log", "--merges", "--format=%H", "main"); merges != "" {
		t.Errorf("it landed: %s", merges)
	}
	reload(n, settled("", ""))
	p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
	n.Stop()
}

// TestAPassThatTheRulesTakeBackIsAsked: a rule passed it, and the landing waits. When the
// rules want a person by then, a person is asked.
func TestAPassThatTheRulesTakeBackIsAsked(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+t.TempDir()+"/db", settled("", "approval: {rules: [{name: all, when: 'true', need: 0}]}"))
	p.Must(os.MkdirAll(p.Repo+"/core", 0o700))
	p.Must(os.WriteFile(p.Repo+"/core/note.txt", []byte("in the way"), 0o600))
	n := p.Start(p.Config, "")
	task := n.Send("coder", "app", "core")
	p.Until("the landing to wait", func() bool { return p.Root(task).Work.Problem != "" })
	reload(n, settled("", ""))
	p.Must(os.RemoveAll(p.Repo + "/core"))
	if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+task+"/retry", n.Asker, nil, nil); err != nil || code >= http.StatusBadRequest && code != http.StatusConflict { // 409: it tried by itself
		t.Fatalf("trying again: %d, %v", code, err)
	}
	r := p.Asked(task)
	if r.Rule.Name != "default" || r.Rule.Need != 1 {
		t.Errorf("it is asked under %+v", r.Rule)
	}
	if code, why := yes(n, n.Approver, r); code != http.StatusOK {
		t.Fatalf("bob's yes: %d %+v", code, why)
	}
	p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
	if message := placetest.Git(t, p.Repo, "log", "-1", "--format=%B", "main"); !strings.Contains(message, "Approved-by: bob") || strings.Contains(message, "rule:") {
		t.Errorf("the merge says %q", message)
	}
	n.Stop()
}
