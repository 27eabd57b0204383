package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// ownedTeam runs what its tasks say; own is bob's. Its text in a later revision is not run.
const ownedTeam = `
engine: {workers: 4, lease: 10m}
repositories:
  app: {path: "REPO", branch: main}
agents:
  sh: {kind: command, repository: app, sandbox: off, command: [sh, -c, 'in=$(cat); if [ "$GATEHOUSE_REVISION" = 1 ]; then eval "$in"; else echo "$GATEHOUSE_REVISION" > again.txt; fi']}
  own: {kind: command, repository: app, sandbox: off, owner: bob, command: [sh, -c, 'eval "$(head -n 1)"']}
  mid: {kind: command, sandbox: off, command: [sh, -c, 'eval "$(cat)"']}
`

// orders sends a task of ann's and returns its id.
func orders(n *placetest.Node, text string) string {
	n.Helper()
	var sent wire.Submitted
	code, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "sh", Text: text, Repository: "app"}, &sent)
	if n.Must(err); code != http.StatusAccepted {
		n.Fatalf("the task: %d", code)
	}
	return sent.ID
}

// posts does something and has it succeed.
func posts(n *placetest.Node, token, path string, into any) {
	n.Helper()
	if code, err := n.Call(http.MethodPost, "/api/v1"+path, token, nil, into); err != nil || code >= 300 {
		n.Fatalf("%s: %d, %v", path, code, err)
	}
}

// TestAnOwnerStaysOneWhenTheConfigurationChanges: bob's agent made a file. That it is called
// otherwise by the next revision, and is nobody's, makes bob no approver of that file: neither
// of this revision, nor of an edited one, nor of what undoes it.
func TestAnOwnerStaysOneWhenTheConfigurationChanges(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, ownedTeam)
		cleo, dora := p.Person("cleo", people.Approver), p.Person("dora", people.Approver)
		n := p.Start(p.Config, "")
		task := orders(n, `gatehouse delegate own 'echo "bobs agent" > bob.txt'`)
		r := p.Asked(task)
		barred(n, "bob", n.Approver, r, "You own the agent own, which worked on it")
		reload(n, strings.NewReplacer("own:", "renamed:", "owner: bob", "owner: nobody").Replace(ownedTeam))
		if code, p := casts(n, cleo, r, map[string]any{"verdict": "request_changes", "revision": 1, "comment": "More."}); code != http.StatusOK {
			t.Fatalf("request changes: %d %+v", code, p)
		}
		r = p.Revised(task, 2)
		if !slices.ContainsFunc(r.Revision.Files, func(f patch.File) bool { return f.Path == "bob.txt" }) {
			t.Fatalf("revision 2 has %+v", r.Revision.Files)
		}
		barred(n, "bob", n.Approver, r, "You own the agent own, which worked on it")
		edit := map[string]any{"verdict": "edit", "revision": 2, "edits": []map[string]any{{"path": "again.txt", "text": "cleo's\n"}}}
		if code, p := casts(n, cleo, r, edit); code != http.StatusOK {
			t.Fatalf("cleo's edit: %d %+v", code, p)
		}
		r = p.Revised(task, 3)
		barred(n, "bob", n.Approver, r, "You own the agent own, which worked on it")
		if code, why := yes(n, dora, r); code != http.StatusOK {
			t.Fatalf("dora's yes: %d %+v", code, why)
		}
		p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
		var undo struct {
			TaskID string `json:"task_id"`
		}
		posts(n, dora, "/approvals/"+r.ID+"/revert", &undo)
		barred(n, "bob", n.Approver, p.Asked(undo.TaskID), "You own the agent own, which worked on it")
		n.Stop()
	})
}

// TestARetryIsAWish: whoever has ann's task run again does not approve what comes of it, asked
// for over the API or on the page. That ann does so herself keeps nobody else out.
func TestARetryIsAWish(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, ownedTeam)
		sam, pam := p.Person("sam", people.Operator, people.Approver), p.Person("pam", people.Operator, people.Approver)
		n := p.Start(p.Config, "")
		task := orders(n, "until [ -e "+filepath.Join(p.Dir, "go")+" ]; do sleep 0.05; done; echo 1 > one.txt")
		posts(n, sam, "/delegations/"+task+"/cancel", nil)
		posts(n, n.Asker, "/delegations/"+task+"/retry", nil)
		p.Touch("go")
		r := p.Asked(task)
		if slices.ContainsFunc(r.Lineage, func(p approval.Party) bool { return p.Part == approval.AskedAgain }) {
			t.Errorf("ann's own retry: %+v", r.Lineage)
		}
		posts(n, sam, "/delegations/"+task+"/cancel", nil)
		posts(n, sam, "/delegations/"+p.Root(task).ID+"/retry", nil)
		r = p.Asked(task)
		barred(n, "sam", sam, r, "You had it run again")
		posts(n, sam, "/delegations/"+task+"/cancel", nil)
		res, err := n.Browser("pam").PostForm(n.URL+"/delegations/"+p.Root(task).ID+"/retry", nil)
		if n.Must(err); res.StatusCode != http.StatusOK {
			t.Fatalf("the retry on the page: %s", res.Status)
		}
		n.Must(res.Body.Close())
		r = p.Asked(task)
		barred(n, "pam", pam, r, "You had it run again")
		barred(n, "sam", sam, r, "You had it run again")
		if code, err := n.Decide(r); err != nil || code != http.StatusOK {
			t.Errorf("bob's yes: %d, %v", code, err)
		}
		n.Stop()
	})
}

// TestAnAnswerComesWithItsOwner: the text of bob's agent is the file, though that agent has
// changed no file itself. It is no author, which rules see, and bob does not approve it.
func TestAnAnswerComesWithItsOwner(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, ownedTeam)
		cleo := p.Person("cleo", people.Approver)
		n := p.Start(p.Config, "")
		for name, text := range map[string]string{
			"delegate": `gatehouse delegate own "echo bobs" > text.txt`,
			"spawn":    `gatehouse spawn own "echo bobs" > id; rm id; gatehouse children --wait > text.txt`,
			"handoff":  `echo sh > text.txt; gatehouse handoff own "echo bobs"; sleep 60`,
			"below":    `gatehouse delegate mid 'gatehouse delegate own "echo bobs"' > text.txt`,
		} {
			r := p.Asked(orders(n, strings.ReplaceAll(text, "text.txt", name+".txt")))
			barred(n, "bob", n.Approver, r, "You own the agent own, ")
			if agents := (orchestrator.Lineage{Authors: r.Revision.Authors}).Agents(); name == "delegate" && !slices.Equal(agents, []string{"sh"}) {
				t.Errorf("%s: worked on by %v", name, agents)
			}
			if code, why := yes(n, cleo, r); code != http.StatusOK {
				t.Errorf("%s: cleo's yes: %d %+v", name, code, why)
			}
		}
		n.Stop()
	})
}
