package intake_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
	"gatehouse/orchestrator/trigger/intake"
)

// asking is a node whose agent asks first, with its gate.
func (w *world) asking(specs ...trigger.Spec) (*intake.Intake, *approval.Gateway) {
	w.Helper()
	agents, err := agent.NewRegistry([]agent.Spec{{Name: "kik", Kind: agent.Command, Command: []string{"true"}, AskFirst: true}})
	w.must(err)
	log := slog.New(slog.DiscardHandler)
	gate := approval.New(approval.Options{Store: w.store, Users: w.store, Now: w.clock.Now, Logger: log}, approval.Config{FourEyes: true, Expires: 90 * time.Minute})
	engine := orchestrator.New(orchestrator.Options{Node: "n", Store: w.store, Gate: gate, Hub: &event.Hub{}, Now: w.clock.Now, Log: log},
		orchestrator.Config{Agents: agents, Settings: orchestrator.Settings{Workers: 1, MaxDepth: 3}})
	return intake.New(intake.Options{Store: w.store, Engine: engine, Tasks: w.store, People: w.store, Every: 20 * time.Millisecond, Now: w.clock.Now, Log: log}, w.compile(specs...)), gate
}

// question is the one request about the task of a delivery.
func (w *world) question(d trigger.Delivery) approval.Request {
	w.Helper()
	root, err := w.store.Delegation(w.Context(), w.task(d).RootID)
	w.must(err)
	r, err := w.store.Request(w.Context(), root.ApprovalID)
	w.must(err)
	return r
}

func (w *world) task(d trigger.Delivery) orchestrator.Task {
	w.Helper()
	t, err := w.store.Task(w.Context(), d.TaskID)
	w.must(err)
	return t
}

// A task that waits for a yes is live: with overlap skip its schedule starts no other. It
// expires when nobody decides, and ends; the next time asks anew.
func TestATimeWhoseTaskBeforeWaitsForAYes(t *testing.T) {
	both(t, func(w *world) {
		in, gate := w.asking(hourly())
		w.run(in)
		w.known("hourly")
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started")
		first := w.last("hourly")
		if r := w.question(first); r.State != approval.Pending || r.Handover.From != "schedule hourly" || !strings.Contains(first.Message, "waits for a person") {
			w.Fatalf("asked %+v: %s", r.Handover, first.Message)
		}
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started", "skipped overlap")
		w.clock.Add(31 * time.Minute)
		w.must(gate.Sweep(w.Context()))
		if r, task := w.question(first), w.task(first); r.State != approval.Expired || task.EndedAt == nil {
			w.Errorf("nobody decided: %s, ended %v", r.State, task.EndedAt)
		}
		root, err := w.store.Delegation(w.Context(), w.task(first).RootID)
		w.must(err)
		if root.State != orchestrator.Expired || !strings.Contains(root.Error.Message, "kik was not asked to work") {
			w.Errorf("the root is %s: %+v", root.State, root.Error)
		}
		w.clock.Add(29 * time.Minute)
		w.becomes("hourly", "started", "skipped overlap", "started")
		if second := w.last("hourly"); second.TaskID == first.TaskID || w.question(second).State != approval.Pending {
			w.Error("the next time asked nobody")
		}
	})
}

// Delivering again asks again, whatever was said the first time; a dry run asks nobody and
// says that a person would be asked.
func TestADeliveryThatIsDeliveredAgainIsAskedAboutAgain(t *testing.T) {
	both(t, func(w *world) {
		in, gate := w.asking(hook())
		bob, err := w.store.CreateUser(w.Context(), "test", people.User{Name: "bob", Roles: []people.Role{people.Approver}})
		w.must(err)
		trial, err := in.Try(w.Context(), "ci", trigger.Sample{Body: []byte(`{"ref":"main"}`)})
		w.must(err)
		if !trial.Fires || !strings.Contains(trial.Asks, "before kik works on it") || len(w.came("ci")) != 0 {
			w.Errorf("a dry run: %+v", trial)
		}
		got, err := w.call(in, "one", `{"ref":"main"}`)
		w.must(err)
		first := w.question(got.Delivery)
		_, err = gate.Decide(w.Context(), approval.Ballot{RequestID: first.ID, Principal: people.As(bob, nil), Channel: "web", Verdict: approval.Reject, Digest: first.Revision.Digest, Revision: 1, Comment: "No."})
		w.must(err)
		if task := w.task(got.Delivery); task.EndedAt == nil || w.question(got.Delivery).State != approval.Rejected {
			w.Errorf("after the no: %+v", task)
		}
		again, err := in.Redeliver(w.Context(), got.Delivery.ID, w.ann)
		w.must(err)
		second := w.question(again)
		if second.ID == first.ID || second.TaskID == first.TaskID || second.State != approval.Pending || second.Revision.Digest == first.Revision.Digest {
			w.Errorf("delivered again: %+v", second)
		}
	})
}
