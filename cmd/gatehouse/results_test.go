package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// resultsTeam has the contract's own example, a score that decides, and a caller of every
// kind. The writer's checkout is discarded; its plan is not.
const resultsTeam = `
engine: {workers: 4, lease: 10m, max_handoffs: 30}
repositories:
  app: {path: "REPO", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  analyst: {kind: llm, model: local/one, tools: {allow: []}, output: {type: object, properties: {score: {type: integer, maximum: 100}}, required: [score]}}
  stubborn: {kind: llm, model: local/one, output: {type: object, required: [score]}}
  writer:
    kind: command
    repository: app
    analysis_only: true
    approval: auto
    command: [sh, -c, 'cat > task.txt; mkdir out; printf "# Plan\n" > out/plan.md; cp task.txt out/; echo "{\"data\":{\"pages\":2},\"artifacts\":[{\"name\":\"plan\",\"path\":\"out/plan.md\"},{\"name\":\"the task.txt\",\"media_type\":\"text/x-task\",\"path\":\"out/task.txt\"}]}" > "$GATEHOUSE_RESULT"; echo written']
  rater:
    kind: workflow
    steps:
      - {id: score, agent: analyst, task: "Rate it"}
      - {id: improve, agent: writer, if: "steps.score.data.score < 80", task: "{{.Steps.score.Data.score}} is too low. {{.Steps.score.Artifacts.report}}", produces: plan}
      - {id: sum, agent: writer, if: "steps.improve.data.pages == 2", task: "Again: {{.Artifacts.plan}}"}
  boss: {kind: llm, model: local/one}
  script: {kind: command, command: [sh, -c, 'gatehouse delegate --json writer "by the command line"']}
  liner:
    kind: command
    protocol: jsonl
    command: [sh, -c, 'read task; echo "{\"type\":\"delegate\",\"to\":\"writer\",\"text\":\"by a line\",\"ref\":\"1\"}"; read answer; echo "{\"type\":\"result\",\"text\":\"heard\",\"data\":$answer,\"artifacts\":[{\"name\":\"own\",\"text\":\"mine\"}]}"']
  meter: {kind: command, protocol: jsonl, command: [sh, -c, 'read task; echo "{\"type\":\"usage\",\"input_tokens\":7,\"output_tokens\":2,\"usd\":0.5}"; echo "{\"type\":\"result\",\"text\":\"counted\"}"']}
  payer: {kind: command, protocol: jsonl, command: [sh, -c, 'read task; echo "{\"type\":\"delegate\",\"to\":\"meter\",\"text\":\"count\",\"ref\":\"1\"}"; read answer; echo "{\"type\":\"result\",\"text\":\"heard\",\"data\":$answer}"']}
  thief: {kind: command, repository: app, command: [sh, -c, 'ln -s /etc/passwd link; echo "{\"artifacts\":[{\"name\":\"x\",\"path\":\"link\"}]}" > "$GATEHOUSE_RESULT"']}
  linker: {kind: command, command: [sh, -c, 'ln -sf /etc/passwd "$GATEHOUSE_RESULT"']}
`

// rates plays the models: the analyst's first answer does not fit, its second does.
func rates(a modeltest.Ask) modeltest.Answer {
	switch {
	case placetest.Speaks(a, "analyst") && a.Turn == 1:
		return modeltest.Use("finish", map[string]any{"text": "bad", "data": map[string]any{"score": "low"}})
	case placetest.Speaks(a, "analyst"):
		return modeltest.Use("finish", map[string]any{"text": "poor", "data": map[string]any{"score": 60},
			"artifacts": []any{map[string]any{"name": "report", "text": "Too short. " + strings.Repeat("why ", 3000)}}})
	case placetest.Speaks(a, "stubborn"):
		return modeltest.Say("I give it 60.")
	case a.Turn == 1:
		return modeltest.Use("delegate_to_agent", map[string]any{"agent": "writer", "task": "by a tool"})
	}
	return modeltest.Say(a.Result("delegate_to_agent"))
}

// taskAnswered sends to an agent and returns its root as the API tells it.
func taskAnswered(n *placetest.Node, to string) wire.Delegation {
	n.Helper()
	root := n.Through(n.Send(to, "app", to))
	var d wire.Delegation
	if status, err := n.Call(http.MethodGet, "/api/v1/delegations/"+root.ID, n.Asker, nil, &d); err != nil || status != http.StatusOK {
		n.Fatalf("%s: %d, %v", to, status, err)
	}
	return d
}

// artifact gets the content of an artifact.
func artifact(n *placetest.Node, a agent.Artifact, token string) (string, int) {
	n.Helper()
	var b bytes.Buffer
	status, err := n.Text(a.URL, token, &b)
	n.Must(err)
	return b.String(), status
}

// TestWhatAgentsBringReachesEveryCaller: data and artifacts of a model and of programs, for
// a workflow, a model, a program that speaks lines and one that uses the command line; the
// content outlives the checkout, and who may not read the delegation does not get it.
func TestWhatAgentsBringReachesEveryCaller(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		fake := modeltest.Start(rates)
		t.Cleanup(fake.Close)
		p := placetest.New(t, database, strings.ReplaceAll(resultsTeam, "BASE", fake.OpenAI()))
		n := p.Start(p.Config, "")

		plan := taskAnswered(n, "rater")
		if plan.State != "completed" || plan.Result.Text != "written" || string(compact(t, plan.Result.Data)) != `{"pages":2}` || len(plan.Result.Artifacts) != 1 {
			t.Fatalf("the workflow: %s %+v %+v", plan.State, plan.Error, plan.Result)
		}
		if text, status := artifact(n, plan.Result.Artifacts[0], n.Asker); status != http.StatusOK || text != "# Plan\n" {
			t.Errorf("the plan: %d %q", status, text)
		}
		var texts []string
		for _, d := range tree(p, plan.TaskID) {
			texts = append(texts, fmt.Sprintf("%s: %.40s", d.To, d.Text))
		}
		if got := strings.Join(texts, "\n"); !strings.Contains(got, "writer: 60 is too low. Too short. why") || !strings.Contains(got, "writer: Again: # Plan") {
			t.Errorf("the steps were given:\n%s", got)
		}

		sha := plan.Result.Artifacts[0].SHA256
		if boss := taskAnswered(n, "boss"); boss.State != "completed" || !strings.Contains(boss.Result.Text, `Data: {"pages":2}`) || !strings.Contains(boss.Result.Text, "sha256 "+sha+")\n# Plan") {
			t.Errorf("the model heard %+v", boss.Result)
		}
		var told wire.Delegation
		if err := json.Unmarshal([]byte(taskAnswered(n, "script").Result.Text), &told); err != nil || told.Result == nil || string(compact(t, told.Result.Data)) != `{"pages":2}` || len(told.Result.Artifacts) != 2 || told.Result.Artifacts[0].SHA256 != sha {
			t.Errorf("delegate --json: %v %+v", err, told.Result)
		}
		liner := taskAnswered(n, "liner")
		var heard struct {
			Data      map[string]int
			Artifacts []agent.Artifact
		}
		if err := json.Unmarshal(liner.Result.Data, &heard); err != nil || heard.Data["pages"] != 2 || len(heard.Artifacts) != 2 || heard.Artifacts[0].SHA256 != sha {
			t.Errorf("the line: %v %s", err, liner.Result.Data)
		}
		if own := liner.Result.Artifacts; len(own) != 1 || own[0].Text != "mine" || own[0].MediaType != "text/plain; charset=utf-8" || own[0].Size != 4 {
			t.Errorf("its own artifact: %+v", own)
		}

		var paid struct{ Usage agent.Usage }
		if err := json.Unmarshal(taskAnswered(n, "payer").Result.Data, &paid); err != nil || paid.Usage.InputTokens != 7 || paid.Usage.OutputTokens != 2 || paid.Usage.USD == nil || *paid.Usage.USD != 0.5 {
			t.Errorf("what the child used, on the line (O14): %v %+v", err, paid.Usage)
		}

		task := told.Result.Artifacts[1]
		if text, status := artifact(n, task, n.Asker); status != http.StatusOK || text != "by the command line" || task.MediaType != "text/x-task" {
			t.Errorf("the second artifact %+v: %d %q", task, status, text)
		}
		if page := n.Page(n.Browser("ann"), "/delegations/"+told.ID+"?tab=result"); !strings.Contains(page, "the task.txt") || !strings.Contains(page, "text/x-task") {
			t.Errorf("the page lacks the artifact: %s", page)
		}
		task.URL = strings.Replace(task.URL, "the%20task.txt", "other", 1)
		if _, status := artifact(n, task, n.Asker); status != http.StatusNotFound {
			t.Errorf("one that is not there: %d", status)
		}
	})
}

// TestWhatDoesNotFitIsRefused: an answer that does not fit the output schema is given back
// once, and an artifact leads nowhere but into the checkout.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	fake := modeltest.Start(rates)
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.ReplaceAll(resultsTeam, "BASE", fake.OpenAI()))
	reader := p.Person("eve", people.Approver)
	n := p.Start(p.Config, "")
	for to, want := range map[string]agent.Failure{
		"stubborn": {Code: agent.CodeBadOutput, Message: "did not fit its output schema"},
		"thief":    {Code: agent.CodeArtifact, Message: "a link leads there"},
		"linker":   {Code: agent.CodeBadOutput, Message: "is no plain file"},
	} {
		d := taskAnswered(n, to)
		if d.State != "failed" || d.Error == nil || d.Error.Code != want.Code || !strings.Contains(d.Error.Message, want.Message) {
			t.Errorf("%s ended as %s: %+v", to, d.State, d.Error)
		}
	}
	var asked []modeltest.Ask
	for _, a := range fake.Asks() {
		if placetest.Speaks(a, "stubborn") {
			asked = append(asked, a)
		}
	}
	if len(asked) != 2 || !strings.Contains(asked[1].Last().Text(), "the answer has no data") {
		t.Errorf("the model was asked %d times", len(asked))
	}
	d := taskAnswered(n, "writer")
	if _, status := artifact(n, d.Result.Artifacts[0], reader); status != http.StatusOK {
		t.Errorf("who may read delegations gets %d", status)
	}
	if _, status := artifact(n, d.Result.Artifacts[0], ""); status != http.StatusUnauthorized {
		t.Errorf("a stranger gets %d", status)
	}
	if root := p.Root(d.TaskID); root.State != orchestrator.Completed {
		t.Errorf("the writer is %s", root.State)
	}
}

func compact(t *testing.T, data json.RawMessage) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
