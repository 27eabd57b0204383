package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/storetest"
)

// TestAFullDiskFailsStepsByThemselves: of steps that share a commit, those for which there
// is no room say so and leave nothing behind; those that succeeded are there; and when
// there is room again all goes on.
func TestAFullDiskFailsStepsByThemselves(t *testing.T) {
	s := open(t, storetest.Ready(t, sqliteURL(t)))
	const many = 16
	var tasks []orchestrator.Task
	for range many {
		task, _ := newTask(t, s, 1)
		tasks = append(tasks, task)
	}
	step := func(i, size int) error {
		return s.InTask(t.Context(), tasks[i].ID, func(tx orchestrator.Tx) error {
			tx.Task().Handoffs++
			data := event.Data(map[string]any{"text": strings.Repeat("x", size)})
			return tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik", Data: data})
		})
	}
	var pages int
	if err := s.Row(t.Context(), "pragma page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	room := func(pages int) {
		t.Helper()
		if _, err := s.Exec(context.Background(), fmt.Sprint("pragma max_page_count = ", pages)); err != nil {
			t.Fatal(err)
		}
	}
	room(pages + 40)
	went, failed := [many]int{}, 0
	for range 6 {
		var wg sync.WaitGroup
		errs := make([]error, many)
		for i := range many {
			wg.Go(func() { errs[i] = step(i, 100+i%4*6000) })
		}
		wg.Wait()
		for i, err := range errs {
			if err == nil {
				went[i]++
			} else {
				failed++
			}
		}
	}
	if failed == 0 || failed == 6*many {
		t.Errorf("%d of %d steps failed", failed, 6*many)
	}
	room(1 << 30)
	for i, task := range tasks {
		if got, err := s.Task(t.Context(), task.ID); err != nil || got.Handoffs != went[i] {
			t.Errorf("%d steps of task %d went well, and it counted %d: %v", went[i], i, got.Handoffs, err)
		}
		if err := step(i, 100); err != nil {
			t.Errorf("a step with room again: %v", err)
		}
		if err := s.VerifyTask(t.Context(), task.ID); err != nil {
			t.Error(err)
		}
	}
}
