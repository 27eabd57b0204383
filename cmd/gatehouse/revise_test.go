package main

import (
	"net/http"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
	"gatehouse/web/client"
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
	for name, point := range map[string]string{
		"revised, not yet checked": "revised#1",
		"asked and counted":        "request committed#2",
		"landing":                  "intent committed#1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places(t, func(t *testing.T, database string) {
				p := newPlace(t, database, reviseTeam)
				n := p.start(p.config, point)
				task := n.send("coder", "app", "once")
				r := p.asked(task)
				// The server may die before it answers.
				n.call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", n.approver, //nolint:errcheck // as said
					client.Verdict{Verdict: "approve", Digest: r.Revision.Digest, Files: []string{"hello.txt"}}, nil)
				n.died()

				n = p.start(p.config, "")
				p.until("the end of the task", func() bool { return p.root(task).State.Ended() })
				root, asked := p.root(task), p.requests(task)
				if root.State != orchestrator.Completed || len(root.Result.Declined) != 1 || root.Result.Declined[0] != "rest.txt" {
					t.Errorf("the task is %s with %+v", root.State, root.Result)
				}
				if len(asked) != 1 || asked[0].State != approval.Landed || asked[0].Revision.N != 2 || len(asked[0].Decisions) != 2 {
					t.Errorf("asked: %+v", asked)
				}
				for typ, want := range map[event.Type]int{event.Requested: 2, event.Superseded: 1, event.Decided: 2, event.PatchLanded: 1} {
					if got := count(p.events(task), typ, ""); got != want {
						t.Errorf("%d events %s, want %d", got, typ, want)
					}
				}
				if files := git(t, p.repo, "diff", "--name-only", "main^1", "main"); files != "hello.txt" {
					t.Errorf("landed %q", files)
				}
				if merges := git(t, p.repo, "rev-list", "--count", "--merges", "main"); merges != "1" {
					t.Errorf("%s merges", merges)
				}
				n.stop()
			})
		})
	}
}
