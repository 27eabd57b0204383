package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// decideTeam is one agent whose every task changes a file.
const decideTeam = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    env: {PLACE: MARK}
    command: [sh, -c, "echo hello > hello.txt"]
`

// told is what one client was told.
type told struct {
	status int
	who    string
	problem
}

type problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// TestAThousandDecideAtOnce: of 1,000 verdicts one counts and lands once; everybody
// else learns who decided.
func TestAThousandDecideAtOnce(t *testing.T) {
	t.Parallel()
	const clients, connections = 1000, 200 // a connection of ours is a descriptor on both sides
	voters := []string{"bert", "cleo", "dora", "emil", "fritz", "gwen", "hugo", "iris"}
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, decideTeam)
		tokens := map[string]string{}
		for _, name := range voters {
			tokens[name] = p.Person(name, people.Approver)
		}
		n := p.Start(p.Config, "")
		task := n.Send("coder", "app", "change")
		r := p.Asked(task)
		transport := &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections}
		defer transport.CloseIdleConnections()
		n.HTTP = &http.Client{Transport: transport}
		answers := make([]told, clients)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				<-start
				a := &answers[i]
				a.who = voters[i%len(voters)]
				verdict := wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest}
				var err error
				if a.status, err = n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", tokens[a.who], verdict, &a.problem); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		winner := ""
		for _, a := range answers {
			if a.status == http.StatusOK && winner == "" {
				winner = a.who
			} else if a.status == http.StatusOK {
				t.Errorf("%s and %s both decided", winner, a.who)
			}
		}
		if winner == "" {
			t.Fatalf("nobody decided: %+v", answers[0])
		}
		others := map[string]int{}
		for _, a := range answers {
			if a.status != http.StatusOK {
				others[fmt.Sprintf("%d %s, winner named: %v", a.status, a.Code, strings.Contains(strings.ToLower(a.Detail), winner))]++
			}
		}
		if want := "409 already_decided, winner named: true"; others[want] != clients-1 {
			t.Errorf("%s decided; the others were told: %v, want only %q", winner, others, want)
		}
		root := n.Through(task)
		decisions := p.Requests(task)[0].Decisions
		if len(decisions) != 1 || decisions[0].User != winner {
			t.Errorf("%s decided and the request has the decisions %+v", winner, decisions)
		}
		if merges := placetest.Git(t, p.Repo, "rev-list", "--merges", "main"); root.Result == nil || merges != root.Result.Commit {
			t.Errorf("merges on main: %q; the task's result: %+v", merges, root.Result)
		}
		p.Events(task)
	})
}
