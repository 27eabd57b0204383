package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/trigger"
)

// hookTeam looks at failed runs and changes nothing.
const hookTeam = `
agents:
  kik: {kind: command, command: [cat], analysis_only: true, approval: auto}
triggers:
  - {name: ci-failed, kind: webhook, source: github, secret: "It's a Secret to Everybody", agent: kik, task: "Fix {{.workflow_run.name}}", when: "event.action == 'completed'", owner: ann}
`

// deliver posts a delivery as GitHub does. The server may die before it answers.
func deliver(n *placetest.Node, id string, body []byte) (status int, answer map[string]string, err error) {
	n.Helper()
	req, err := http.NewRequestWithContext(n.Context(), http.MethodPost, n.URL+"/hooks/ci-failed", strings.NewReader(string(body)))
	if err != nil {
		return 0, nil, err
	}
	placetest.Signed(req, id, body)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	return res.StatusCode, answer, json.NewDecoder(res.Body).Decode(&answer)
}

// TestADeliverySurvivesTheServerThatTookIt: killed after the delivery is stored, or after
// its task is made, the next start has one task of it, and a repeat gets that task.
func TestADeliverySurvivesTheServerThatTookIt(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("../../orchestrator/trigger/testdata/github_workflow_run.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"delivery stored#1", "delivery submitted#1"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			placetest.Places(t, func(t *testing.T, database string) {
				p := placetest.New(t, database, hookTeam)
				n := p.Start(p.Config, point)
				if status, _, err := deliver(n, "d1", body); err == nil {
					t.Errorf("the server answered %d and should be dead", status)
				}
				n.Died()
				n = p.Start(p.Config, "")
				var d trigger.Delivery
				p.Until("the delivery to have its task", func() bool {
					page, err := p.Store.Deliveries(p.Context(), trigger.Filter{Trigger: "ci-failed"})
					p.Must(err)
					if len(page.Items) != 1 {
						t.Fatalf("%d deliveries", len(page.Items))
					}
					d = page.Items[0]
					return d.State != trigger.Stored
				})
				if d.State != trigger.Started {
					t.Fatalf("the delivery is %s: %s", d.State, d.Message)
				}
				status, answer, err := deliver(n, "d1", body)
				if err != nil || status != http.StatusOK || answer["id"] != d.TaskID || answer["delivery"] != d.ID {
					t.Errorf("again: %d %v %v", status, answer, err)
				}
				page, err := p.Store.List(p.Context(), orchestrator.Filter{RootsOnly: true})
				p.Must(err)
				if len(page.Items) != 1 || page.Items[0].TaskID != d.TaskID {
					t.Errorf("%d tasks", len(page.Items))
				}
				p.Until("the task to end", func() bool { return p.Root(d.TaskID).State.Ended() })
				if root := p.Root(d.TaskID); root.State != orchestrator.Completed || !strings.Contains(root.Result.Text, ".workflow_run.name: Build") {
					t.Errorf("the task is %s: %+v", root.State, root.Result)
				}
				n.Stop()
			})
		})
	}
}
