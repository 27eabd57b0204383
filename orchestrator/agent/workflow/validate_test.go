package workflow

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
)

func TestValidate(t *testing.T) {
	a := agent.Step{ID: "a", Agent: "x", Produces: "Pack"}
	tests := []struct {
		name  string
		steps []agent.Step
		at    string // "" when the plan is fine
		says  string
	}{
		{"the contract's example", []agent.Step{
			{ID: "research", Agent: "x", Task: "Research {{.Task}}", Produces: "ResearchPack"},
			{ID: "score", Agent: "y", Task: "Score {{.Steps.research.Text}}"},
			{ID: "again", If: "steps.score.data.score < 80", Goto: "research", Limit: 2},
			{Parallel: []agent.Step{{ID: "p", Agent: "x", Task: "…"}, {ID: "q", Agent: "x", Task: "{{$.Artifacts.ResearchPack}}"}}},
		}, "", ""},
		{"a dash in an id", []agent.Step{{ID: "a-b", Agent: "x"}, {ID: "c", Agent: "y", If: `steps["a-b"].state == 'failed'`, Task: `{{(index .Steps "a-b").Text}}`}}, "", ""},
		{"a goto onto a group", []agent.Step{{ID: "g", Parallel: []agent.Step{a}}, {Goto: "g", Limit: 1}}, "", ""},
		{"dot inside with", []agent.Step{a, {ID: "b", Agent: "y", Task: `{{with index .Steps "a"}}{{.Text}}{{end}}`}}, "", ""},
		{"no steps", nil, "steps", "at least one"},
		{"no id", []agent.Step{{Agent: "x"}}, "steps[0].id", "needs an id"},
		{"no id in a branch", []agent.Step{{Parallel: []agent.Step{{Agent: "x"}}}}, "steps[0].parallel[0].id", "needs an id"},
		{"one id twice", []agent.Step{a, {Parallel: []agent.Step{a}}}, "steps[1].parallel[0].id", "that of steps[0] too"},
		{"a sign that refs use", []agent.Step{{ID: "a#1", Agent: "x"}}, "steps[0].id", "use letters"},
		{"unknown agent", []agent.Step{{ID: "a", Agent: "ghost"}}, "steps[0].agent", `no agent is named "ghost"`},
		{"unknown agent in a branch", []agent.Step{{Parallel: []agent.Step{{ID: "a", Agent: "ghost"}}}}, "steps[0].parallel[0].agent", "ghost"},
		{"nothing to do", []agent.Step{{ID: "a"}}, "steps[0]", "does nothing"},
		{"two things to do", []agent.Step{{ID: "g", Agent: "x", Parallel: []agent.Step{a}}}, "steps[0]", "not both"},
		{"no branches", []agent.Step{{Parallel: []agent.Step{}}}, "steps[0].parallel", "no branch"},
		{"a goto to nowhere", []agent.Step{a, {Goto: "z", Limit: 1}}, "steps[1].goto", `no step has the id "z"`},
		{"a goto into a group", []agent.Step{{Parallel: []agent.Step{a}}, {Goto: "a", Limit: 1}}, "steps[1].goto", "is a branch"},
		{"a goto without a limit", []agent.Step{a, {Goto: "a"}}, "steps[1].limit", "needs a limit"},
		{"a jump to itself", []agent.Step{a, {ID: "j", Goto: "j", Limit: 1}}, "steps[1].goto", "goes to itself"},
		{"a limit alone", []agent.Step{{ID: "a", Agent: "x", Limit: 1}}, "steps[0].limit", "does nothing"},
		{"a goto in a branch", []agent.Step{a, {Parallel: []agent.Step{{ID: "b", Agent: "x", Goto: "a", Limit: 1}}}}, "steps[1].parallel[0].goto", "join"},
		{"branches in a branch", []agent.Step{{Parallel: []agent.Step{{ID: "b", Parallel: []agent.Step{a}}}}}, "steps[0].parallel[0].parallel", "cannot have branches"},
		{"a condition that does not parse", []agent.Step{a, {ID: "b", Agent: "x", If: "steps.a.state =="}}, "steps[1].if", "cannot be read"},
		{"a condition on what nobody has", []agent.Step{a, {ID: "b", Agent: "x", If: "steps.a.stat == ''"}}, "steps[1].if", "stat"},
		{"a condition on an unknown name", []agent.Step{a, {ID: "b", Agent: "x", If: "step.a.state == ''"}}, "steps[1].if", "step"},
		{"a condition on an unknown step", []agent.Step{a, {ID: "b", Agent: "x", If: "steps.z.state == ''"}}, "steps[1].if", `no step has the id "z"`},
		{"a condition that is no truth", []agent.Step{a, {ID: "b", Agent: "x", If: "1 + 1"}}, "steps[1].if", "bool"},
		{"a condition that changes by itself", []agent.Step{a, {ID: "b", Agent: "x", If: "now().Hour() < 12"}}, "steps[1].if", "now"},
		{"a template that does not parse", []agent.Step{{ID: "a", Agent: "x", Task: "{{.Task"}}, "steps[0].task", "cannot be read"},
		{"a template on an unknown field", []agent.Step{{ID: "a", Agent: "x", Task: "{{.Text}}"}}, "steps[0].task", "there is no .Text"},
		{"a template on an unknown step", []agent.Step{a, {ID: "b", Agent: "x", Task: "{{if .Steps.z.Text}}{{end}}"}}, "steps[1].task", `no step has the id "z"`},
		{"a template on an unknown artifact", []agent.Step{a, {ID: "b", Agent: "x", Task: "{{.Artifacts.Pak}}"}}, "steps[1].task", `artifact "Pak"`},
		{"a task for nobody", []agent.Step{a, {Goto: "a", Limit: 1, Task: "x"}}, "steps[1].task", "nobody"},
		{"produced by nobody", []agent.Step{a, {Goto: "a", Limit: 1, Produces: "x"}}, "steps[1].produces", "nothing is produced"},
	}
	known := func(name string) bool { return name == "x" || name == "y" }
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problems := Validate(tt.steps, known)
			if tt.at == "" {
				if len(problems) > 0 {
					t.Errorf("problems: %+v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Step != tt.at || !strings.Contains(problems[0].Message, tt.says) {
				t.Errorf("problems %+v, want one at %s that says %q", problems, tt.at, tt.says)
			}
		})
	}
}

func TestReaches(t *testing.T) {
	flow := func(name string, agents ...string) agent.Spec {
		s := agent.Spec{Name: name, Kind: agent.Workflow}
		for _, a := range agents {
			s.Steps = append(s.Steps, agent.Step{ID: a, Agent: a})
		}
		return s
	}
	inGroup := agent.Spec{Name: "g", Kind: agent.Workflow, Steps: []agent.Step{{Parallel: []agent.Step{{ID: "x", Agent: "coder"}, {ID: "y", Agent: "G"}}}}}
	coder := agent.Spec{Name: "coder", Kind: agent.Command, DelegatesTo: []string{"a"}, Restricted: true}
	tests := []struct {
		name  string
		specs []agent.Spec
		says  string
	}{
		{"a tree", []agent.Spec{flow("a", "b", "c", "coder"), flow("b", "c"), flow("c", "coder"), coder}, ""},
		{"itself", []agent.Spec{flow("a", "coder", "a")}, "a → a"},
		{"itself in a group, spelled otherwise", []agent.Spec{inGroup}, "g → g"},
		{"through others", []agent.Spec{flow("z", "a"), flow("a", "b"), flow("b", "coder", "c"), flow("c", "a")}, "a → b → c → a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Reaches(tt.specs)
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v lacks %q", err, tt.says)
			}
		})
	}
}
