package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/web/wire"
)

// hostile is what a model tries in one message, and what it must read of each call.
var hostile = map[string]struct {
	calls []modeltest.Call
	reads []string
}{
	"names without end": {
		[]modeltest.Call{modeltest.ToolCall("delegate_to_agent", asked{"agent": strings.Repeat("ü", 100_000), "task": "t"}),
			modeltest.ToolCall("delegate_to_agent", asked{"capability": strings.Repeat("y", 200_000), "task": "t"})},
		[]string{"unknown_agent: No agent is named", "unknown_agent: No agent has the capability"}},
	"luggage without end": {
		[]modeltest.Call{modeltest.ToolCall("handoff_to_agent", asked{"agent_name": "coder", "task": "t", "artifacts": map[string]string{"plan": strings.Repeat("../", 50_000)}}),
			modeltest.ToolCall("delegate_to_agent", asked{"agent": "coder", "task": "t", "context": entries(500)})},
		[]string{"bad_request: The command object", "bad_request: The context of the hand-over has 500 entries"}},
	// P18: itself in other letters, with what nobody sees, and above it in the chain.
	"itself under another spelling": {
		[]modeltest.Call{modeltest.ToolCall("delegate_to_agent", asked{"agent": "Kіk", "task": "t"}), modeltest.ToolCall("delegate_to_agent", asked{"agent": "ki\u200bk", "task": "t"}),
			modeltest.ToolCall("delegate_to_agent", asked{"agent": "ＫＩＫ", "task": "t"}), modeltest.ToolCall("spawn_agent", asked{"agent": " \u202ekik", "task": "t"}),
			modeltest.ToolCall("delegate_to_agent", asked{"agent": "kik\x00", "task": "t"})},
		[]string{"self: ", "self: ", "self: ", "self: ", "unknown_agent: "}},
	// What belongs to others, and names that no database takes.
	"the context of others": {
		[]modeltest.Call{shares("set", "memory:coder", "k"), shares("delete", "memory:coder", "k"), shares("get", "memory:coder", "k"), shares("set", "handoff:tsk_1", "k"), shares("set", "coder", "delegation:x"),
			shares("set", "n", "a\x00b"), shares("set", "n", "a\u202eb"), shares("get", strings.Repeat("n", 100_000), "\x00"), shares("prefix", "n", "%"),
			modeltest.ToolCall("shared_context", asked{"action": "touch", "namespace": "n", "key": "k", "ttl_seconds": int64(1) << 62})},
		[]string{"forbidden: ", "forbidden: ", "forbidden: ", "forbidden: ", "forbidden: ", "Error: ", "Error: ", "A name of 100000 bytes is too long", "Nothing under n begins with", "Error: "}},
	"budgets out of range": {
		[]modeltest.Call{modeltest.ToolCall("delegate_to_agent", asked{"agent": "coder", "task": "a", "budget": asked{"tokens": -5}}),
			modeltest.ToolCall("delegate_to_agent", asked{"agent": "coder", "task": "b", "budget": asked{"usd": 1e300}}), modeltest.ToolCall("delegate_to_agent", asked{"agent": "coder", "task": "c", "budget": asked{"tokens": 0}})},
		[]string{"-5 tokens is below 1", "out of range", "0 tokens is below 1"}},
}

// asked is the input of a call.
type asked = map[string]any

func shares(action, namespace, key string) modeltest.Call {
	return modeltest.ToolCall("shared_context", asked{"action": action, "namespace": namespace, "key": key, "value": "mine", "prefix": key})
}

func entries(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("key", i)] = "v"
	}
	return all
}

// TestAHostileModel: whatever a model asks for, each call has its answer, the task its end,
// and no event grows with what was sent.
func TestAHostileModel(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p, _ := newModels(t, database, "local", "local", func(a modeltest.Ask) modeltest.Answer {
			small := &modeltest.Usage{Input: 1, Output: 1}
			if try, ok := hostile[a.Conversation]; ok && a.Turn == 1 {
				return modeltest.Answer{Calls: try.calls, Usage: small}
			}
			return modeltest.Answer{Text: "It is over.", Usage: small}
		})
		n := p.Start(p.Config, "")
		for name, try := range hostile {
			var sent wire.Submitted
			if status, err := n.Call(http.MethodPost, "/api/v1/tasks", p.Asker, asked{"agent": "kik", "text": name}, &sent); err != nil || status != http.StatusAccepted {
				t.Fatalf("%s: %d, %v", name, status, err)
			}
			root := n.Through(sent.ID)
			if root.Result == nil || root.Result.Text != "It is over." {
				t.Errorf("%s: %s: %v", name, root.State, root.Error)
			}
			turns, err := p.Store.Turns(t.Context(), root.ID, 0)
			if err != nil || len(turns) != 4 {
				t.Fatalf("%s: %d turns, %v", name, len(turns), err)
			}
			answers := turns[2].Message.Blocks
			if turns[2].Message.Role != agent.FromTools || len(answers) != len(try.reads) {
				t.Fatalf("%s: %d answers; want %d", name, len(answers), len(try.reads))
			}
			for i, want := range try.reads {
				if text := answers[i].Text; len(text) > 8000 || !strings.Contains("Error: "+text, want) {
					t.Errorf("%s, call %d: %.300q; want %q", name, i+1, text, want)
				}
			}
			for _, e := range p.Events(sent.ID) {
				if len(e.Data) > 16<<10 {
					t.Errorf("%s: the event %s has %d bytes", name, e.Type, len(e.Data))
				}
			}
		}
	})
}
