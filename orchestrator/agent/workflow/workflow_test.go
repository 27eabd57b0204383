package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
)

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// failure returns the *Failure with which a workflow ended.
func failure(t *testing.T, s story) *agent.Failure {
	t.Helper()
	return ended(t, s, agent.CodeStep)
}

// ended returns how a story ended that has no result.
func ended(t *testing.T, s story, code string) *agent.Failure {
	t.Helper()
	var f *agent.Failure
	if !errors.As(s.err, &f) || f.Code != code {
		t.Fatalf("ended with %.200v, %v", s.result, s.err)
	}
	return f
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q lacks %q", text, p)
		}
	}
}

func TestInOrderHandingArtifactsOn(t *testing.T) {
	// H25, H4: research → plan → implement.
	s := follow(t, job(
		agent.Step{ID: "research", Agent: "researcher", Task: "Research {{.Task}}", Produces: "ResearchPack"},
		agent.Step{ID: "plan", Agent: "planner", Task: "Plan with {{.Artifacts.ResearchPack}}", Produces: "ImplementationPlan"},
		agent.Step{ID: "implement", Agent: "coder", Task: "{{.Steps.plan.Text}} n={{.Steps.plan.Data.n}} {{json .Steps.plan.Data}}"},
	), byRef(t, map[string]agent.Child{
		"research#1":  says("facts"),
		"plan#1":      says("steps", `{"n":1000000}`),
		"implement#1": says("done", `{"ok":true}`),
	}))
	equal(t, "hops", s.refs(), []string{"research#1", "plan#1", "implement#1"})
	equal(t, "tasks", []string{s.text("research#1"), s.text("plan#1"), s.text("implement#1")},
		[]string{"Research the retry loop", "Plan with facts", `steps n=1000000 {"n":1000000}`})
	equal(t, "progress", s.lines, []string{"step research → researcher", "step plan → planner", "step implement → coder"})
	if s.err != nil || s.result.Text != "done" || string(s.result.Data) != `{"ok":true}` {
		t.Fatalf("result %+v, %v", s.result, s.err)
	}
	want := []agent.Artifact{{Name: "ResearchPack", Text: "facts"}, {Name: "ImplementationPlan", Text: "steps"}}
	if !slices.Equal(s.result.Artifacts, want) {
		t.Errorf("artifacts %+v", s.result.Artifacts)
	}
}

func TestAgentsOwnArtifactOfThatName(t *testing.T) {
	s := follow(t, job(
		agent.Step{ID: "a", Agent: "x", Produces: "Pack"},
		agent.Step{ID: "b", Agent: "y", Task: "read {{.Artifacts.Pack}}"},
	), func(h agent.Hop) agent.Child {
		c := says("see the file")
		if h.To == "x" {
			c.Result.Artifacts = []agent.Artifact{{Name: "Other"}, {Name: "Pack", Path: "out/pack.md"}}
		}
		return c
	})
	if s.err != nil || s.text("b#1") != "read out/pack.md" || s.result.Artifacts[0].Path != "out/pack.md" {
		t.Errorf("%q %+v %v", s.text("b#1"), s.result, s.err)
	}
}

// scored is the contract's example: below 80 the research is done again.
func scored() agent.Job {
	return job(
		agent.Step{ID: "research", Agent: "researcher", Task: "Research {{.Task}}"},
		agent.Step{ID: "score", Agent: "analyst", Task: "Score {{.Steps.research.Text}}"},
		agent.Step{ID: "again", If: "steps.score.data.score < 80", Goto: "research", Limit: 2},
		agent.Step{ID: "write", Agent: "coder", Task: "score {{.Steps.score.Data.score}} after {{.Steps.score.Runs}}"},
	)
}

func TestLoop(t *testing.T) {
	// H26: a quality score below 80 goes back to the researcher, with retry and the reason; else
	// on to the coder, validated. Where it may go back no more, it is told that it is not.
	const good = "The condition of step again does not hold: steps.score.data.score < 80."
	tests := []struct {
		name   string
		scores []int
		refs   []string
		task   string
		judged []string
	}{
		{"good at once", []int{80}, []string{"research#1", "score#1", "write#1"}, "score 80 after 1", []string{"write#1 validated true: " + good}},
		{"good after one retry", []int{79, 95}, []string{"research#1", "score#1", "research#2", "score#2", "write#1"}, "score 95 after 2",
			[]string{"research#2 retry: The condition of step again holds: steps.score.data.score < 80 (return 1 of 2). Step score answered: scored {\"score\":79}", "write#1 validated true: " + good}},
		{"the limit ends it", []int{1, 2, 3}, []string{"research#1", "score#1", "research#2", "score#2", "research#3", "score#3", "write#1"}, "score 3 after 3",
			[]string{"research#2 retry: The condition of step again holds: steps.score.data.score < 80 (return 1 of 2). Step score answered: scored {\"score\":1}",
				"research#3 retry: The condition of step again holds: steps.score.data.score < 80 (return 2 of 2). Step score answered: scored {\"score\":2}",
				"write#1 validated false: The condition of step again still holds: steps.score.data.score < 80. It may go back no more often than 2 times. Step score answered: scored {\"score\":3}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			s := follow(t, scored(), func(h agent.Hop) agent.Child {
				if h.To != "analyst" {
					return says(h.Ref)
				}
				n++
				return says("scored", fmt.Sprintf(`{"score":%d}`, tt.scores[n-1]))
			})
			equal(t, "hops", s.refs(), tt.refs)
			equal(t, "judged", s.judged(), tt.judged)
			if s.err != nil || s.text("write#1") != tt.task {
				t.Errorf("wrote %q, %v", s.text("write#1"), s.err)
			}
			if back := "step again: go to research (1 of 2)"; slices.Contains(s.lines, back) != (len(tt.scores) > 1) {
				t.Errorf("progress %q", s.lines)
			}
		})
	}
}

func TestConditionsSkip(t *testing.T) {
	s := follow(t, job(
		agent.Step{ID: "look", Agent: "a"},
		agent.Step{ID: "fix", Agent: "b", If: "steps.look.text contains 'bug'"},
		agent.Step{ID: "tell", Agent: "c", If: "steps.fix.state == 'skipped'", Task: `{{with index .Steps "fix"}}fixed {{.Text}}{{else}}nothing to fix{{end}}`},
	), byRef(t, map[string]agent.Child{"look#1": says("all fine"), "tell#1": says("told")}))
	equal(t, "hops", s.refs(), []string{"look#1", "tell#1"})
	if s.text("tell#1") != "nothing to fix" || s.text("look#1") != "the retry loop" {
		t.Errorf("tasks %q, %q", s.text("look#1"), s.text("tell#1"))
	}
}

func TestNothingRuns(t *testing.T) {
	s := follow(t, job(agent.Step{ID: "a", Agent: "x", If: "task == 'other'"}), nil)
	if s.err != nil || s.parks != 0 {
		t.Fatalf("%d parks, %v", s.parks, s.err)
	}
	contains(t, s.result.Text, "No step ran")
}

func TestParallelJoins(t *testing.T) {
	// H27: a list of sends; the same agent may appear more than once.
	s := follow(t, job(
		agent.Step{ID: "p", Parallel: []agent.Step{
			{ID: "a", Agent: "coder", Task: "one", Produces: "One"},
			{ID: "b", Agent: "coder", Task: "two"},
			{ID: "c", Agent: "reviewer", If: "task contains 'never'"},
		}},
		agent.Step{ID: "sum", Agent: "kik", Task: "{{.Steps.a.Text}}+{{.Steps.b.Text}} of {{.Steps.p.State}}"},
	), byRef(t, map[string]agent.Child{"p/a#1": says("A"), "p/b#1": says("B"), "sum#1": says("both")}))
	equal(t, "hops", s.refs(), []string{"p/a#1", "p/b#1", "sum#1"})
	if s.parks != 2 || s.text("sum#1") != "A+B of completed" || s.err != nil {
		t.Errorf("%d parks, %q, %v", s.parks, s.text("sum#1"), s.err)
	}
	if len(s.result.Artifacts) != 1 || s.result.Artifacts[0].Text != "A" {
		t.Errorf("artifacts %+v", s.result.Artifacts)
	}
}

func TestParallelLast(t *testing.T) {
	s := follow(t, job(agent.Step{Parallel: []agent.Step{{ID: "a", Agent: "x"}, {ID: "b", Agent: "y"}}}),
		byRef(t, map[string]agent.Child{"parallel1/a#1": says("A", `{"n":1}`), "parallel1/b#1": says("B")}))
	if s.err != nil || s.result.Text != "a:\nA\n\nb:\nB" || string(s.result.Data) != `{"a":{"n":1}}` {
		t.Errorf("result %+v, %v", s.result, s.err)
	}
}

func TestParallelInALoop(t *testing.T) {
	s := follow(t, job(
		agent.Step{ID: "p", Parallel: []agent.Step{{ID: "a", Agent: "x"}, {ID: "b", Agent: "y"}}},
		agent.Step{ID: "again", If: "steps.a.text != 'good'", Goto: "p", Limit: 3},
	), func(h agent.Hop) agent.Child {
		if h.Ref == "p/a#2" {
			return says("good")
		}
		return says("bad")
	})
	equal(t, "hops", s.refs(), []string{"p/a#1", "p/b#1", "p/a#2", "p/b#2"})
}

func TestStepThatDoesNotComplete(t *testing.T) {
	for _, tt := range []struct{ state, code, reason string }{
		{"failed", agent.CodeExit, "exit code 3"},
		{"rejected", "rejected", "Breaks resume."},
		{"expired", "expired", "nobody decided"},
		{"cancelled", "cancelled", "ann cancelled it"},
		{agent.Refused, "cycle", "Agent 'kik' already in delegation chain"}, // K11
	} {
		t.Run(tt.state, func(t *testing.T) {
			s := follow(t, job(agent.Step{ID: "fix", Agent: "coder"}, agent.Step{ID: "next", Agent: "kik"}),
				byRef(t, map[string]agent.Child{"fix#1": ends(tt.state, tt.code, tt.reason)}))
			want := ": " + tt.code + ": " + tt.reason
			if tt.code == tt.state { // said once
				want = tt.state + ": " + tt.reason
			}
			code := agent.CodeStep
			switch tt.state { // a person's no, or none in time, is no failure
			case "rejected":
				code = agent.CodeRejected
			case "expired":
				code = agent.CodeExpired
			}
			contains(t, ended(t, s, code).Message, "Step fix (agent coder)", tt.state, want)
		})
	}
}

func TestLaterConditionDealsWithTheState(t *testing.T) {
	for name, condition := range map[string]string{
		"member":   "steps.fix.state != 'completed'",
		"index":    `steps["fix"]["state"] in ["failed", "rejected"]`,
		"optional": "steps?.fix?.state == 'failed'",
	} {
		t.Run(name, func(t *testing.T) {
			s := follow(t, job(
				agent.Step{ID: "fix", Agent: "coder"},
				agent.Step{ID: "other", Agent: "second", If: condition, Task: "after: {{.Steps.fix.Error}}"},
			), byRef(t, map[string]agent.Child{"fix#1": ends("failed", "exit", "exit code 3"), "other#1": says("mended")}))
			if s.err != nil || s.result.Text != "mended" || s.text("other#1") != "after: exit code 3" {
				t.Errorf("%+v, %q, %v", s.result, s.text("other#1"), s.err)
			}
		})
	}
}

func TestRetriesThatNeverSucceedFail(t *testing.T) {
	s := follow(t, job(
		agent.Step{ID: "fix", Agent: "coder"},
		agent.Step{ID: "again", If: "steps.fix.state != 'completed'", Goto: "fix", Limit: 2},
	), func(agent.Hop) agent.Child { return ends("failed", "exit", "exit code 3") })
	equal(t, "hops", s.refs(), []string{"fix#1", "fix#2", "fix#3"})
	contains(t, failure(t, s).Message, "Step fix", "exit code 3")
}

func TestReadingAnotherFieldDoesNotDealWithIt(t *testing.T) {
	s := follow(t, job(agent.Step{ID: "fix", Agent: "coder"}, agent.Step{ID: "x", Agent: "y", If: "steps.fix.text == '' or steps.x.state == ''"}),
		func(agent.Hop) agent.Child { return ends("failed", "exit", "exit code 3") })
	equal(t, "hops", s.refs(), []string{"fix#1"})
	failure(t, s)

	// Its own condition was decided before it ran, so that does not count either.
	s = follow(t, job(agent.Step{ID: "fix", Agent: "coder", If: "steps.fix.state == ''"}, agent.Step{ID: "x", Agent: "y"}),
		func(agent.Hop) agent.Child { return ends("failed", "exit", "exit code 3") })
	equal(t, "hops", s.refs(), []string{"fix#1"})
	failure(t, s)
}

func TestBranchesThatFailAreAllNamed(t *testing.T) {
	group := agent.Step{ID: "p", Parallel: []agent.Step{{ID: "a", Agent: "x"}, {ID: "b", Agent: "y"}, {ID: "c", Agent: "z"}}}
	answers := byRef(t, map[string]agent.Child{"p/a#1": ends("failed", "exit", "one"), "p/b#1": says("B"), "p/c#1": ends("rejected", "rejected", "two"), "fix#1": says("fixed")})

	m := failure(t, follow(t, job(group, agent.Step{ID: "fix", Agent: "f"}), answers)).Message
	contains(t, m, "Step a (agent x) ended failed: exit: one", "Step c (agent z) was rejected: two")

	s := follow(t, job(group, agent.Step{ID: "fix", Agent: "f", If: "steps.p.state == 'failed'"}), answers)
	if s.err != nil || s.result.Text != "fixed" {
		t.Errorf("the group's state was read, but %v", s.err)
	}
}

func TestWhatCannotBeDecidedOrWritten(t *testing.T) {
	tests := []struct {
		name string
		step agent.Step
		says []string
	}{
		{"no data", agent.Step{ID: "b", Agent: "y", If: "steps.a.data.score < 80"}, []string{"condition of step b", "steps.a.data.score < 80"}},
		{"not a truth", agent.Step{ID: "b", Agent: "y", If: "steps.a.text"}, []string{"condition of step b"}},
		{"data that is not a truth", agent.Step{ID: "b", Agent: "y", If: "steps.a.runs == 1 ? steps.a.data ?? 1 : false"}, []string{"condition of step b"}},
		{"a key that is not there", agent.Step{ID: "b", Agent: "y", Task: "{{.Steps.a.Data.score}}"}, []string{"Step b has no task", "score"}},
		{"a step that has not run", agent.Step{ID: "b", Agent: "y", Task: "{{.Steps.c.Text}}"}, []string{"Step b has no task", `no entry for key "c"`}},
		{"an artifact that is not there", agent.Step{ID: "b", Agent: "y", Task: "{{.Artifacts.Pack}}"}, []string{`no entry for key "Pack"`}},
		{"an empty task", agent.Step{ID: "b", Agent: "y", Task: "{{if false}}x{{end}} "}, []string{"came out empty"}},
		{"a task too long", agent.Step{ID: "b", Agent: "y", Task: "{{.Steps.a.Text}}{{.Steps.a.Text}}"}, []string{"262144 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := follow(t, job(agent.Step{ID: "a", Agent: "x"}, tt.step, agent.Step{ID: "c", Agent: "z"}),
				func(agent.Hop) agent.Child { return says(strings.Repeat("a", 200<<10)) })
			contains(t, failure(t, s).Message, tt.says...)
		})
	}
	s := follow(t, job(agent.Step{ID: "a", Agent: "x"}), func(agent.Hop) agent.Child { return says("a", "{broken") })
	contains(t, failure(t, s).Message, "Step a (agent x)", "not JSON")
}

func TestLastGuard(t *testing.T) {
	loops := job(agent.Step{ID: "a", Agent: "x", If: "false"}, agent.Step{ID: "j", Goto: "a", Limit: 1 << 30})
	_, err := New(Options{MaxSteps: 50}).Run(t.Context(), loops, &watcher{})
	contains(t, failure(t, story{err: err}).Message, "release took 50 steps")
}

func TestFeedbackBeginsANewRound(t *testing.T) {
	answer := func(h agent.Hop) agent.Child { return says("did " + h.Ref) }
	j := job(agent.Step{ID: "a", Agent: "x", Task: "Do {{.Task}}"})
	first, err := New(Options{}).Run(t.Context(), j, &watcher{})
	if err != nil {
		t.Fatal(err)
	}
	done := says("did a#1")
	done.Ref, done.Ended = "a#1", true
	j.Memo, j.Children = first.Park.Memo, []agent.Child{done}
	j.Feedback = &agent.Feedback{Comment: "Keep the limit.", Comments: []agent.LineComment{{Path: "retry.go", Line: 42, Text: "why?"}}, Note: "2 are left out.", Diff: "--- a\n+++ b\n"}

	s := follow(t, j, answer)
	equal(t, "hops", s.refs(), []string{"2:a#1"})
	contains(t, s.text("2:a#1"), "Do the retry loop", "Keep the limit.", "retry.go:42: why?", "2 are left out.", "+++ b")

	// An engine that drops memo and old children gets the same text under plain refs.
	j.Memo, j.Children = nil, nil
	s = follow(t, j, answer)
	equal(t, "hops", s.refs(), []string{"a#1"})
	contains(t, s.text("a#1"), "Keep the limit.")
}

func TestPlanOfTheBeginningIsKept(t *testing.T) {
	j := job(agent.Step{ID: "a", Agent: "x"}, agent.Step{ID: "b", Agent: "y", Task: "old {{.Steps.a.Text}}"})
	out, err := New(Options{}).Run(t.Context(), j, &watcher{})
	if err != nil {
		t.Fatal(err)
	}
	answered := says("A")
	answered.Ref, answered.Ended = "a#1", true
	j.Memo, j.Children = out.Park.Memo, []agent.Child{answered}
	j.Agent.Steps = []agent.Step{{ID: "other", Agent: "z"}}
	out, err = New(Options{}).Run(t.Context(), j, &watcher{})
	if err != nil || len(out.Park.Hops) != 1 || out.Park.Hops[0].Text != "old A" {
		t.Errorf("after a new configuration: %+v, %v", out, err)
	}
}

func TestRunThatIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Options{}).Run(ctx, scored(), &watcher{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := New(Options{}).Run(t.Context(), scored(), gone{}); !errors.Is(err, agent.ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
	j := scored()
	j.Memo = json.RawMessage("{")
	if _, err := New(Options{}).Run(t.Context(), j, &watcher{}); err == nil {
		t.Error("a broken memo was taken")
	}
}

// gone is the host of an attempt that was lost.
type gone struct{ agent.Host }

func (gone) Progress(context.Context, string) error { return agent.ErrStopped }
