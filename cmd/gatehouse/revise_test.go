package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"
)

// reviseTeam makes two files, so that one of them can be approved.
const reviseTeam = `
engine: {workers: 4, lease: 10m}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f README.md"]}
agents:
  coder:
    kind: command
    repository: app
    env: {PLACE: MARK, GORACE: NO_SLEEP}
    command: [sh, -c, "echo hello > hello.txt; echo rest > rest.txt"]
`

// TestARevisionOfAPersonSurvivesTheServer: the server dies right after it stored that
// somebody approved some files, or once it has checked and asked about them. The next
// start goes on, and that yes counts once.
func TestARevisionOfAPersonSurvivesTheServer(t *testing.T) {
	t.Parallel()
	for name, point := range map[string]string{
		"revised, not yet checked": "revised#1",
		"asked and counted":        "request committed#2",
		"landing":                  "intent committed#1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placetest.Places(t, func(t *testing.T, database string) {
				p := placetest.New(t, database, reviseTeam)
				n := p.Start(p.Config, point)
				task := n.Send("coder", "app", "once")
				r := p.Asked(task)
				// The server may die before it answers.
				n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", n.Approver,
					wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest, Files: []string{"hello.txt"}}, nil)
				n.Died()

				n = p.Start(p.Config, "")
				p.Until("the end of the task", func() bool { return p.Root(task).State.Ended() })
				root, asked := p.Root(task), p.Requests(task)
				if root.State != orchestrator.Completed || len(root.Result.Declined) != 1 || root.Result.Declined[0] != "rest.txt" {
					t.Errorf("the task is %s with %+v", root.State, root.Result)
				}
				if len(asked) != 1 || asked[0].State != approval.Landed || asked[0].Revision.N != 2 || len(asked[0].Decisions) != 2 {
					t.Errorf("asked: %+v", asked)
				}
				for typ, want := range map[event.Type]int{event.Requested: 2, event.Superseded: 1, event.Decided: 2, event.PatchLanded: 1} {
					if got := placetest.Count(p.Events(task), typ, ""); got != want {
						t.Errorf("%d events %s, want %d", got, typ, want)
					}
				}
				if files := placetest.Git(t, p.Repo, "diff", "--name-only", "main^1", "main"); files != "hello.txt" {
					t.Errorf("landed %q", files)
				}
				if merges := placetest.Git(t, p.Repo, "rev-list", "--count", "--merges", "main"); merges != "1" {
					t.Errorf("%s merges", merges)
				}
				n.Stop()
			})
		})
	}
}

// giveVerdict sends a verdict as cleo or bob and decodes the answer, a problem or the request.
func giveVerdict(n *placetest.Node, token, id string, body map[string]any) (int, map[string]any) {
	n.Helper()
	var out map[string]any
	status, err := n.Call(http.MethodPost, "/api/v1/approvals/"+id+"/decision", token, body, &out)
	n.Must(err)
	return status, out
}

// TestChoicesAndEditsThroughTheAPI: the shapes of what people make of a patch, and the
// difference between any two revisions.
func TestChoicesAndEditsThroughTheAPI(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), reviseTeam)
	cleo := p.Person("cleo", people.Approver)
	n := p.Start(p.Config, "")
	task := n.Send("coder", "app", "once")
	r := p.Asked(task)
	for says, body := range map[string]map[string]any{
		`"none.txt" is not among the 2 changed files of revision 1`: {"verdict": "approve", "files": []string{"none.txt"}},
		`No file is chosen`:            {"verdict": "approve", "files": []string{}},
		`The edit changes nothing`:     {"verdict": "edit"},
		`so there is no line 9`:        {"verdict": "request_changes", "comments": []map[string]any{{"path": "hello.txt", "line": 9, "text": "x"}}},
		`edited twice`:                 {"verdict": "edit", "edits": []map[string]any{{"path": "a", "text": "x"}, {"path": "a", "text": "x"}}},
		`There is no revision 0.`:      {"verdict": "approve", "revision": 0},
		`There is no field "edits[0].`: {"verdict": "edit", "edits": []map[string]any{{"name": "a"}}},
	} {
		body["digest"] = r.Revision.Digest
		status, out := giveVerdict(n, n.Approver, r.ID, body)
		want := http.StatusBadRequest
		if says == "edited twice" {
			want = http.StatusConflict
		}
		if detail, _ := out["detail"].(string); status != want || !strings.Contains(detail, says) {
			t.Errorf("%v: %d %v", body, status, out)
		}
	}
	status, out := giveVerdict(n, n.Approver, r.ID, map[string]any{"verdict": "edit", "digest": r.Revision.Digest,
		"edits": []map[string]any{{"path": "hello.txt", "text": "hello\r\nyou"}, {"path": "README.md", "delete": true}}})
	if status != http.StatusOK || out["state"] != "superseded" {
		t.Fatalf("the edit: %d %v", status, out)
	}
	p.Until("revision 2", func() bool { r = p.Asked(task); return r.Revision.N == 2 })
	if status, out = giveVerdict(n, n.Approver, r.ID, map[string]any{"verdict": "approve", "digest": r.Revision.Digest}); status != http.StatusForbidden || out["code"] != "four_eyes" {
		t.Errorf("the editor's yes: %d %v", status, out)
	}
	if status, out = giveVerdict(n, cleo, r.ID, map[string]any{"verdict": "approve", "digest": r.Revision.Digest, "ticked": []string{"checks_failed"}, "files": []string{"hello.txt", "hello.txt"}}); status != http.StatusOK {
		t.Fatalf("cleo's choice: %d %v", status, out)
	}
	p.Until("the end", func() bool { return p.Root(task).State.Ended() })
	var shape struct {
		State, Made, Editor, Mode string
		MadeFrom                  int `json:"made_from"`
		Declined                  []string
		Decisions                 []struct {
			User, Verdict string
			Files         []string
			Revision      int
		}
	}
	if _, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, cleo, nil, &shape); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", shape); got != "{State:landed Made:files Editor:bob Mode:any MadeFrom:2 Declined:[README.md rest.txt] "+
		"Decisions:[{User:bob Verdict:edit Files:[] Revision:1} {User:cleo Verdict:approve Files:[hello.txt] Revision:2} {User:cleo Verdict:approve Files:[] Revision:3}]}" {
		t.Errorf("shape %s", got)
	}
	for query, want := range map[string][2]string{
		"":               {"+hello\r\n+you\n", "rest.txt"},
		"?rev=1":         {"+rest\n", "README.md"},
		"?rev=3&since=1": {"-rest\n", "README.md"},
		"?rev=1&since=3": {"+rest\n", "README.md"},
		"?rev=2&since=1": {"-An app.\n", "rest.txt"},
		"?since=2":       {"+An app.\n", "hello.txt"},
	} {
		var b strings.Builder
		status, err := n.Text("/api/v1/approvals/"+r.ID+"/patch"+query, cleo, &b)
		if err != nil || status != http.StatusOK || !strings.Contains(b.String(), want[0]) || strings.Contains(b.String(), want[1]) {
			t.Errorf("%s: %d %v\n%s\nwant %q, not %q", query, status, err, b.String(), want[0], want[1])
		}
	}
	for query, want := range map[string]int{"?rev=4": 404, "?since=0": 404, "?rev=x": 404, "?revision=1": 400, "?rev=2&since=2": 200} {
		if status, err := n.Text("/api/v1/approvals/"+r.ID+"/patch"+query, cleo, &strings.Builder{}); err != nil || status != want {
			t.Errorf("%s: %d %v, want %d", query, status, err, want)
		}
	}
	n.Stop()
}
