package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/storetest"
)

// spawning is a world in which boss, a model without a repository, spawns workers.
func spawning(t testing.TB, url string, children int) *world {
	w := newWorld(t, url, agent.Spec{Name: "boss", Kind: agent.LLM}, agent.Spec{Name: "worker"})
	w.config.Repositories = nil
	w.config.Settings.MaxHandoffs = 1_000_000
	w.config.Settings.Spawn.Children = children
	w.engine.SetConfig(w.config)
	return w
}

// sendTo makes a task without a repository.
func (w *world) sendTo(name, text string) orchestrator.Delegation {
	w.t.Helper()
	_, root, _, err := w.engine.Submit(w.t.Context(), orchestrator.Submission{Agent: name, Text: text, Via: origin.From(origin.Web), RequesterID: w.ann.ID, Requester: "ann"})
	if err != nil {
		w.t.Fatal(err)
	}
	return root
}

// announces is a turn that announces children.
func announces(n int, children []agent.Child) agent.Turn {
	return agent.Turn{N: n, Message: agent.Message{Role: agent.FromUser}, Children: ids(children)}
}

// P44, P45, P50, P54: spawning returns at once; one too many is refused with the exact
// count; the same again is the child that there is, while it works and after; P46, P47:
// the ends come in their order, each told once; who ends takes what still works with it.
func TestSpawnedChildrenAreToldInTheOrderOfTheirEnds(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := spawning(t, url, 2)
		gates := map[string]*agenttest.Gate{"x": agenttest.NewGate(), "y": agenttest.NewGate(), "z": agenttest.NewGate()}
		worker := w.script("worker", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			return gates[job.Text].Then(agenttest.Answer("did "+job.Text))(ctx, job, host)
		})
		var problems []string
		check := func(ok bool, format string, args ...any) {
			if !ok {
				problems = append(problems, fmt.Sprintf(format, args...))
			}
		}
		spawn := func(ctx context.Context, host agent.Host, text string) agent.Child {
			c, err := host.Delegate(ctx, agent.Hop{Ref: "any", To: "worker", Text: text, Spawn: true})
			check(err == nil && c.Spawn != (c.State == agent.Refused), "spawning %s: %+v, %v", text, c, err)
			return c
		}
		w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			switch len(job.Turns) {
			case 0:
				x, y := spawn(ctx, host, "x"), spawn(ctx, host, "y")
				check(x.ID != y.ID && spawn(ctx, host, "x").ID == x.ID, "the same task was spawned twice")
				third := spawn(ctx, host, "z")
				check(third.State == agent.Refused && third.Error.Code == "no_capacity" && strings.Contains(third.Error.Message, "has 2 spawned agents at work, and 2 at once"), "the third: %+v", third.Error)
				gates["y"].Open()
				return agent.Outcome{Park: &agent.Park{ForSpawned: true}}, host.SaveTurn(ctx, calls(1), false)
			case 1:
				ended, err := host.Ended(ctx)
				check(err == nil && len(ended) == 1 && ended[0].Result.Text == "did y", "after y ended: %+v, %v", ended, err)
				gates["x"].Open()
				return agent.Outcome{Park: &agent.Park{ForSpawned: true}}, host.SaveTurn(ctx, announces(2, ended), false)
			}
			ended, err := host.Ended(ctx)
			check(err == nil && len(ended) == 1 && ended[0].Result.Text == "did x", "after x ended: %+v, %v", ended, err)
			check(spawn(ctx, host, "x").Ended, "x was spawned again")
			spawn(ctx, host, "z")
			<-worker.Started()
			<-worker.Started()
			<-worker.Started()
			return agenttest.Done("all told"), host.SaveTurn(ctx, announces(3, ended), false)
		})
		w.start()
		root := w.state(w.sendTo("boss", "go").ID, orchestrator.Completed)
		for _, p := range problems {
			t.Error(p)
		}
		tree, err := w.store.Tree(t.Context(), root.TaskID)
		if err != nil || len(tree) != 4 || tree[3].State != orchestrator.Cancelled || worker.Runs() != 3 || root.OpenSpawned != 0 {
			t.Errorf("%v: %d delegations, %d runs\n%s", err, len(tree), worker.Runs(), w.history(root.TaskID))
		}
		if w.count(root.TaskID, event.Announced) != 2 || w.count(root.TaskID, event.DelegationRefused) != 1 {
			t.Errorf("history:\n%s", w.history(root.TaskID))
		}
	})
}

// O23: what one agent had of another is on record in its namespace, in the transaction
// that ended it; the setting switches that off.
func TestTheEndOfADelegationIsOnRecord(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("kik", "coder")...)
		w.script("kik", agenttest.HandOn("coder"))
		w.script("coder", agenttest.Answer("v2.3.1"))
		w.start()
		for _, on := range []bool{false, true} {
			w.config.Settings.RecordEnds = on
			w.engine.SetConfig(w.config)
			root := w.state(w.send("kik", "Which version?").ID, orchestrator.Completed)
			found, err := w.store.Context("test").Query(t.Context(), "kik", 9)
			if err != nil || len(found) != map[bool]int{true: 1}[on] {
				t.Fatalf("recorded %v: %d entries, %v", on, len(found), err)
			}
			if on && (!regexp.MustCompile(`^delegation:coder:\d+-[0-9a-f]{8}$`).MatchString(found[0].Key) || !strings.Contains(found[0].Value, `"result":"v2.3.1"`) ||
				!strings.Contains(found[0].Value, root.TaskID) || found[0].ExpiresAt == nil) {
				t.Errorf("the record is %+v", found[0])
			}
		}
	})
}

// P45: a spawned child runs no longer than the limit, and its caller is told.
func TestASpawnedChildHasATimeout(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := spawning(t, url, 2)
		w.config.Settings.Spawn.Timeout = 50 * time.Millisecond
		w.engine.SetConfig(w.config)
		w.script("worker", agenttest.NewGate().Then(agenttest.Answer("never")))
		w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if ended, err := host.Ended(ctx); err != nil || len(ended) > 0 {
				return agenttest.Done(ended[0].Error.Error()), err
			}
			_, err := host.Delegate(ctx, agent.Hop{To: "worker", Text: "x", Spawn: true})
			return agent.Outcome{Park: &agent.Park{ForSpawned: true}}, err
		})
		w.start()
		if d := w.state(w.sendTo("boss", "go").ID, orchestrator.Completed); d.Result.Text != "timeout: worker ran longer than 50ms, the limit of spawned agents." {
			t.Errorf("boss was told %q", d.Result.Text)
		}
	})
}

// P53: a run that ignores its end is given up: its slot is free for others, its calls are
// refused, and the node stops all the same.
func TestARunThatIgnoresItsEndIsGivenUp(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := spawning(t, url, 2)
		w.config.Settings.Workers, w.config.Settings.KillAfter = 1, 20*time.Millisecond
		w.engine.SetConfig(w.config)
		release, late := make(chan struct{}), make(chan error, 1)
		stuck := w.script("worker", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if job.Text == "well" {
				return agenttest.Done("well"), nil
			}
			<-release
			late <- host.Progress(ctx, "still here")
			return agenttest.Done("late"), nil
		})
		w.start()
		root := w.sendTo("worker", "ill")
		<-stuck.Started()
		if _, err := w.engine.Cancel(t.Context(), root.ID, "ann"); err != nil {
			t.Fatal(err)
		}
		w.state(w.sendTo("worker", "well").ID, orchestrator.Completed) // there is one slot
		if w.engine.Stuck() != 1 {
			t.Errorf("%d runs were counted as stuck", w.engine.Stuck())
		}
		n := len(w.events(root.TaskID))
		close(release)
		if err := <-late; !errors.Is(err, agent.ErrStopped) {
			t.Errorf("a call of the run that was given up returned %v", err)
		}
		w.stop()
		if d := w.state(root.ID, orchestrator.Cancelled); len(w.events(root.TaskID)) != n || d.Result != nil {
			t.Errorf("the late answer was taken: %+v", d.Result)
		}
	})
}

// P37, P38: a cancel over three levels on two nodes ends every run, wherever it is.
func TestACancelReachesTheRunsOfOtherNodes(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	w := newWorld(t, url, specs("a", "b", "c")...)
	other := *w
	other.data, other.scripts = t.TempDir(), map[string]*agenttest.Scripted{}
	other.open(url)
	began, ended := make(chan struct{}), make(chan struct{})
	for _, node := range []*world{w, &other} {
		node.config.Settings.Workers = 1
		node.engine.SetConfig(node.config)
		node.script("a", agenttest.HandOn("b"))
		node.script("b", agenttest.HandOn("c"))
		node.script("c", func(ctx context.Context, _ agent.Job, _ agent.Host) (agent.Outcome, error) {
			close(began)
			<-ctx.Done()
			close(ended)
			return agent.Outcome{}, ctx.Err()
		})
		node.start()
	}
	root := w.send("a", "go")
	<-began
	runs, err := w.store.Tree(t.Context(), root.TaskID)
	if err != nil || len(runs) != 3 {
		t.Fatalf("%d levels, %v", len(runs), err)
	}
	far := w // the node that does not run the leaf
	if runs[2].Holder == filepath.Base(w.data) {
		far = &other
	}
	start := time.Now()
	if _, err := far.engine.Cancel(t.Context(), root.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the leaf runs on")
	}
	t.Logf("all ended after %s; the aim is 2 s. They ran on %s, %s and %s", time.Since(start), runs[0].Holder, runs[1].Holder, runs[2].Holder)
	n := len(w.events(root.TaskID))
	w.stop()
	other.stop()
	if got := len(w.events(root.TaskID)); got != n {
		t.Errorf("%d events came after the end", got-n)
	}
}

// manyChildren is how many children TestManySpawnedChildren has: GATEHOUSE_TEST_MANY, or
// as many as the suite has time for.
func manyChildren(t *testing.T) int {
	text := os.Getenv("GATEHOUSE_TEST_MANY")
	if text == "" {
		return 1000
	}
	many, err := strconv.Atoi(text)
	if err != nil || many < 10 {
		t.Fatalf("GATEHOUSE_TEST_MANY is %q; it must be a number from 10", text)
	}
	return many
}

// Many children, five at a time: their order is that of their ends, nobody is told
// twice, and neither goroutines nor memory grow with their number (P44, P47). Ten
// thousand with GATEHOUSE_TEST_MANY=10000.
func TestManySpawnedChildren(t *testing.T) {
	const limit = 5
	many := manyChildren(t)
	w := spawning(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), limit)
	w.script("worker", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		return agenttest.Done(job.Text), nil
	})
	var order []string
	var got atomic.Int64     // how many are told, and how many were spawned
	var early, late [2]int64 // goroutines and heap
	measure := func() [2]int64 { return [2]int64{int64(runtime.NumGoroutine()), heap()} }
	turn, spawned := 0, 0
	w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		ended, err := host.Ended(ctx)
		if err != nil {
			return agent.Outcome{}, err
		}
		for _, c := range ended {
			order = append(order, c.ID)
		}
		got.Add(int64(len(ended)))
		if len(ended) > 0 {
			turn++
			if err := host.SaveTurn(ctx, announces(turn, ended), false); err != nil {
				return agent.Outcome{}, err
			}
		}
		switch {
		case len(order) >= many/10 && early[0] == 0:
			early = measure()
		case len(order) == many:
			late = measure()
			return agenttest.Done("all"), nil
		}
		full := spawned == many
		for !full {
			c, err := host.Delegate(ctx, agent.Hop{To: "worker", Text: fmt.Sprint("n", spawned), Spawn: true})
			if err != nil {
				return agent.Outcome{}, err
			}
			if c.State == agent.Refused {
				break
			}
			spawned++
			got.Add(1)
			full = spawned == many
		}
		return agent.Outcome{Park: &agent.Park{ForSpawned: true}}, nil
	})
	w.start()
	start := time.Now()
	root := w.sendTo("boss", "go")
	for seen, since := int64(-1), start; ; time.Sleep(20 * time.Millisecond) {
		d, err := w.store.Delegation(t.Context(), root.ID)
		if err != nil || d.State.Ended() {
			break
		}
		if n := got.Load(); n != seen {
			seen, since = n, time.Now()
		}
		if time.Since(since) > time.Minute {
			t.Fatalf("nothing happens any more: it is %s, %d spawned and told", d.State, seen)
		}
	}
	t.Logf("%d children in %s; goroutines %d → %d, heap %d → %d kB", many, time.Since(start), early[0], late[0], early[1]>>10, late[1]>>10)
	w.stop()
	tree, err := w.store.Tree(t.Context(), root.TaskID)
	if err != nil || len(tree) != many+1 || len(order) != many {
		t.Fatalf("%d delegations, %d told: %v", len(tree), len(order), err)
	}
	ends := map[string]time.Time{}
	for _, d := range tree {
		ends[d.ID] = *d.EndedAt
	}
	if !slices.IsSortedFunc(order, func(a, b string) int { return ends[a].Compare(ends[b]) }) {
		t.Error("children were not told in the order of their ends")
	}
	// The scripts of the test keep every job, about 2 kB each; the engine must add nothing.
	if late[0] > early[0]+20 || late[1] > early[1]+32<<20 {
		t.Errorf("goroutines grew from %d to %d, the heap from %d to %d bytes", early[0], late[0], early[1], late[1])
	}
}
