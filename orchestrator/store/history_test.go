package store_test

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
)

// TestRequestsOfAnOlderVersion: what a program before the history wrote is made findable
// by the next start, with its codes.
func TestRequestsOfAnOlderVersion(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		task, d := newTask(t, s, 1)
		r := approval.Request{ID: orchestrator.NewID(orchestrator.RequestPrefix, now()), DelegationID: d.ID, State: approval.Landed, Agent: "coder", Title: "Fix"}
		if err := s.InGate(t.Context(), task.ID, func(tx approval.Tx) error { return tx.InsertRequest(t.Context(), &r) }); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"delete from request_facets", "delete from request_texts", "update requests set facets = '', shown = ''",
			"insert into event_codes (event_id, type, code, delegation_id) values ('evt_1', 'patch.rejected', 'symlink', '" + d.ID + "')"} {
			if err := s.Spoil(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		find := func(s *sqlstore.Store) int {
			page, err := s.History(t.Context(), history.Query{Terms: []history.Term{{Key: history.Agent, Values: []string{"Coder"}}, {Key: history.Code, Values: []string{"symlink"}}}, Words: []string{"flaky"}}, "", 10)
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Rows)
		}
		if n := find(s); n != 0 {
			t.Errorf("%d found before", n)
		}
		for range 2 {
			if n := find(open(t, url)); n != 1 {
				t.Errorf("%d found after the next start, want 1", n)
			}
		}
	})
}
