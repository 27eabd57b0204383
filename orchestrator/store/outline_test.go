package store_test

import (
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// A page reads of a task what it shows: the tree without its texts, some delegations in
// full, those that have a word, and the events of a kind, from either end.
func TestATaskIsReadInParts(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		task, root := newTask(t, s, 5)
		_, other := newTask(t, s, 1)
		ctx := t.Context()
		tree, err := s.Outline(ctx, task.ID)
		if err != nil || len(tree) != 1 || tree[0].ID != root.ID || tree[0].To != "kik" || tree[0].Text != "" || tree[0].State != orchestrator.Queued {
			t.Fatalf("the outline is %+v, %v", tree, err)
		}
		full, err := s.Delegations(ctx, []string{root.ID, other.ID, "dlg_none"})
		if err != nil || len(full) != 2 || full[root.ID].Text != "Fix the flaky test" {
			t.Errorf("in full: %+v, %v", full, err)
		}
		if hands, err := s.Hands(ctx, []string{root.ID, "dlg_none"}); err != nil || len(hands) != 1 || hands[root.ID].Text != "Fix the flaky test" || len(hands[root.ID].Artifacts) != 0 {
			t.Errorf("what went along: %+v, %v", hands, err)
		}
		for words, n := range map[string]int{"FLAKY": 1, "kik": 1, "queued": 1, "awaiting approval": 0, "100%": 0, "_": 0, `\`: 0, root.ID: 1} {
			if words == "_" { // an id has one, as it stands
				n = 1
			}
			if ids, err := s.FindInTask(ctx, task.ID, words, 10); err != nil || len(ids) != n {
				t.Errorf("%q is in %v, %v", words, ids, err)
			}
		}
		newest, err := s.EventsOf(ctx, task.ID, orchestrator.EventFilter{Types: []event.Type{event.Progress}, Delegations: []string{root.ID}, Newest: true, Limit: 2})
		if err != nil || len(newest) != 2 || newest[0].N != newest[1].N+1 {
			t.Fatalf("the newest are %+v, %v", newest, err)
		}
		if before, err := s.EventsOf(ctx, task.ID, orchestrator.EventFilter{Before: newest[1].N, Has: "step 0", Limit: 10}); err != nil || len(before) != 1 {
			t.Errorf("before them, with a text: %+v, %v", before, err)
		}
		if uses, err := s.TaskUses(ctx, task.ID, 10); err != nil || len(uses) != 0 {
			t.Errorf("uses: %+v, %v", uses, err)
		}
	})
}
