package intake_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
	"gatehouse/orchestrator/trigger"
	"gatehouse/orchestrator/trigger/intake"
)

// world is a database with nodes whose engines take tasks and do not work on them.
type world struct {
	*testing.T
	url   string
	clock *storetest.Clock
	store *sqlstore.Store
	ann   people.User
}

// both runs a story on both databases.
func both(t *testing.T, story func(w *world)) {
	for name, url := range map[string]func(*testing.T) string{
		"SQLite": func(t *testing.T) string {
			return storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "intake.db"))
		},
		"PostgreSQL": func(t *testing.T) string { return storetest.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, url: url(t), clock: storetest.NewClock()}
			w.store = w.open("one")
			var err error
			w.ann, err = w.store.CreateUser(t.Context(), "test", people.User{Name: "ann", Roles: []people.Role{people.Operator}})
			w.must(err)
			story(w)
		})
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) open(node string) *sqlstore.Store {
	w.Helper()
	st, err := sqlstore.Open(w.Context(), w.url, store.Options{Node: node, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Pool: 4})
	w.must(err)
	w.Cleanup(func() { w.must(st.Close()) })
	return st
}

// moody is an engine that may be out of order.
type moody struct {
	*orchestrator.Engine
	mu   sync.Mutex
	with error
	n    int
}

func (m *moody) Submit(ctx context.Context, s orchestrator.Submission) (orchestrator.Task, orchestrator.Delegation, bool, error) {
	m.mu.Lock()
	m.n++
	err := m.with
	m.mu.Unlock()
	if err != nil {
		return orchestrator.Task{}, orchestrator.Delegation{}, false, err
	}
	return m.Engine.Submit(ctx, s)
}

func (m *moody) fails(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.with = err
}

// node is an intake on a store, with these triggers.
func (w *world) node(st *sqlstore.Store, specs ...trigger.Spec) (*intake.Intake, *moody) {
	w.Helper()
	agents, err := agent.NewRegistry([]agent.Spec{{Name: "kik", Kind: agent.Command, Command: []string{"true"}}})
	w.must(err)
	engine := &moody{Engine: orchestrator.New(orchestrator.Options{Node: "n", Store: st, Hub: &event.Hub{}, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler)},
		orchestrator.Config{Agents: agents, Settings: orchestrator.Settings{Workers: 1, MaxDepth: 3}})}
	return intake.New(intake.Options{Store: st, Engine: engine, Tasks: st, People: st, Every: 20 * time.Millisecond, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler)}, w.compile(specs...)), engine
}

func (w *world) compile(specs ...trigger.Spec) []*trigger.Trigger {
	w.Helper()
	var all []*trigger.Trigger
	for _, s := range specs {
		t, problems := trigger.Compile(s)
		if len(problems) > 0 {
			w.Fatalf("%+v", problems)
		}
		all = append(all, t)
	}
	return all
}

// run runs a node until the returned function is called.
func (w *world) run(in *intake.Intake) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		w.must(<-done)
	})
	w.Cleanup(stop)
	return stop
}

// until waits until ok is true.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			w.Fatalf("waited in vain: %s", what)
		}
	}
}

// came lists what came for a trigger, oldest first, as "state code".
func (w *world) came(name string) []string {
	w.Helper()
	page, err := w.store.Deliveries(w.Context(), trigger.Filter{Trigger: name, Limit: 200})
	w.must(err)
	var all []string
	for _, d := range page.Items {
		all = append(all, strings.TrimSpace(string(d.State)+" "+d.Code))
	}
	slices.Reverse(all)
	return all
}

// becomes waits until that is what came for a trigger.
func (w *world) becomes(name string, want ...string) {
	w.Helper()
	w.until(strings.Join(want, ", "), func() bool { return slices.Equal(w.came(name), want) })
}

// last is the newest delivery of a trigger.
func (w *world) last(name string) trigger.Delivery {
	w.Helper()
	page, err := w.store.Deliveries(w.Context(), trigger.Filter{Trigger: name, Limit: 1})
	w.must(err)
	if len(page.Items) == 0 {
		w.Fatalf("nothing came for %s", name)
	}
	return page.Items[0]
}

// known makes schedules begin now.
func (w *world) known(names ...string) {
	w.Helper()
	for _, name := range names {
		_, err := w.store.ScheduledUntil(w.Context(), name, w.clock.Now())
		w.must(err)
	}
}

// end lets the task of a delivery end.
func (w *world) end(d trigger.Delivery) {
	w.Helper()
	w.must(w.store.InTask(w.Context(), d.TaskID, func(tx orchestrator.Tx) error {
		root, err := tx.Delegation(w.Context(), tx.Task().RootID)
		if err != nil {
			return err
		}
		return orchestrator.Fail(w.Context(), tx, root, agent.Fail(agent.CodeExit, "it is over"))
	}))
}

// hourly is a schedule; the clock of the tests stands at noon.
func hourly(change ...func(*trigger.Spec)) trigger.Spec {
	s := trigger.Spec{Name: "hourly", Kind: trigger.Schedule, Cron: "0 * * * *", Agent: "kik", Task: "Review at {{delivery}}", Owner: "ann"}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestATimeIsOneTaskOnAllNodes(t *testing.T) {
	both(t, func(w *world) {
		one, _ := w.node(w.store, hourly(func(s *trigger.Spec) { s.Overlap = trigger.OverlapAllow }))
		two, _ := w.node(w.open("two"), hourly(func(s *trigger.Spec) { s.Overlap = trigger.OverlapAllow }))
		w.run(one)
		w.run(two)
		w.known("hourly")
		if got := w.came("hourly"); len(got) != 0 {
			w.Fatalf("a new schedule makes up for nothing: %v", got)
		}
		for i := range 3 {
			w.clock.Add(time.Hour)
			w.becomes("hourly", slices.Repeat([]string{"started"}, i+1)...)
		}
		d := w.last("hourly")
		task, err := w.store.Task(w.Context(), d.TaskID)
		w.must(err)
		if task.Text != "Review at 2026-07-01T15:00:00Z" || task.RequesterID != w.ann.ID || task.Via != origin.Trigger(origin.Schedule, "hourly") {
			w.Errorf("task %+v", task)
		}
		w.clock.Add(-2 * time.Hour) // a clock that is set back runs nothing twice
		w.clock.Add(90 * time.Minute)
		w.clock.Add(90 * time.Minute)
		w.becomes("hourly", slices.Repeat([]string{"started"}, 4)...)
	})
}

func TestTimesThatPassedWhileNobodyRan(t *testing.T) {
	both(t, func(w *world) {
		skip, run := hourly(), hourly(func(s *trigger.Spec) { s.Name, s.Missed = "catch-up", trigger.MissedRun })
		in, _ := w.node(w.store, skip, run)
		stop := w.run(in)
		w.known("hourly", "catch-up")
		stop()
		w.clock.Add(3*time.Hour + 20*time.Minute)
		w.run(in)
		w.becomes("hourly", "skipped missed")
		w.becomes("catch-up", "started")
		if d := w.last("hourly"); !strings.HasPrefix(d.Message, "3 of its times had passed") {
			w.Errorf("it says %q", d.Message)
		}
		w.clock.Add(40 * time.Minute) // and the next one is on time
		w.becomes("hourly", "skipped missed", "started")
	})
}

func TestATimeWhoseTaskBeforeStillLives(t *testing.T) {
	both(t, func(w *world) {
		queue := func(s *trigger.Spec) { s.Name, s.Overlap = "queue", trigger.OverlapQueue }
		allow := func(s *trigger.Spec) { s.Name, s.Overlap = "allow", trigger.OverlapAllow }
		in, _ := w.node(w.store, hourly(), hourly(queue), hourly(allow))
		w.run(in)
		w.known("hourly", "queue", "allow")
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started")
		w.becomes("queue", "started")
		first := w.last("queue")
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started", "skipped overlap")
		w.becomes("queue", "started", "stored overlap")
		w.becomes("allow", "started", "started")
		w.clock.Add(time.Hour)
		w.becomes("queue", "started", "stored overlap", "skipped overlap")
		w.end(first)
		w.clock.Add(10 * time.Second)
		w.becomes("queue", "started", "started", "skipped overlap")
	})
}

// hook is a webhook whose secret is the header itself, so that calls are short.
func hook() trigger.Spec {
	return trigger.Spec{Name: "ci", Kind: trigger.Webhook, Source: trigger.GitLab, Secrets: []string{"a secret of good length"}, Agent: "kik", Task: "Look at {{.ref}}", Owner: "ann"}
}

// call posts to the webhook.
func (w *world) call(in *intake.Intake, key, body string) (intake.Receipt, error) {
	w.Helper()
	h := map[string][]string{"X-Gitlab-Token": {"a secret of good length"}, "Idempotency-Key": {key}, "X-Gitlab-Event": {"Push Hook"}}
	k, err := in.Hook("ci", "10.0.0.7", h)
	w.must(err)
	return k.Receive(w.Context(), h, []byte(body))
}

func TestADeliveryWaitsForAnEngineThatIsOutOfOrder(t *testing.T) {
	both(t, func(w *world) {
		in, engine := w.node(w.store, hook())
		engine.fails(errors.New("the disk is full"))
		r, err := w.call(in, "one", `{"ref":"main"}`)
		w.must(err)
		if !r.Fresh || r.Delivery.State != trigger.Stored || r.Root != nil {
			w.Fatalf("receipt %+v", r)
		}
		if d := w.last("ci"); !strings.Contains(d.Message, "the disk is full") || d.Code != orchestrator.CodeUnavailable {
			w.Errorf("it says %+v", d)
		}
		w.run(in)
		engine.fails(nil)
		w.clock.Add(time.Minute)
		w.becomes("ci", "started")
		again, err := w.call(in, "one", `{"ref":"main"}`)
		w.must(err)
		if again.Fresh || again.Root == nil || again.Delivery.ID != r.Delivery.ID {
			w.Errorf("again: %+v", again)
		}
	})
}

func TestWhatNeverWorksIsGivenUp(t *testing.T) {
	both(t, func(w *world) {
		in, engine := w.node(w.store, hook())
		engine.fails(errors.New("the disk is full"))
		_, err := w.call(in, "one", `{"ref":"main"}`)
		w.must(err)
		w.run(in)
		w.until("it to be given up", func() bool {
			w.clock.Add(time.Hour)
			return slices.Equal(w.came("ci"), []string{"failed unavailable"})
		})
		if d := w.last("ci"); !strings.Contains(d.Message, "20 tries") {
			w.Errorf("it says %q", d.Message)
		}
		engine.fails(nil)
		s, err := in.Status(w.Context(), "ci")
		w.must(err)
		if s.Last == nil || s.Last.State != trigger.Failed || s.Problem != "" {
			w.Errorf("status %+v", s)
		}
	})
}

func TestATriggerThatIsGoneStartsNothing(t *testing.T) {
	both(t, func(w *world) {
		in, engine := w.node(w.store, hook())
		engine.fails(errors.New("the disk is full"))
		_, err := w.call(in, "one", `{"ref":"main"}`)
		w.must(err)
		in.SetTriggers(nil)
		engine.fails(nil)
		w.run(in)
		w.clock.Add(time.Minute)
		w.becomes("ci", "refused gone")
		if _, err := in.Redeliver(w.Context(), w.last("ci").ID, w.ann); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			w.Errorf("delivered again: %v", err)
		}
	})
}

func TestAKeyOfTheTriggersOwnJoinsDeliveries(t *testing.T) {
	both(t, func(w *world) {
		s := hook()
		s.Key = "{{.ref}}"
		in, _ := w.node(w.store, s)
		first, err := w.call(in, "one", `{"ref":"main","n":1}`)
		w.must(err)
		second, err := w.call(in, "two", `{"ref":"main","n":2}`)
		w.must(err)
		other, err := w.call(in, "three", `{"ref":"next","n":3}`)
		w.must(err)
		if !second.Fresh || second.Delivery.TaskID != first.Delivery.TaskID || other.Delivery.TaskID == first.Delivery.TaskID || first.Root == nil {
			w.Errorf("tasks %s, %s, %s", first.Delivery.TaskID, second.Delivery.TaskID, other.Delivery.TaskID)
		}
		again, err := in.Redeliver(w.Context(), first.Delivery.ID, w.ann)
		w.must(err)
		if again.TaskID == "" || again.TaskID == first.Delivery.TaskID {
			w.Errorf("who delivers again wants a new task: %+v", again)
		}
	})
}

// A flood of wrong signatures is one event a minute, with how many there were.
func TestAFloodOfWrongSignaturesIsOneLine(t *testing.T) {
	both(t, func(w *world) {
		in, _ := w.node(w.store, hook())
		stop := w.run(in)
		for range 1000 {
			h := map[string][]string{"X-Gitlab-Token": {"a guess"}}
			if _, err := in.Hook("ci", "10.0.0.7", h); !errors.Is(err, trigger.ErrSignature) {
				w.Fatalf("a guess is heard: %v", err)
			}
			if _, err := in.Hook("nothing", "10.0.0.7", h); !errors.Is(err, trigger.ErrSignature) {
				w.Fatalf("a hook that there is not: %v", err)
			}
		}
		stop()
		refused, err := w.store.RefusedCalls(w.Context(), "ci")
		w.must(err)
		if refused.Calls != 1000 || refused.Address != "10.0.0.7" || refused.Reason != trigger.WrongSignature && refused.Reason != trigger.Unsigned || refused.Last.IsZero() {
			w.Errorf("its page would say %+v", refused)
		}
		events, err := w.store.Events(w.Context(), event.System, 0, 200)
		w.must(err)
		calls, lines := 0.0, 0
		for _, e := range events {
			if e.Type == event.TriggerRefused {
				lines++
				calls += number(w, e, "calls")
			}
		}
		if lines < 1 || lines > 2 || calls != 1000 {
			w.Errorf("%d events with %v calls in %+v", lines, calls, events)
		}
	})
}
