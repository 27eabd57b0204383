package orchestrator_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// TestWhatAChildBringsComesWithItsPeople is the first part of row 5: deps, which bob owns
// and which is approved on the web alone and by two, works under coder on the same
// repository and without a sandbox. Its tree is taken over, and who offers that as coder's
// own hides none of it.
func TestWhatAChildBringsComesWithItsPeople(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder", "deps")...)
		cleo := w.user("cleo", people.Approver)
		dan := w.user("dan", people.Approver)
		sandboxed := func(name string, write agenttest.Script) agenttest.Script {
			return func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
				if err := host.Sandbox(ctx, name); err != nil {
					return agent.Outcome{}, err
				}
				return write(ctx, job, host)
			}
		}
		w.script("deps", sandboxed("none", writes("deps.txt", "1.2.3\n")))
		w.script("coder", sandboxed("bwrap", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if err := hands(ctx, host, "deps", "raise the versions", nil); err != nil {
				return agent.Outcome{}, err
			}
			return writes("code.txt", "code\n")(ctx, job, host)
		}))
		one, two := 1, 2
		rules, problems := policy.CompileRules([]policy.RuleConfig{
			{Name: "deps", When: `agent == "deps"`, Need: &two}, {Name: "rest", When: "true", Need: &one}}, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := w.gateway.Config()
		c.Policy = rules
		c.Agents = map[string]approval.AgentRule{"coder": {Mode: "any", Owner: "ann"}, "deps": {Mode: "web", Owner: "bob"}}
		w.gateway.SetConfig(c)
		w.start()
		root := w.send("coder", "Do it")
		r := w.request(root.TaskID, 1)
		var paths []string
		for _, f := range r.Revision.Files {
			paths = append(paths, f.Path)
		}
		if r.Agent != "coder" || !slices.Equal(paths, []string{"code.txt", "deps.txt"}) {
			t.Fatalf("%s asks about %v", r.Agent, paths)
		}
		if r.Rule.Name != "deps" || r.Rule.Need != 2 || r.Mode != "web" {
			t.Errorf("rule %s needs %d, mode %q", r.Rule.Name, r.Rule.Need, r.Mode)
		}
		if want := []orchestrator.Author{{Agent: "coder", Sandbox: "bwrap"}, {Agent: "deps", Sandbox: "none"}}; !slices.Equal(r.Revision.Authors, want) {
			t.Errorf("authors %+v", r.Revision.Authors)
		}
		said := map[string]string{}
		for _, n := range r.Revision.Notes {
			said[n.Code] += n.Text
		}
		if !strings.Contains(said["no_sandbox"], "ran without a sandbox on this host: deps.") || !strings.Contains(said[policy.NoteOtherAgent], `deps worked on this, too, and for its changes rule "deps" holds`) {
			t.Errorf("notes %v", said)
		}
		if want := (approval.Party{UserID: w.bob.ID, User: "bob", Part: approval.OwnsWorker, Agent: "deps"}); !slices.Contains(r.Lineage, want) || want.Why() != "owns deps, which worked on it" {
			t.Errorf("lineage %+v", r.Lineage)
		}

		_, err := w.gateway.Decide(t.Context(), w.ballot(w.bob, r, approval.Approve))
		w.refused(err, orchestrator.CodeFourEyes, "You own the agent deps, which worked on it")
		chat := w.ballot(cleo, r, approval.Approve)
		chat.Channel = "chat"
		_, err = w.gateway.Decide(t.Context(), chat)
		w.refused(err, orchestrator.CodeForbidden, "on the web")
		w.must(errOnly(w.gateway.Decide(t.Context(), w.ballot(cleo, r, approval.Approve))))
		if w.reread(r.ID).State != approval.Pending {
			t.Fatal("one yes was enough")
		}
		w.must(errOnly(w.gateway.Decide(t.Context(), w.ballot(dan, r, approval.Approve))))
		w.state(root.ID, orchestrator.Completed)
	})
}

// What people make of a change is held against the rules as they are then, whether it is a
// choice of its files or an edit.
func TestAChoiceObeysTheRulesOfNow(t *testing.T) {
	t.Parallel()
	w, root, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, nil)
	app := w.config.Repositories["app"]
	app.Protect = []string{"new.*"}
	w.config.Repositories["app"] = app
	w.engine.SetConfig(w.config)
	_, err := w.some(w.bob, r, "core/a.txt", "new.txt")
	w.refused(err, patch.CodePathProtected, "new.txt")
	_, err = w.edit(w.bob, r, patch.FileEdit{Path: "core/a.txt", Text: "other\n"})
	w.refused(err, patch.CodePathProtected, "new.txt") // it keeps what may not be there any more
	if got := w.reread(r.ID); got.Version != r.Version || len(got.Decisions) != 0 {
		t.Fatalf("a refused choice changed the request: %+v", got)
	}
	w.must(errOnly(w.some(w.bob, r, "core/a.txt", "core/b.txt")))
	w.state(root.ID, orchestrator.Completed)
	if got := w.git("diff", "--name-only", "main^1", "main"); got != "core/a.txt\ncore/b.txt" {
		t.Errorf("landed %q", got)
	}
}
