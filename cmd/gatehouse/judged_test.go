package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/modeltest"
)

// ratedTeam is the contract's example with a model that scores: research by a plain program,
// and behind the score a model and a program that speaks lines.
const ratedTeam = `
engine: {workers: 4, max_handoffs: 30}
providers:
  local: {base_url: "BASE"}
agents:
  researcher: {kind: command, env: {TEST_MARK: MARK}, command: [sh, -c, 'cat; if test -n "$GATEHOUSE_HANDOVER"; then cat "$GATEHOUSE_HANDOVER"; fi']}
  analyst: {kind: llm, model: local/one, output: {type: object, required: [score]}}
  coder: {kind: llm, model: local/one}
  liner: {kind: command, protocol: jsonl, command: [sh, -c, 'read -r task; printf "{\"type\":\"result\",\"text\":\"heard\",\"data\":%s}\n" "$task"']}
  release:
    kind: workflow
    steps:
      - {id: research, agent: researcher, task: "Research {{.Task}}"}
      - {id: score, agent: analyst, task: "Score {{.Steps.research.Text}}"}
      - {id: again, if: "steps.score.data.score < 80", goto: research, limit: 2}
      - {parallel: [{id: a, agent: coder, task: "implement"}, {id: b, agent: liner, task: "implement"}]}
`

// H26: a score below 80 leads back to the researcher, who is told retry and why, and else on
// to those who implement, who are told that it is validated: typed, in each kind of agent.
// Where the plan may go back no more they are told that it is not.
func TestAPlanTellsWhyItGoesBackAndOn(t *testing.T) {
	t.Parallel()
	fake := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		switch {
		case placetest.Speaks(a, "coder"):
			_, told, _ := strings.Cut(a.System, agent.HandoverHeading)
			return modeltest.Say(told)
		case a.Turn == 1 && strings.Contains(a.Conversation, `"retry":true`) && !strings.Contains(a.Conversation, "Do hopeless"):
			return modeltest.Use("finish", map[string]any{"text": "rich", "data": map[string]any{"score": 95}})
		}
		return modeltest.Use("finish", map[string]any{"text": "too thin", "data": map[string]any{"score": 60}})
	})
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.ReplaceAll(ratedTeam, "BASE", fake.OpenAI()))
	n := p.Start(p.Config, "")
	for task, want := range map[string]struct {
		runs      int
		validated bool
	}{"good": {2, true}, "hopeless": {3, false}} {
		root := n.Through(n.Send("release", "", task))
		if root.State != orchestrator.Completed {
			t.Fatalf("%s is %s: %v", task, root.State, root.Error)
		}
		var data struct {
			B struct {
				Handover agent.Handover `json:"handover"`
			} `json:"b"`
		}
		p.Must(json.Unmarshal(root.Result.Data, &data))
		judged := data.B.Handover.Update.Context.Judged
		if judged.Validated == nil || *judged.Validated != want.validated || judged.Retry || data.B.Handover.Update.Context.PreviousAgent != "release" {
			t.Errorf("%s: the program with lines was told %s", task, root.Result.Data)
		}
		if words := fmt.Sprintf(`"validated": %t`, want.validated); !strings.Contains(root.Result.Text, words) {
			t.Errorf("%s: the model was told %s; want %s", task, root.Result.Text, words)
		}
		var back []orchestrator.Delegation
		runs := 0
		for _, d := range tree(p, root.TaskID) {
			if d.To != "researcher" {
				continue
			}
			if runs++; runs > 1 {
				back = append(back, d)
			} else if d.Work.Handover != nil {
				t.Errorf("%s: the first research was told %+v", task, d.Work.Handover)
			}
		}
		if runs != want.runs {
			t.Fatalf("%s: %d researches, want %d", task, runs, want.runs)
		}
		for i, d := range back {
			why := fmt.Sprintf("steps.score.data.score \\u003c 80 (return %d of 2). Step score answered: too thin {", i+1)
			if got := d.Result.Text; !strings.Contains(got, `"retry":true,"reason":"The condition of step again holds: `+why) || !strings.Contains(got, "# "+agent.HandoverHeading) {
				t.Errorf("%s: the researcher was told %s", task, got)
			}
			if page := n.Page(n.Browser("ann"), "/delegations/"+d.ID); !strings.Contains(page, "yes: The condition of step again holds") {
				t.Errorf("%s: its page does not say why it works again", task)
			}
		}
	}
}
