package orchestrator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/sharedctx"
)

// P2, P6, P15, P21b: what a model leaves without a namespace is its task's. The agents of the
// task read it in their prompts, the next task does not know of it, who asked for the task
// reads it, and for anybody else it is not there. "shared" is named, and is the house's. The
// channel and the chat that the task came from are in every prompt, a child's too.
func TestTheBoardIsTheTasks(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "coder", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "writer"})
		m := meter(t, func(a modeltest.Ask) modeltest.Answer {
			if a.Conversation != "first" || a.Turn > 2 {
				return modeltest.Say("done")
			}
			if a.Turn == 1 {
				return modeltest.Answer{Calls: []modeltest.Call{
					modeltest.ToolCall("shared_context", map[string]any{"action": "set", "key": "plan", "value": "BOARD-1"}),
					modeltest.ToolCall("shared_context", map[string]any{"action": "set", "namespace": "shared", "key": "rule", "value": "HOUSE-1"})}}
			}
			return modeltest.Use("delegate_to_agent", map[string]any{"agent": "coder", "task": "part"})
		})
		w.models(m)
		w.script("writer", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if job.Channel != "telegram" || job.Chat != "-100" {
				t.Errorf("the program is told %q %q", job.Channel, job.Chat)
			}
			return agenttest.Done("written"), host.PutContext(ctx, agent.ContextWrite{Key: "note", Value: "PROGRAM-1"})
		})
		w.start()
		send := func(to, text string) orchestrator.Delegation {
			_, root, _, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: to, Text: text, Via: origin.From(origin.Telegram), Chat: "-100", RequesterID: w.ann.ID, Requester: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			return w.state(root.ID, orchestrator.Completed)
		}
		first := send("kik", "first")
		send("kik", "second")
		program := send("writer", "third")
		for _, ask := range m.Asks() {
			board, house := strings.Contains(ask.System, "BOARD-1"), strings.Contains(ask.System, "HOUSE-1")
			resumed := ask.Conversation == "first" && ask.Turn > 2 // its prompt is as of then
			if board != (ask.Conversation == "part" || resumed) || house != (ask.Conversation != "first" || resumed) || !strings.Contains(ask.System, "by telegram, chat -100") {
				t.Errorf("%s knows of the board: %v, of the house's: %v\n%s", ask.Conversation, board, house, ask.System)
			}
		}
		ns := sharedctx.Board(first.TaskID)
		mine, others, house := w.store.ContextOf("ann", w.ann.ID), w.store.ContextOf("bob", w.bob.ID), w.store.Context("gatehouse")
		e, err := mine.Get(t.Context(), ns, "plan")
		if err != nil || e.Value != "BOARD-1" || e.Scope != sharedctx.ScopeTask || e.Agent != "kik" {
			t.Errorf("ann reads %+v, %v", e, err)
		}
		if e, err := mine.Get(t.Context(), sharedctx.Board(program.TaskID), "note"); err != nil || e.Value != "PROGRAM-1" {
			t.Errorf("what the program left is %+v, %v", e, err)
		}
		if e, err := others.Get(t.Context(), "shared", "rule"); err != nil || e.Scope != sharedctx.ScopeHouse {
			t.Errorf("bob reads %+v, %v", e, err)
		}
		for what, err := range map[string]error{"get": got(others.Get(t.Context(), ns, "plan")), "list": got(others.Prefix(t.Context(), ns, "", 10)), "delete": others.Delete(t.Context(), ns, "plan"),
			"set": got(others.Set(t.Context(), e)), "touch": got(others.Touch(t.Context(), ns, "plan", 0)), "uses": got(others.Uses(t.Context(), ns, "plan", 0, 10))} {
			if !errors.Is(err, orchestrator.ErrNotFound) {
				t.Errorf("bob's %s: %v", what, err)
			}
		}
		for who, topics := range map[int]sharedctx.Store{1: others, 3: mine, 4: house} {
			found, err := topics.Topics(t.Context(), "", "", 10)
			if want := min(who, 3); err != nil || len(found) != want {
				t.Errorf("%d namespaces are listed, want %d: %v, %v", len(found), want, found, err)
			}
		}
	})
}

func got[T any](_ T, err error) error { return err }
