package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/agent/llm/model"
)

// step is what a scripted model does when it is asked.
type step func(ctx context.Context, r model.Request) (model.Response, error)

// script is a model.Client that follows steps and records what it was asked. Past the
// last step it repeats it.
type script struct {
	mu    sync.Mutex
	steps []step
	asked []model.Request
}

var _ model.Client = (*script)(nil)

func (s *script) Complete(ctx context.Context, r model.Request, delta func(agent.Delta)) (model.Response, error) {
	s.mu.Lock()
	r.Messages = slices.Clone(r.Messages)
	s.asked = append(s.asked, r)
	do := s.steps[min(len(s.asked), len(s.steps))-1]
	s.mu.Unlock()
	res, err := do(ctx, r)
	for word := range strings.FieldsSeq(res.Message.Text()) {
		delta(agent.Delta{Kind: "text", Text: word})
	}
	return res, err
}

// requests returns what the model was asked so far.
func (s *script) requests() []model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// says is an answer without calls.
func says(text string) step { return answers(model.StopEnd, text) }

// calls is an answer with calls.
func calls(blocks ...agent.Block) step { return answers(model.StopTools, "", blocks...) }

// answers is a whole answer that used 10 and 5 tokens.
func answers(stop, text string, blocks ...agent.Block) step {
	return func(context.Context, model.Request) (model.Response, error) {
		m := agent.Message{Role: agent.FromModel}
		if text != "" {
			m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: text})
		}
		m.Blocks = append(m.Blocks, blocks...)
		return model.Response{Message: m, Stop: stop, Model: "fake/one", Usage: agent.Usage{InputTokens: 10, OutputTokens: 5}, Reported: true}, nil
	}
}

// echoes answers with the last results that it was given.
func echoes(ctx context.Context, r model.Request) (model.Response, error) {
	var text strings.Builder
	for _, b := range r.Messages[len(r.Messages)-1].Blocks {
		text.WriteString(b.Text + "\n")
	}
	return answers(model.StopEnd, strings.TrimSpace(text.String()))(ctx, r)
}

// fails is a provider's failure.
func fails(kind model.Kind) step {
	return func(context.Context, model.Request) (model.Response, error) {
		return model.Response{}, &model.Error{Kind: kind, Provider: "fake", Message: "no"}
	}
}

// hangs shows nothing and waits for the end.
func hangs(ctx context.Context, _ model.Request) (model.Response, error) {
	<-ctx.Done()
	return model.Response{}, ctx.Err()
}

// call is one call of a tool.
func call(id, tool, input string) agent.Block {
	return agent.Block{Type: agent.CallBlock, ID: id, Name: tool, Input: json.RawMessage(input)}
}

// runnerOf makes a runner whose models follow the script.
func runnerOf(s *script, change ...func(*llm.Options)) *llm.Runner {
	o := llm.Options{Models: func(agent.Spec) (model.Client, error) { return s, nil }}
	for _, c := range change {
		c(&o)
	}
	return llm.New(o)
}

// team is a host with more than one agent, so that the delegating tools are there.
func team() *agenttest.Host {
	h := agenttest.NewHost()
	h.Members = []agent.Member{{Name: "kik", Role: "admin"}, {Name: "helper", Capabilities: []string{"review"}, About: "Reads what others wrote."}}
	return h
}

// task is a job of the agent kik.
func task(text string) agent.Job {
	return agent.Job{TaskID: "tsk_1", DelegationID: "dlg_1", Attempt: 1, Text: text, Channel: "web", Board: "shared",
		Agent: agent.Spec{Name: "kik", Kind: agent.LLM, Prompt: "You plan."}}
}

// play runs a task to its end.
func play(t *testing.T, host *agenttest.Host, job agent.Job, steps ...step) (agent.Result, *script, error) {
	t.Helper()
	s := &script{steps: steps}
	res, err := agenttest.Drive(t.Context(), runnerOf(s), job, host)
	paired(t, host.Turns())
	return res, s, err
}

// paired holds O18: behind every message with calls stands one with a result for each, in
// order, and no two calls have one id.
func paired(t *testing.T, turns []agent.Turn) {
	t.Helper()
	ids := map[string]bool{}
	for i, turn := range turns {
		want := turn.Message.Calls()
		if len(want) == 0 {
			continue
		}
		for _, c := range want {
			if c.ID == "" || ids[c.ID] {
				t.Errorf("turn %d: the id %q is empty or taken", turn.N, c.ID)
			}
			ids[c.ID] = true
			if !json.Valid(c.Input) || c.Input[0] != '{' {
				t.Errorf("turn %d: the input %q is no object", turn.N, c.Input)
			}
		}
		if i+1 == len(turns) {
			continue // the run was stopped in between
		}
		var got []string
		for _, b := range turns[i+1].Message.Blocks {
			got = append(got, b.ID)
		}
		if len(got) != len(want) || slices.ContainsFunc(want, func(c agent.Block) bool { return !slices.Contains(got, c.ID) }) {
			t.Errorf("turn %d has %d calls; turn %d answers %v", turn.N, len(want), turns[i+1].N, got)
		}
	}
}

// results returns the results of the n-th message of tools, from 0.
func results(t *testing.T, turns []agent.Turn, n int) []agent.Block {
	t.Helper()
	for _, turn := range turns {
		if turn.Message.Role != agent.FromTools {
			continue
		}
		if n == 0 {
			return turn.Message.Blocks
		}
		n--
	}
	t.Fatalf("there is no message %d of tools", n)
	return nil
}

// failure returns err as the agent's own failure.
func failure(t *testing.T, err error, code string) *agent.Failure {
	t.Helper()
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Code != code || f.Message == "" {
		t.Fatalf("ended with %v; want the failure %s with a sentence", err, code)
	}
	return f
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q lacks %q", text, p)
		}
	}
}
