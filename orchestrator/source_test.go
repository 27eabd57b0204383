package orchestrator_test

import (
	"context"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// A8: what a task is about elsewhere is stored with it and stands in its first event; a
// model and the program that it hands work to are told.
func TestTheSourceOfATaskTravels(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "coder"})
		m := meter(t, func(a modeltest.Ask) modeltest.Answer {
			if a.Turn > 1 {
				return modeltest.Say("done")
			}
			return modeltest.Use("delegate_to_agent", map[string]any{"agent": "coder", "task": "part"})
		})
		w.models(m)
		about := agent.Source{Kind: "gitlab", Ref: "group/app!17", URL: "https://git.example/group/app/-/merge_requests/17", Title: "Resume breaks"}
		told := make(chan *agent.Source, 1)
		w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			told <- job.Source
			return agenttest.Done("mended"), nil
		})
		w.start()
		send := func(s *agent.Source) (orchestrator.Delegation, error) {
			_, root, _, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "kik", Text: "Mend it", Source: s, Via: origin.From(origin.API), RequesterID: w.ann.ID, Requester: "ann"})
			return root, err
		}
		root, err := send(&about)
		if err != nil {
			t.Fatal(err)
		}
		w.state(root.ID, orchestrator.Completed)
		if s := <-told; s == nil || *s != about {
			t.Errorf("the program below was told %+v", s)
		}
		for _, ask := range m.Asks() {
			if !strings.Contains(ask.System, `gitlab group/app!17 "Resume breaks" <https://git.example/group/app/-/merge_requests/17>`) {
				t.Errorf("the model was told:\n%s", ask.System)
			}
		}
		task, err := w.store.Task(t.Context(), root.TaskID)
		if err != nil || task.Source == nil || *task.Source != about {
			t.Errorf("stored: %+v, %v", task.Source, err)
		}
		for _, e := range w.events(root.TaskID) {
			if e.Type == event.TaskCreated && !strings.Contains(string(e.Data), "group/app!17") {
				t.Errorf("the first event: %s", e.Data)
			}
		}
		for _, wrong := range []agent.Source{{}, {Kind: "a b"}, {Kind: "gitlab", URL: "javascript:alert(1)"}, {Kind: "gitlab", Ref: "a\nb"}, {Kind: "chat", Title: strings.Repeat("x", 501)}} {
			if _, err := send(&wrong); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
				t.Errorf("%.60v was taken: %v", wrong, err)
			}
		}
	})
}
