package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/people"
)

// goingOnTeam is an agent of each kind that works on files. The first run of each makes two
// files; a later one makes what it was asked for, and nothing else.
const goingOnTeam = `
engine: {workers: 2, lease: 10m}
repositories:
  app: {path: "REPO", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  model: {kind: llm, model: local/one, repository: app, max_turns: 3}
  program:
    kind: command
    repository: app
    command: [sh, -c, 'cat > /dev/null; if [ -f one.txt ]; then echo fixed > three.txt; else echo 1 > one.txt; echo 2 > two.txt; fi; echo "revision $GATEHOUSE_REVISION"']
  liner:
    kind: command
    protocol: jsonl
    repository: app
    command: [sh, -c, 'read task; if [ -f one.txt ]; then echo fixed > three.txt; else echo 1 > one.txt; echo 2 > two.txt; fi; n=$(echo "$task" | sed "s/.*revision.:\([0-9]*\)}.*/\1/"); echo "{\"type\":\"result\",\"text\":\"revision $n\",\"data\":$task}"']
  patcher:
    kind: command
    protocol: jsonl
    repository: app
    command: [sh, -c, 'read task; if [ -f one.txt ]; then p="--- /dev/null\\n+++ b/three.txt\\n@@ -0,0 +1 @@\\n+fixed\\n--- a/one.txt\\n+++ b/one.txt\\n@@ -1 +1 @@\\n-1\\n+one\\n"; else p="--- /dev/null\\n+++ b/one.txt\\n@@ -0,0 +1 @@\\n+1\\n--- /dev/null\\n+++ b/two.txt\\n@@ -0,0 +1 @@\\n+2\\n"; fi; printf "%s\n" "{\"type\":\"result\",\"text\":\"patched\",\"patch\":\"$p\"}"']
`

// worksOn plays the model: two files first, then one more for each thing that it is asked.
func worksOn(a modeltest.Ask) modeltest.Answer {
	use := func(name, text string) modeltest.Call {
		return modeltest.ToolCall("write_file", map[string]any{"path": name, "content": text})
	}
	switch last := a.Last().Text(); {
	case a.Turn == 1:
		return modeltest.Answer{Calls: []modeltest.Call{use("one.txt", "1\n"), use("two.txt", "2\n")}}
	case strings.Contains(last, "Add three"):
		return modeltest.Answer{Calls: []modeltest.Call{use("three.txt", "fixed\n"), modeltest.ToolCall("read_file", map[string]any{"path": "one.txt"})}}
	}
	return modeltest.Say("done")
}

// files are the paths that a revision changes.
func files(r approval.Request) string {
	var all []string
	for _, f := range r.Revision.Files {
		all = append(all, f.Path)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// asks has bob request changes, and waits for what comes of it.
func asksFor(n *placetest.Node, r approval.Request, comment string, startOver bool) approval.Request {
	n.Helper()
	if code, p := casts(n, n.Approver, r, map[string]any{"verdict": "request_changes", "comment": comment, "revision": r.Revision.N, "start_over": startOver}); code != http.StatusOK {
		n.Fatalf("the verdict on revision %d: %d %+v", r.Revision.N, code, p)
	}
	return n.Revised(r.TaskID, r.Revision.N+1)
}

// TestAfterRequestChangesTheWorkGoesOn: revision 2 of a change of two files has both of
// them and what was asked for, for a program, a model, jsonl and a patch in place of files;
// start_over begins from the base.
func TestAfterRequestChangesTheWorkGoesOn(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		fake := modeltest.Start(worksOn)
		t.Cleanup(fake.Close)
		p := placetest.New(t, database, strings.ReplaceAll(goingOnTeam, "BASE", fake.OpenAI()))
		n := p.Start(p.Config, "")
		for _, to := range []string{"program", "liner", "patcher", "model"} {
			first := p.Asked(n.Send(to, "app", to))
			if got := files(first); got != "one.txt two.txt" {
				t.Fatalf("%s made %s at first", to, got)
			}
			// The branch moves meanwhile; the change stays one against its first base.
			placetest.Git(t, p.Repo, "commit", "-q", "--allow-empty", "-m", "meanwhile")
			second := asksFor(n, first, "Add three.", false)
			if got := files(second); got != "one.txt three.txt two.txt" || second.Revision.Base != first.Revision.Base {
				t.Errorf("revision 2 of %s has %s on %+v, want the first change, too, on %+v", to, got, second.Revision.Base, first.Revision.Base)
			}
			third := asksFor(n, second, "All anew.", true)
			if told := first.Revision.Text + ", " + second.Revision.Text + ", " + third.Revision.Text; (to == "program" || to == "liner") && told != "revision 1, revision 2, revision 3" {
				t.Errorf("%s was told that it makes %s", to, told)
			}
			if files(third) != "one.txt two.txt" || third.Revision.Base.Commit == first.Revision.Base.Commit {
				t.Errorf("started over, %s made %s on %+v", to, files(third), third.Revision.Base)
			}
		}
		conversationsOf(p, fake)
	})
}

// conversationsOf checks what the model was told: after the first verdict it was asked in
// its conversation, after the second in a new one.
func conversationsOf(p *placetest.Place, fake *modeltest.Server) {
	p.Helper()
	var said []string
	for _, a := range fake.Asks() {
		if a.Last().Role == "user" {
			said = append(said, a.Last().Text())
		}
	}
	if len(said) != 3 || !strings.HasPrefix(said[1], "A person read the changes") || !strings.Contains(said[1], "Add three.") || strings.Contains(said[1], "The previous diff") ||
		!strings.Contains(said[1], "The files are those of revision 1: go on from there.") {
		p.Errorf("the model was told:\n%s", strings.Join(said, "\n---\n"))
	}
	if asks := fake.Asks(); len(asks) != 6 || len(asks[2].Messages) != 5 || len(asks[4].Messages) != 1 || !strings.Contains(said[2], "Start over") {
		p.Errorf("%d calls of the model, told: %s", len(asks), said[len(said)-1])
	}
}

// TestAnEditedRevisionGoesOn: what a person edited is in the next revision, the agent is
// told, and the editor may still not approve it. A kill in the middle loses none of it.
func TestAnEditedRevisionGoesOn(t *testing.T) {
	t.Parallel()
	fake := modeltest.Start(worksOn)
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.ReplaceAll(goingOnTeam, "BASE", fake.OpenAI()))
	cleo := p.Person("cleo", people.Approver)
	n := p.Start(p.Config, "")
	for _, to := range []string{"program", "model"} {
		r := p.Asked(n.Send(to, "app", to))
		edit := map[string]any{"verdict": "edit", "revision": 1, "edits": []map[string]any{{"path": "one.txt", "text": "bob's\n"}}}
		if code, problem := casts(n, n.Approver, r, edit); code != http.StatusOK {
			t.Fatalf("the edit: %d %+v", code, problem)
		}
		r = p.Revised(r.TaskID, 2)
		if code, problem := casts(n, cleo, r, map[string]any{"verdict": "request_changes", "revision": 2, "comment": "Add three."}); code != http.StatusOK {
			t.Fatalf("cleo's verdict: %d %+v", code, problem)
		}
		r = p.Revised(r.TaskID, 3)
		if files(r) != "one.txt three.txt two.txt" {
			t.Errorf("revision 3 of %s has %s", to, files(r))
		}
		barred(n, "bob", n.Approver, r, "edited")
		if code, problem := casts(n, cleo, r, map[string]any{"verdict": "approve", "revision": 3, "ticked": approval.Ticks(r)}); code != http.StatusOK {
			t.Fatalf("cleo's yes: %d %+v", code, problem)
		}
		p.Until("the landing", func() bool { return p.Root(r.TaskID).State == orchestrator.Completed })
		if onMain(p, "one.txt") != "bob's" || onMain(p, "three.txt") != "fixed" {
			t.Errorf("%s landed %q and %q", to, onMain(p, "one.txt"), onMain(p, "three.txt"))
		}
		placetest.Git(t, p.Repo, "rm", "-q", "one.txt", "two.txt", "three.txt")
		placetest.Git(t, p.Repo, "commit", "-q", "-m", "away")
	}
	told := fake.Asks()[2].Last().Text()
	if !strings.Contains(told, "with changes that are not yours") || !strings.Contains(told, "The previous diff") {
		t.Errorf("the model was told: %s", told)
	}
}

// TestAKillLosesNothingOfWhatGoesOn: kill -9 in the run after "request changes", of a
// program as it starts and of a model behind its third new turn; the next attempt starts
// from the same place.
func TestAKillLosesNothingOfWhatGoesOn(t *testing.T) {
	t.Parallel()
	for to, point := range map[string]string{"program": "agent started#2", "model": "turn stored#7"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			fake := modeltest.Start(worksOn)
			t.Cleanup(fake.Close)
			p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.ReplaceAll(goingOnTeam, "BASE", fake.OpenAI()))
			n := p.Start(p.Config, point)
			r := p.Asked(n.Send(to, "app", to))
			//nolint:errcheck // the server may die before it answers
			n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", n.Approver, map[string]any{"verdict": "request_changes", "digest": r.Revision.Digest, "revision": 1, "comment": "Add three."}, nil)
			n.Died()
			p.Start(p.Config, "")
			if r = p.Revised(r.TaskID, 2); files(r) != "one.txt three.txt two.txt" {
				t.Errorf("revision 2 has %s", files(r))
			}
			if fake.Repeats() != 0 {
				t.Errorf("%d calls of the model were paid twice", fake.Repeats())
			}
		})
	}
}

// TestStartOverIsSaidInThreePlaces: the command line, the page's form and the API; with
// another verdict it is a mistake. Whoever looks later reads it: in the decision's row, in the
// chat, in the log, on the command line.
func TestStartOverIsSaidInThreePlaces(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.ReplaceAll(goingOnTeam, "BASE", "http://127.0.0.1:1/v1"))
	n := p.Start(p.Config, "")
	r := p.Asked(n.Send("program", "app", "it"))
	if out, code := p.Cli(n, "request-changes", r.ID, "--comment", "Anew.", "--start-over"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if r = p.Revised(r.TaskID, 2); files(r) != "one.txt two.txt" || r.Revision.Text != "revision 2" {
		t.Errorf("started over by the command line: %s, %q", files(r), r.Revision.Text)
	}
	bob := n.Browser("bob")
	if page := n.Page(bob, "/approvals/"+r.ID); !strings.Contains(page, `name="start_over"`) {
		t.Error("the page has no box to start over")
	}
	startedOver(p, n, bob, r, 1)
	res, err := bob.PostForm(n.URL+"/approvals/"+r.ID+"/decision", url.Values{"verdict": {"request_changes"}, "digest": {r.Revision.Digest}, "revision": {"2"}, "comment": {"Anew."}, "start_over": {"1"}})
	p.Must(err)
	res.Body.Close() //nolint:errcheck // its status says all
	if r = p.Revised(r.TaskID, 3); files(r) != "one.txt two.txt" || r.Revision.Text != "revision 3" {
		t.Errorf("started over by the form: %s, %q", files(r), r.Revision.Text)
	}
	if code, said := casts(n, n.Approver, r, map[string]any{"verdict": "approve", "revision": 3, "start_over": true}); code != http.StatusBadRequest || !strings.Contains(said.Detail, "goes with request_changes only") {
		t.Errorf("with a yes: %d %+v", code, said)
	}
	if out, code := p.Cli(n, "request-changes", r.ID, "--comment", "On."); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if r = p.Revised(r.TaskID, 4); files(r) != "one.txt three.txt two.txt" {
		t.Errorf("gone on by the command line: %s", files(r))
	}
	startedOver(p, n, bob, r, 2) // and not 3
}

// startedOver checks that so many decisions of r are told as ones that start over.
func startedOver(p *placetest.Place, n *placetest.Node, bob *http.Client, r approval.Request, want int) {
	p.Helper()
	review, _ := p.Cli(n, "review", r.ID)
	document, _ := p.Cli(n, "review", r.ID, "--json")
	var chat []string
	for _, e := range p.Events(r.TaskID) {
		if said, ok := handlers.ChatLine(e); ok {
			chat = append(chat, said.Text)
		}
	}
	for where, text := range map[string]string{
		"asked for changes, starting over": n.Page(bob, "/approvals/"+r.ID), "asked for changes, starting over, on ": review, `"start_over":true`: document,
		"bob requested changes, starting over: Anew.": strings.Join(chat, "\n"), "asked for changes, starting over: Anew.": n.Page(bob, "/delegations/"+r.TaskID+"?tab=events"),
	} {
		if got := strings.Count(text, where); got != want {
			p.Errorf("%q is said %d times, want %d", where, got, want)
		}
	}
}
