package orchestrator_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// While one change of a repository lands, the approved ones behind it hold no worker: other
// work goes on. They land in the order of their yeses.
func TestABusyRepositoryHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), specs("coder", "clerk")...)
	w.config.Settings.Workers = 2
	w.engine.SetConfig(w.config)
	goOn, planned := make(chan struct{}), make(chan struct{}, 10)
	w.trace = func(point string) {
		if point == "landing planned" {
			planned <- struct{}{}
			<-goOn
		}
	}
	w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		return writes(job.TaskID+".txt", "hello\n")(ctx, job, host)
	})
	w.script("clerk", func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
		return agenttest.Done("done"), nil
	})
	w.start()
	var tasks []orchestrator.Delegation
	for i := range 3 {
		root := w.send("coder", fmt.Sprint("change ", i))
		r := w.request(root.TaskID, 1)
		w.approve(r)
		tasks = append(tasks, root)
	}
	<-planned // the first one lands, and takes its time
	look := w.send("clerk", "look")
	w.state(look.ID, orchestrator.Completed)
	for _, root := range tasks[1:] {
		if d, err := w.store.Delegation(t.Context(), root.ID); err != nil || d.State != orchestrator.Landing || d.Holder != "" {
			t.Errorf("behind the one that lands: %s, held by %q, %v", d.State, d.Holder, err)
		}
	}
	queues, err := w.store.LandingQueues(t.Context())
	if err != nil || len(queues) != 1 || queues[0].Repository != "app" || queues[0].Waiting != 3 {
		t.Errorf("queues %+v, %v", queues, err)
	}
	goOn <- struct{}{}
	<-planned
	if queues, err = w.store.LandingQueues(t.Context()); err != nil || len(queues) != 1 || queues[0].Waiting != 2 || queues[0].Landed != 1 || queues[0].Pace <= 0 || queues[0].Left() != 2*queues[0].Pace {
		t.Errorf("when the first one has landed: %+v, %v", queues, err)
	}
	close(goOn)
	for _, root := range tasks {
		w.state(root.ID, orchestrator.Completed)
	}
	merged := strings.Fields(w.git("log", "--first-parent", "--merges", "--reverse", "--format=%(trailers:key=Gatehouse-Delegation,valueonly)", "main"))
	for i, root := range tasks {
		if len(merged) != len(tasks) || merged[i] != root.ID {
			t.Fatalf("landed %v, want them in the order of %v", merged, tasks)
		}
	}
	if queues, err := w.store.LandingQueues(t.Context()); err != nil || len(queues) != 0 {
		t.Errorf("queues after the last landing: %+v, %v", queues, err)
	}
}

// The pace is what one landing takes, however long the queue is.
func TestLandingPace(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	var queue [][2]time.Time // all approved at once, one landing every 3 seconds
	for i := range 30 {
		queue = append(queue, [2]time.Time{at(0), at(3 * (i + 1))})
	}
	for name, c := range map[string]struct {
		landings [][2]time.Time
		n        int
		pace     time.Duration
	}{
		"none":                    {nil, 0, 0},
		"one":                     {[][2]time.Time{{at(0), at(5)}}, 1, 5 * time.Second},
		"a queue":                 {queue, orchestrator.PaceOf, 3 * time.Second},
		"apart, and out of order": {[][2]time.Time{{at(100), at(102)}, {at(0), at(9)}, {at(50), at(51)}}, 3, 2 * time.Second},
		"a clock that went back":  {[][2]time.Time{{at(9), at(5)}}, 1, 0},
	} {
		if n, pace := orchestrator.LandingPace(c.landings); n != c.n || pace != c.pace {
			t.Errorf("%s: %d landings, %s each; want %d, %s", name, n, pace, c.n, c.pace)
		}
	}
	q := orchestrator.LandingQueue{Waiting: 5, HeldUp: 1, Pace: 3 * time.Second}
	if q.Left() != 12*time.Second {
		t.Errorf("%s are left", q.Left())
	}
}
