package store_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/trigger"
)

// fill puts n parked delegations under one task, each with what lists filter on.
func fill(t *testing.T, s *sqlstore.Store, n int) {
	t.Helper()
	task, _ := newTask(t, s, 1)
	err := s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
		for i := range n {
			d := &orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, now()), To: fmt.Sprint("agent", i%50), Text: fmt.Sprint("word", i%500, " common"),
				State: orchestrator.AwaitingApproval, Repository: fmt.Sprint("repo", i%50), Requester: fmt.Sprint("user", i%50)}
			if i%2 == 0 {
				ended := tx.Now()
				d.State, d.EndedAt = orchestrator.Completed, &ended
			}
			if err := tx.Insert(t.Context(), d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	newTask(t, s, n) // with so many events
	if err := s.Spoil(context.Background(), `insert into insight (day, measure, agent, model, repository, code, bucket, n, total)
		with recursive days (day) as (select 100 union all select day + 1 from days where day < 5000) select day, 'tasks', 'kik', '', '', '', 0, 1, 1 from days`); err != nil {
		t.Fatal(err)
	}
	if err := s.Spoil(context.Background(), "analyze"); err != nil {
		t.Fatal(err)
	}
}

// wholeTable finds a step that reads all rows.
var wholeTable = regexp.MustCompile(`Seq Scan on (?:delegations|listing|events|insight|requests|cards)|SCAN (delegations|listing|events|insight|d|e)\b(?: *\n| *$)`)

// TestPlans: no query of a poll or a list reads the whole table.
func TestPlans(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		fill(t, s, 3000)
		type query struct {
			name, text string
			args       []any
			want       string
		}
		at := now().UnixMicro()
		queries := []query{
			{"claimable", s.ClaimableQuery(), []any{at, at, at, 8, at, 8, 8}, "delegations_ready"},
			{"claimable, held", s.ClaimableQuery(), []any{at, at, at, 8, at, 8, 8}, "delegations_held"},
			{"unclaimed", s.UnclaimedQuery(), []any{at, at, 200}, "delegations_ready"},
			{"agents", store.SelectAgents, nil, "listing_ended"},
		}
		for _, by := range insight.Dimensions() {
			queries = append(queries, query{"insight by " + string(by), store.InsightQuery(by), []any{110, 140}, ""})
		}
		queries = append(queries, query{"live below", store.OpenQuery(2), []any{"dlg_1", "dlg_2", 100}, "delegations_"},
			query{"all time", store.AllTimeQuery, nil, ""}, query{"turns of breakers", store.TurnsQuery, []any{at, at, 20}, ""}, query{"stuck", store.StuckQuery, []any{at}, "delegations_held"},
			query{"refused today", store.RefusedQuery, []any{at, 8}, "events_refused"}, query{"how much was refused", store.CountRefused, []any{at}, "events_refused"}, query{"tasks of today", store.TodayQuery, []any{"dlg_01", 100}, "listing_"})
		text, args := store.LiveTasksQuery([]orchestrator.State{orchestrator.Running, orchestrator.AwaitingApproval})
		queries = append(queries, query{"live tasks", text, args, "listing_state"})
		if s.Dialect() == "SQLite" { // PostgreSQL reads a table without rows, which this one is, at once
			queries = append(queries,
				query{"turns of breakers", store.TurnsQuery, []any{at, at, 20}, "events_breakers"}, query{"live below", store.OpenQuery(2), []any{"dlg_1", "dlg_2", 100}, "delegations_open"},
				query{"all time", store.AllTimeQuery, nil, "PRIMARY KEY (day=?)"}, query{"insight", store.InsightQuery(insight.ByAgent), []any{0, 30}, "PRIMARY KEY (day>? AND day<?)"})
			queries = append(queries, query{"live", store.LiveQuery, nil, "listing_live"}, query{"spawned by", store.SpawnedByQuery, []any{"kik"}, "delegations_"},
				query{"sweep", store.PurgeDedup, []any{at, at, 10}, "dedup_made"}) // PostgreSQL: every second row of this table is
			queries = append(queries, query{"landed today", store.LandedQuery, []any{at}, "listing_approved"}, query{"decided today", store.DecidedQuery, []any{at, 10}, "requests_decided"},
				query{"went wrong today", store.WrongQuery, []any{at, 8}, "listing_wrong"}, query{"how much went wrong", store.CountWrong, []any{at}, "listing_wrong"})
			text, args := s.ListQuery(orchestrator.Filter{Conversation: "usr_7", After: "dlg_01"}, 16)
			queries = append(queries, query{"list conversation", text, args, "tasks_chat"})
			text, args = s.ListQuery(orchestrator.Filter{Conversation: "usr_7", Thread: "tsk_1", After: "dlg_01"}, 16)
			queries = append(queries, query{"list thread", text, args, "tasks_thread (thread=? AND requester_id=? AND root_id<?)"},
				query{"threads", store.ThreadsQuery, []any{400, "usr_7", "", "", 16}, "tasks_threads (requester_id=?)"})
		}
		text, args = store.DeliveriesQuery(trigger.Filter{Trigger: "ci", States: []trigger.DeliveryState{trigger.Refused, trigger.Failed}, After: "whk_1"}, 51)
		queries = append(queries, query{"deliveries of two states", text, args, ""})
		if s.Dialect() == "SQLite" {
			queries = append(queries, query{"deliveries of two states", text, args, "deliveries_state (name=? AND state=? AND id<?)"})
		}
		for name, f := range map[string]orchestrator.Filter{
			"all": {}, "after": {After: "dlg_01"}, "agent": {Agent: "agent7"}, "repository": {Repository: "repo7"}, "requester": {Requester: "user7"},
			"roots": {RootsOnly: true}, "period": {From: now(), To: now()}, "state": {States: []orchestrator.State{orchestrator.Failed}},
			"states": {States: []orchestrator.State{orchestrator.Failed, orchestrator.Queued}},
		} {
			text, args := s.ListQuery(f, 51)
			want := map[string]string{"agent": "listing_agent", "repository": "listing_repository", "requester": "listing_requester", "roots": "listing_roots",
				"state": "listing_state", "states": "listing_state"}[name]
			queries = append(queries, query{"list " + name, text, args, want})
		}
		for _, q := range queries {
			plan, err := s.Explain(t.Context(), q.text, q.args...)
			if err != nil {
				t.Errorf("%s: %v", q.name, err)
				continue
			}
			if wholeTable.MatchString(plan) || !strings.Contains(plan, q.want) {
				t.Errorf("%s reads more than it has to; want %q:\n%s", q.name, q.want, plan)
			}
		}
	})
}
