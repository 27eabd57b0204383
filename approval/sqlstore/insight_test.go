package sqlstore_test

import (
	"fmt"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
)

var insightTests = map[string]func(*Suite){
	"each event is counted once, by whatever node":   countedOnce,
	"the live ones below a delegation":               liveBelow,
	"breakers and when they turned":                  breakerTurns,
	"a cursor moves only from where its reader read": cursorMoves,
}

// counted waits until every event is in the order over all tasks, and counts them in
// batches of a size.
func (s *Suite) counted(size int) int {
	s.Helper()
	all := 0
	for deadline := time.Now().Add(patience); ; {
		n, err := s.Store.CountInsight(s.ctx, size)
		s.must(err)
		if all += n; n > 0 {
			continue
		}
		var open int
		tasks, err := s.Store.List(s.ctx, orchestrator.Filter{Limit: 200})
		s.must(err)
		for _, d := range tasks.Items {
			t, err := s.Store.Task(s.ctx, d.TaskID)
			s.must(err)
			open += int(t.LastN)
		}
		if all >= open {
			return all
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d of %d events were ordered", all, open)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// countedOnce (H31): the sums of the table are those of the log, whatever the batches.
func countedOnce(s *Suite) {
	s.run(s.Store)
	other := s.open("two")
	d := s.delegation(s.task("Fix"), func(d *orchestrator.Delegation) {
		d.To, d.Repository, d.ParentID, d.HopKey, d.CreatedAt = "coder", "app", "dlg_root", "k", s.Clock.Now()
	})
	at := s.Clock.Now()
	for _, e := range []struct {
		kind event.Type
		data map[string]any
	}{
		{event.Queued, map[string]any{"agent": "coder"}}, {event.Acknowledged, nil},
		{event.UsageRecorded, map[string]any{"model": "m", "input_tokens": 5, "output_tokens": 2, "usd": 0.25}},
		{event.DelegationRefused, map[string]any{"to": "x", "code": "cycle"}}, {event.Waiting, nil}, {event.Resumed, nil}, {event.Acknowledged, nil},
		{event.Completed, map[string]any{"state": "completed"}},
	} {
		s.Clock.Add(time.Second)
		s.in(d.TaskID, func(tx orchestrator.Tx) error {
			return tx.Append(s.ctx, event.Event{Type: e.kind, DelegationID: d.ID, Actor: "coder", Data: event.Data(e.data)})
		})
	}
	s.counted(3)
	for range 3 { // nothing is left, on any node
		n, err := other.CountInsight(s.ctx, 10)
		s.must(err)
		if n != 0 {
			s.Fatalf("%d events were counted again", n)
		}
	}
	sums, err := s.Store.Insight(s.ctx, insight.Day(at), insight.Day(at), insight.ByAgent, insight.Filter{})
	s.must(err)
	got := insight.Of(sums)
	if got.Tasks != 1 || got.InputTokens != 5 || got.OutputTokens != 2 || got.USD == nil || *got.USD != 0.25 || got.Deadlocks != 1 || got.Runs != 2 ||
		got.Accepted.N != 1 || *got.Accepted.Mean != 2 || *got.Done.Mean != 8 || got.ForChildren.Seconds != 1 || got.Ended["completed"] != 1 {
		s.Errorf("figures of the day: %+v", got)
	}
	all, err := s.Store.AllTime(s.ctx)
	s.must(err)
	if total := insight.Of(all); total.InputTokens != 5 || total.Handoffs != got.Handoffs || insight.HistogramOf(all, insight.Accepted).N != 1 {
		s.Errorf("figures of all time: %+v", total)
	}
	for by, want := range map[insight.Dimension]string{insight.ByAgent: "coder", insight.ByModel: "m", insight.ByRepository: "app", insight.ByDay: "2026-07-01"} {
		sums, err := s.Store.Insight(s.ctx, 0, insight.Day(at)+1, by, insight.Filter{Agent: "coder", Repository: "app"})
		s.must(err)
		found := false
		for _, row := range insight.By(sums, by) {
			found = found || row.Name == want && row.InputTokens == 5
		}
		if !found {
			s.Errorf("by %s there is no %q with its tokens", by, want)
		}
	}
	if later, err := s.Store.Insight(s.ctx, insight.Day(at)+1, insight.Day(at)+9, insight.ByAgent, insight.Filter{}); err != nil || len(later) != 0 {
		s.Errorf("days without events have %d sums, %v", len(later), err)
	}
	if state, err := s.Store.InsightState(s.ctx); err != nil || state.Behind != 0 || !state.At.After(at) {
		s.Errorf("state %+v, %v", state, err)
	}
}

func liveBelow(s *Suite) {
	task := s.task("Fix")
	for i := range 4 {
		s.delegation(task, func(d *orchestrator.Delegation) {
			d.ID, d.To, d.ParentID, d.HopKey, d.Since = fmt.Sprint("dlg_", i), fmt.Sprint("agent", i), "dlg_root", fmt.Sprint(i), s.Clock.Now()
			if i == 1 {
				d.State, d.EndedAt = orchestrator.Completed, &d.Since
			}
			d.Spawned = i == 3
		})
	}
	got, err := s.Store.LiveBelow(s.ctx, []string{"dlg_root", "dlg_none"})
	if err != nil || len(got["dlg_root"]) != 3 || got["dlg_root"][0].Agent != "agent0" || !got["dlg_root"][2].Spawned || len(got["dlg_none"]) != 0 {
		s.Errorf("live below: %+v, %v", got, err)
	}
	live, err := s.Store.Live(s.ctx)
	if err != nil || live["queued"] != 3 || live["completed"] != 0 {
		s.Errorf("live by state: %v, %v", live, err)
	}
	if none, err := s.Store.LiveBelow(s.ctx, nil); err != nil || len(none) != 0 {
		s.Errorf("below nobody: %v, %v", none, err)
	}
}

func breakerTurns(s *Suite) {
	task := s.task("Fix")
	for i, kind := range []event.Type{event.BreakerOpened, event.Progress, event.BreakerClosed} {
		s.Clock.Add(time.Second)
		s.in(task.ID, func(tx orchestrator.Tx) error {
			return tx.Append(s.ctx, event.Event{Type: kind, Actor: "coder", Data: event.Data(map[string]any{"agent": fmt.Sprint("coder", i), "reason": "exit 1"})})
		})
	}
	turns, err := s.Store.BreakerTurns(s.ctx, s.Clock.Now().Add(-time.Hour), s.Clock.Now().Add(time.Second), 10)
	if err != nil || len(turns) != 2 || turns[0].Opened || turns[0].Agent != "coder2" || !turns[1].Opened || turns[1].Reason != "exit 1" {
		s.Errorf("turns %+v, %v", turns, err)
	}
	if all, err := s.Store.Breakers(s.ctx); err != nil || len(all) != 0 {
		s.Errorf("breakers %v, %v; nobody failed", all, err)
	}
}

func cursorMoves(s *Suite) {
	at := s.Clock.Now()
	s.must(s.Store.MoveCursor(s.ctx, "spans", 0, 7, at))
	if err := s.Store.MoveCursor(s.ctx, "spans", 0, 9, at); err == nil {
		s.Error("a cursor moved from where it no longer is")
	}
	pos, when, err := s.Store.Cursor(s.ctx, "spans")
	if err != nil || pos != 7 || !when.Equal(at) {
		s.Errorf("cursor %d at %v, %v", pos, when, err)
	}
}
