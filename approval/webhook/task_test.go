package webhook

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
)

func TestAWebhookKeepsTheContractOfReporters(t *testing.T) {
	for _, format := range []string{Slack, Standard} {
		approvaltest.Reporter(t, false, func(t *testing.T) (approval.Channel, string) {
			target := toHome(receive(t, httptest.NewServer, nil).URL)
			target.Events = []string{AllTasks}
			if target.Format = format; format == Slack {
				target.Secret = ""
			}
			return channel(t, home(), target), target.Name
		})
	}
}

// ended is a task that has ended in a state.
func ended(state orchestrator.State) approval.Progress {
	at := noon.Add(3 * time.Minute)
	r := approvaltest.Request(approval.Landed)
	p := approval.Progress{
		Task: orchestrator.Task{ID: r.TaskID, RootID: r.DelegationID, Agent: "kik", Text: "Fix <!here> the loop\nwith care", Requester: "dora",
			Via: origin.From(origin.Telegram), Repository: "app", CreatedAt: noon, EndedAt: &at},
		Root:     orchestrator.Delegation{ID: r.DelegationID, To: "kik", State: state, EndedAt: &at},
		Requests: []approval.Request{r},
	}
	if state == orchestrator.Completed {
		p.Root.Result = &agent.Result{Text: "SECRET WORDS", Commit: strings.Repeat("4", 40)}
	} else {
		p.Root.Error = &agent.Failure{Code: "boom", Message: "SECRET WORDS"}
	}
	return p
}

// each state of an end, with the kind that is told of it.
var ends = map[orchestrator.State]string{orchestrator.Completed: TaskCompleted, orchestrator.Failed: TaskFailed, orchestrator.Rejected: TaskFailed,
	orchestrator.Expired: TaskFailed, orchestrator.Cancelled: TaskCancelled}

// A target hears of the kinds that it names, each end under one id; one that names none hears
// of requests alone.
func TestATargetHearsOfTheKindsThatItNames(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		told   []string
		asked  bool
	}{
		"none named":     {nil, nil, true},
		"requests":       {[]string{"approval.*"}, nil, true},
		"failures":       {[]string{"task.failed"}, []string{TaskFailed, TaskFailed, TaskFailed}, false},
		"ends":           {[]string{"task.completed", "task.failed"}, []string{TaskCompleted, TaskFailed, TaskFailed, TaskFailed}, false},
		"all of tasks":   {[]string{"task.*"}, []string{TaskCancelled, TaskCompleted, TaskFailed, TaskFailed, TaskFailed}, false},
		"all there is":   {[]string{"task.*", "approval.*"}, []string{TaskCancelled, TaskCompleted, TaskFailed, TaskFailed, TaskFailed}, true},
		"cancelled ones": {[]string{"task.cancelled", "approval.*"}, []string{TaskCancelled}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := receive(t, httptest.NewServer, nil)
			target := toHome(in.URL)
			target.Events = c.events
			ch := channel(t, home(), target)
			if got := len(ch.Told()) == 1; got != (c.told != nil) {
				t.Fatalf("it hears of ends: %v", got)
			}
			if got := len(ch.Addresses(approval.Request{}, nil)) == 1; got != c.asked {
				t.Errorf("it has cards: %v", got)
			}
			ids := map[string]bool{}
			for state := range ends {
				for range 2 {
					id, err := ch.Report(t.Context(), approval.Report{Address: "ops", Kind: approval.EndReport}, ended(state))
					if err != nil {
						t.Fatal(err)
					}
					ids[id] = true
				}
			}
			var kinds []string
			for _, m := range in.messages() {
				body := read(t, m)
				if want := ends[body.Data.Task.State]; body.Type != want || m.header.Get("webhook-signature") == "" {
					t.Errorf("%s is told as %s, want %s", body.Data.Task.State, body.Type, want)
				}
				kinds = append(kinds, body.Type)
			}
			slices.Sort(kinds)
			var twice []string
			for _, k := range c.told {
				twice = append(twice, k, k)
			}
			if !slices.Equal(kinds, twice) {
				t.Errorf("told %v, want each twice of %v", kinds, c.told)
			}
			delete(ids, "")
			if len(ids) != len(c.told) {
				t.Errorf("%d ids for %d ends", len(ids), len(c.told))
			}
		})
	}
}

// A message says what became of the task and what to do, and nothing that an agent said.
func TestAMessageAboutATask(t *testing.T) {
	for _, format := range []string{Slack, Standard} {
		in := receive(t, httptest.NewServer, nil)
		target := toHome(in.URL)
		target.Format, target.Events = format, []string{"task.*"}
		if format == Slack {
			target.Secret = ""
		}
		ch := channel(t, home(), target)
		for _, state := range []orchestrator.State{orchestrator.Completed, orchestrator.Failed} {
			if _, err := ch.Report(t.Context(), approval.Report{Address: "ops"}, ended(state)); err != nil {
				t.Fatal(err)
			}
		}
		done, failed := in.messages()[0].body, in.messages()[1].body
		if all := done + failed; strings.Contains(all, "SECRET") || strings.Contains(all, "with care") || format == Slack && strings.Contains(all, "<!here>") {
			t.Errorf("%s says too much:\n%s", format, all)
		}
		for text, parts := range map[string][]string{
			done:   {"https://gatehouse.example.com/delegations/tsk_01k9zzzzzzzzzzzzzzzz7f3k9q", "4444444", "dora", "kik"},
			failed: {"boom", "gatehouse retry tsk_01k9zzzzzzzzzzzzzzzz7f3k9q"},
		} {
			for _, part := range parts {
				if !strings.Contains(text, part) {
					t.Errorf("%s: no %q in\n%s", format, part, text)
				}
			}
		}
		if format == Standard {
			var m struct {
				Timestamp time.Time
				Data      struct{ Task map[string]any }
			}
			if err := json.Unmarshal([]byte(failed), &m); err != nil || !m.Timestamp.Equal(noon.Add(3*time.Minute)) || m.Data.Task["code"] != "boom" || m.Data.Task["state"] != "failed" {
				t.Errorf("%v: %+v", err, m)
			}
		}
	}
}

// What is refused or out of order is said as for requests.
func TestAnEndThatCannotBeTold(t *testing.T) {
	in := receive(t, httptest.NewServer, status(410, 400, 500))
	target := toHome(in.URL)
	target.Events = []string{"task.*"}
	ch := channel(t, home(), target)
	tell := func(address string) error {
		_, err := ch.Report(t.Context(), approval.Report{Address: address}, ended(orchestrator.Completed))
		return err
	}
	if err := tell("old"); !approval.IsGone(err) {
		t.Errorf("a target that is not there any more: %v", err)
	}
	if err := tell("ops"); !approval.IsGone(err) {
		t.Errorf("410: %v", err)
	}
	if err := tell("ops"); !approval.IsRefused(err) {
		t.Errorf("400: %v", err)
	}
	if err := tell("ops"); err == nil || approval.IsGone(err) || approval.IsRefused(err) {
		t.Errorf("500: %v", err)
	}
	target.Events = []string{"task.done"}
	if err := target.Check(); err == nil || !strings.Contains(err.Error(), `webhook ops: there is no event "task.done". Write some of approval.*, task.*, task.completed`) {
		t.Errorf("a wrong event: %v", err)
	}
}
