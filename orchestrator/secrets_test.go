package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// An agent reads a token somewhere and says it: in its progress, while it writes, in its
// answer, in its data, in what it hands on. The agents are given what was written; nobody
// who looks on is.
func TestWhatLooksLikeASecretIsMaskedWhereverPeopleLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("kik", "coder")...)
	token := "ghp_" + strings.Repeat("aB3", 12)
	read := make(chan string, 2)
	ready := make(chan struct{})
	w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		<-ready
		read <- job.Text
		w.must(host.Progress(ctx, "I found "+token))
		for _, piece := range []string{"it is " + token[:2], token[2:9], token[9:], " and that is ", "all"} { // as models write
			host.Delta(agent.Delta{Turn: 1, Kind: "text", Text: piece})
		}
		w.must(host.SaveTurn(ctx, modelTurn(1, "it is "+token+" and that is all"), false))
		return agent.Outcome{Result: &agent.Result{Text: "The token is " + token, Data: json.RawMessage(`{"token":"` + token + `","n":1}`),
			Artifacts: []agent.Artifact{{Name: "report.md", Text: "# Found\n" + token + "\n"}}}}, nil
	})
	w.start()
	root := w.send("kik", "Use "+token+" to look")
	stop := w.hears(root.TaskID)
	close(ready)
	w.state(root.ID, orchestrator.Completed)
	if got := <-read; !strings.Contains(got, token) {
		t.Errorf("the agent was given %q", got)
	}
	var live strings.Builder
	for _, p := range stop() {
		if p.Kind == "text" {
			if n := len([]rune(live.String())); p.Offset != n {
				t.Errorf("a piece at %d, after %d characters", p.Offset, n)
			}
			live.WriteString(p.Text)
		}
	}
	if got, want := live.String(), "it is ghp_"+mask.Mark+" and that is all"; got != want {
		t.Errorf("live: %q, want %q", got, want)
	}
	d, err := w.store.Delegation(t.Context(), root.ID)
	w.must(err)
	if d.Result.Text != "The token is ghp_"+mask.Mark || strings.Contains(string(d.Result.Data), token[8:]) || !json.Valid(d.Result.Data) {
		t.Errorf("the answer: %q, %s", d.Result.Text, d.Result.Data)
	}
	if want := "# Found\nghp_" + mask.Mark + "\n"; len(d.Result.Artifacts) != 1 || d.Result.Artifacts[0].Text != want {
		t.Errorf("the artifacts: %+v, want the text %q", d.Result.Artifacts, want)
	}
	seen := map[event.Type]bool{}
	for _, e := range w.events(root.TaskID) {
		if strings.Contains(string(e.Data), token[8:]) {
			t.Errorf("%s has it: %s", e.Type, e.Data)
		}
		seen[e.Type] = seen[e.Type] || strings.Contains(string(e.Data), "ghp_"+mask.Mark)
	}
	for _, kind := range []event.Type{event.TaskCreated, event.Progress, event.MessageCompleted} {
		if !seen[kind] {
			t.Errorf("%s says nothing of it", kind)
		}
	}
}

// A failure repeats what a program said last.
func TestAFailureIsMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("kik")...)
	w.script("kik", func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
		return agent.Outcome{}, agent.Fail(agent.CodeExit, "cannot reach %s", "https://bot:hunter2!@ci.example")
	})
	w.start()
	root := w.send("kik", "go")
	w.state(root.ID, orchestrator.Failed)
	d, err := w.store.Delegation(t.Context(), root.ID)
	w.must(err)
	if d.Error.Message != "cannot reach https://bot:"+mask.Mark+"@ci.example" {
		t.Error(d.Error.Message)
	}
}
