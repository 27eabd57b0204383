package sqlstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/store"
)

var retentionTests = map[string]func(*Suite){
	"texts of old tasks go and the history verifies":     textsGo,
	"what lives, waits or is young is not touched":       livingStays,
	"a batch is bounded and a run goes on":               batches,
	"a hold keeps what it covers until it is lifted":     holdKeeps,
	"holds say who, when and why":                        holdRows,
	"a hold and a batch exclude each other":              holdRace,
	"bundles go, and those that nothing refers to":       blobsGo,
	"what happens after retention was here goes as well": lateEvents,
}

const (
	secret = "the zebra's secret"
	day    = 24 * time.Hour
)

// endedTask makes a task with a request, a turn and n more events, all of which carry the
// secret, and ends it.
func (s *Suite) endedTask(n int) (orchestrator.Task, *orchestrator.Delegation, *approval.Request) {
	s.Helper()
	task := s.task(secret)
	d := s.delegation(task, func(d *orchestrator.Delegation) {
		d.Repository = "app"
		d.Chain = d.Chain.With(chain.Step{From: "kik", To: "coder", Task: secret})
		d.Work.Feedback, d.Work.Discarded = &agent.Feedback{Comment: secret}, secret
		d.Work.Earlier = []agent.Earlier{{Revision: 1, By: "bob", Comment: secret}}
		d.Work.Fallback = &agent.Fallback{To: "coder", Error: agent.Fail("exit", "%s", secret)}
		d.Work.TreeBundle = "bundle:" + d.ID
	})
	r := s.request(d, func(r *approval.Request) {
		r.Title, r.Revision.Text = secret, secret
		r.Revision.Checks = []orchestrator.Check{{Command: "make", OK: true, Output: secret}}
		r.Revision.Bundle = "bundle:" + d.ID + "-rev"
	})
	s.gate(task.ID, func(tx approval.Tx) error {
		got, err := tx.Request(s.ctx, r.ID)
		s.must(err)
		got.State = approval.Approved
		return errors.Join(tx.InsertDecision(s.ctx, r.ID, approval.Decision{Revision: 1, User: "bob", Channel: "web", Verdict: approval.Approve, Comment: secret, Digest: "d1"}),
			tx.InsertAnswer(s.ctx, r.ID, approval.Answer{N: 1, Thread: "dec_1.1", Act: approval.Reply, User: "cleo", Channel: "web", Text: secret, At: tx.Now()}),
			tx.InsertAnswer(s.ctx, r.ID, approval.Answer{N: 2, Thread: "dec_1.1", Act: approval.Resolve, User: "cleo", Channel: "web", At: tx.Now()}),
			tx.SaveRequest(s.ctx, got))
	})
	s.in(task.ID, func(tx orchestrator.Tx) error {
		row, err := tx.Delegation(s.ctx, d.ID)
		s.must(err)
		for i := range n {
			s.must(tx.Append(s.ctx, event.Event{Type: event.Progress, DelegationID: d.ID, Actor: "coder", Data: event.Data(map[string]any{"text": secret, "i": i})}))
		}
		now := tx.Now()
		board, err := sharedctx.New(now, sharedctx.Board(task.ID), "plan", secret, "coder", 0)
		s.must(err)
		_, err = tx.PutEntry(s.ctx, board)
		s.must(err)
		row.State, row.EndedAt, row.Result = orchestrator.Completed, &now, &agent.Result{Text: secret, Data: json.RawMessage(`{"k":"` + secret + `"}`), Commit: "c0ffee"}
		tx.Task().EndedAt = &now
		return errors.Join(tx.PutBlob(s.ctx, "bundle:"+d.ID, "bundle", []byte("x")), tx.PutBlob(s.ctx, "bundle:"+d.ID+"-rev", "bundle", []byte("y")),
			tx.PutBlob(s.ctx, "bundle:"+d.ID+"-lost", "bundle", []byte("z")),
			tx.PutTurn(s.ctx, row, agent.Turn{N: 1}), tx.Move(s.ctx, row, orchestrator.Queued, row.Attempt))
	})
	return task, d, r
}

// retain runs a pass to its end and returns what it removed in all.
func (s *Suite) retain(what retention.What, before time.Time, limit int) retention.Done {
	s.Helper()
	var all retention.Done
	for after := (store.After{}); ; {
		done, next, err := s.Store.Retain(s.ctx, what, before, after, limit)
		s.must(err)
		if done.Events+done.Blobs > limit {
			s.Errorf("a batch of %d removed %+v", limit, done)
		}
		all.Tasks, all.Events, all.Blobs = all.Tasks+done.Tasks, all.Events+done.Events, all.Blobs+done.Blobs
		if after = next; !done.More {
			return all
		}
	}
}

func (s *Suite) verifies() {
	s.Helper()
	if _, err := s.Store.VerifyAll(s.ctx, func(id string, err error) { s.Errorf("%s: %v", id, err) }); err != nil {
		s.Error(err)
	}
}

func textsGo(s *Suite) {
	task, d, r := s.endedTask(3)
	if got := s.found("zebra"); got != 1 {
		s.Fatalf("the search finds %d", got)
	}
	s.Clock.Add(40 * day)
	if done := s.retain(retention.Texts, s.Clock.Now().Add(-30*day), 100); done.Tasks != 1 || done.Events != 4 {
		s.Errorf("removed %+v", done)
	}
	s.verifies()
	t, err := s.Store.Task(s.ctx, task.ID)
	s.must(err)
	if t.Text != retention.GoneText || t.DroppedAt == nil || !t.DroppedAt.Equal(s.Clock.Now()) {
		s.Errorf("the task is %+v", t)
	}
	tree, err := s.Store.Tree(s.ctx, task.ID)
	s.must(err)
	req, err := s.Store.Request(s.ctx, r.ID)
	s.must(err)
	events, err := s.Store.Events(s.ctx, task.ID, 0, 100)
	s.must(err)
	turns, err := s.Store.Turns(s.ctx, d.ID, 0)
	s.must(err)
	said, err := s.Store.Answers(s.ctx, r.ID)
	s.must(err)
	board, err := s.Store.Context("test").Query(s.ctx, sharedctx.Board(task.ID), 10)
	s.must(err)
	all, err := json.Marshal([]any{t, tree, req, events, turns, said, board})
	s.must(err)
	if strings.Contains(string(all), "zebra") || len(turns) > 0 {
		s.Errorf("it is still there: %s", all)
	}
	for _, e := range events {
		if e.Dropped == nil || string(e.Data) != "{}" || !e.Dropped.At.Equal(s.Clock.Now()) {
			s.Errorf("event %d has %s, dropped %+v", e.N, e.Data, e.Dropped)
		}
	}
	// What auditors ask for stays.
	if tree[0].Result.Commit != "c0ffee" || tree[0].Chain.Steps()[0].To != "coder" || tree[0].State != orchestrator.Completed ||
		req.Decisions[0].User != "bob" || req.Decisions[0].Digest != "d1" || !req.Revision.Checks[0].OK || req.Revision.Checks[0].Command != "make" ||
		len(said) != 2 || said[0].User != "cleo" || said[0].Text != retention.GoneText || said[1].Act != approval.Resolve || said[1].Text != "" {
		s.Errorf("too much went: %s", all)
	}
	if got := s.found("zebra"); got != 0 {
		s.Errorf("the search still finds %d", got)
	}
	s.finds("zebra")
	if page, err := s.Store.History(s.ctx, history.Query{}, "", 10); err != nil || len(page.Rows) != 1 || page.Rows[0].Title != retention.GoneText {
		s.Errorf("the history has %+v, %v", page.Rows, err)
	}
	if done := s.retain(retention.Texts, s.Clock.Now().Add(-30*day), 100); !done.Nothing() {
		s.Errorf("it removed the same again: %+v", done)
	}
	applied := s.lastOf(event.RetentionApplied)
	for _, want := range []string{`"what":"data"`, `"tasks":1`, `"events":4`, `"up_to":"2026-07-11T12:00:00Z"`} {
		if !strings.Contains(string(applied.Data), want) {
			s.Errorf("the event says %s, not %s", applied.Data, want)
		}
	}
}

// found counts what a search for a word finds.
func (s *Suite) found(word string) int {
	s.Helper()
	page, err := s.Store.List(s.ctx, orchestrator.Filter{Query: word, Limit: 10})
	s.must(err)
	return len(page.Items)
}

// lastOf is the newest event of a type in the stream "system".
func (s *Suite) lastOf(kind event.Type) event.Event {
	s.Helper()
	events, err := s.Store.Events(s.ctx, event.System, 0, 1000)
	s.must(err)
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type == kind {
			return events[i]
		}
	}
	s.Fatalf("the log has no %s", kind)
	return event.Event{}
}

func livingStays(s *Suite) {
	live := s.delegation(s.task("alive"))
	pending := s.delegation(s.task("asked"))
	s.request(pending)
	now := s.Clock.Now()
	s.in(pending.TaskID, func(tx orchestrator.Tx) error { tx.Task().EndedAt = &now; return nil })
	s.Clock.Add(40 * day)
	young, _, _ := s.endedTask(1)
	for _, what := range []retention.What{retention.Texts, retention.Blobs, retention.Orphans} {
		if done := s.retain(what, s.Clock.Now().Add(-30*day), 100); !done.Nothing() {
			s.Errorf("%s: %+v", what, done)
		}
	}
	for _, id := range []string{live.TaskID, pending.TaskID, young.ID} {
		if t, err := s.Store.Task(s.ctx, id); err != nil || t.DroppedAt != nil || t.Text == retention.GoneText {
			s.Errorf("%+v %v", t, err)
		}
	}
}

func batches(s *Suite) {
	for range 5 {
		s.endedTask(7)
	}
	s.Clock.Add(40 * day)
	before := s.Clock.Now().Add(-30 * day)
	// The first batch is all of a run that was cut off.
	done, _, err := s.Store.Retain(s.ctx, retention.Texts, before, store.After{}, 3)
	s.must(err)
	if !done.More || done.Events != 3 {
		s.Fatalf("the first batch removed %+v", done)
	}
	s.verifies()
	if rest := s.retain(retention.Texts, before, 3); rest.Events != 5*8-3 {
		s.Errorf("the next run removed %+v", rest)
	}
	s.verifies()
}

func holdKeeps(s *Suite) {
	for name, h := range map[string]retention.Hold{"task": {Kind: retention.Task}, "repository": {Kind: retention.Repository, Subject: "app"}, "everything": {Kind: retention.Everything}} {
		task, d, _ := s.endedTask(1)
		if h.Kind == retention.Task {
			h.Subject = task.ID
		}
		h.Reason, h.By = "case 12", "ann"
		h, err := s.Store.SetHold(s.ctx, h)
		s.must(err)
		s.Clock.Add(40 * day)
		before := s.Clock.Now().Add(-30 * day)
		for _, what := range []retention.What{retention.Texts, retention.Blobs, retention.Orphans} {
			if done := s.retain(what, before, 100); !done.Nothing() {
				s.Errorf("%s: %s removed %+v", name, what, done)
			}
		}
		if on, err := s.Store.HoldsOn(s.ctx, task.ID); err != nil || len(on) != 1 || on[0].ID != h.ID || on[0].Reason != "case 12" {
			s.Errorf("%s: held by %+v, %v", name, on, err)
		}
		if _, err := s.Store.Blob(s.ctx, "bundle:"+d.ID); err != nil {
			s.Errorf("%s: %v", name, err)
		}
		_, err = s.Store.LiftHold(s.ctx, h.ID, "bob", "settled")
		s.must(err)
		if done := s.retain(retention.Texts, before, 100); done.Tasks != 1 {
			s.Errorf("%s: after it was lifted %+v", name, done)
		}
		s.retain(retention.Blobs, before, 100) // the next hold finds nothing of this task
	}
	s.verifies()
}

func holdRows(s *Suite) {
	task, _, r := s.endedTask(0)
	bad := map[string]retention.Hold{
		"no reason":          {Kind: retention.Task, Subject: task.ID, By: "ann", Reason: "  "},
		"no kind":            {Subject: task.ID, By: "ann", Reason: "x"},
		"no subject":         {Kind: retention.Repository, By: "ann", Reason: "x"},
		"a subject too much": {Kind: retention.Everything, Subject: "x", By: "ann", Reason: "x"},
		"a novel":            {Kind: retention.Everything, By: "ann", Reason: strings.Repeat("ä", retention.MaxReason+1)},
	}
	for name, h := range bad {
		if _, err := s.Store.SetHold(s.ctx, h); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
			s.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.Store.SetHold(s.ctx, retention.Hold{Kind: retention.Task, Subject: "tsk_none", By: "ann", Reason: "x"})
	s.is(err, orchestrator.ErrNotFound)
	h, err := s.Store.SetHold(s.ctx, retention.Hold{Kind: retention.Task, Subject: task.ID, RequestID: r.ID, By: "ann", Reason: "case\x00 12"})
	s.must(err)
	_, err = s.Store.SetHold(s.ctx, retention.Hold{Kind: retention.Task, Subject: task.ID, By: "bob", Reason: "also"})
	s.is(err, orchestrator.ErrExists)
	if e := s.lastOf(event.HoldSet); e.Actor != "ann" || !strings.Contains(string(e.Data), task.ID) {
		s.Errorf("%+v", e)
	}
	_, err = s.Store.LiftHold(s.ctx, h.ID, "bob", "")
	if orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
		s.Errorf("lifted without a reason: %v", err)
	}
	_, err = s.Store.LiftHold(s.ctx, "hld_none", "bob", "x")
	s.is(err, orchestrator.ErrNotFound)
	h, err = s.Store.LiftHold(s.ctx, h.ID, "bob", "settled")
	s.must(err)
	if h.LiftedBy != "bob" || h.LiftedAt == nil || h.LiftReason != "settled" {
		s.Errorf("%+v", h)
	}
	if _, err = s.Store.LiftHold(s.ctx, h.ID, "cleo", "again"); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
		s.Errorf("lifted twice: %v", err)
	}
	if e := s.lastOf(event.HoldLifted); e.Actor != "bob" {
		s.Errorf("%+v", e)
	}
	if standing, err := s.Store.Holds(s.ctx, false); err != nil || len(standing) != 0 {
		s.Errorf("%+v %v", standing, err)
	}
	if all, err := s.Store.Holds(s.ctx, true); err != nil || len(all) != 1 || all[0].RequestID != r.ID {
		s.Errorf("%+v %v", all, err)
	}
}

// Once SetHold has returned nothing that it covers goes any more, whenever it comes.
func holdRace(s *Suite) {
	var ids []string
	for range 12 {
		task, _, _ := s.endedTask(4)
		ids = append(ids, task.ID)
	}
	s.Clock.Add(40 * day)
	before := s.Clock.Now().Add(-30 * day)
	left := func() int {
		n := 0
		for _, id := range ids {
			events, err := s.Store.Events(s.ctx, id, 0, 100)
			s.must(err)
			for _, e := range events {
				if e.Dropped == nil {
					n++
				}
			}
		}
		return n
	}
	kept := 0
	for _, err := range together(2, func(i int) error {
		if i == 0 {
			_, err := s.Store.SetHold(s.ctx, retention.Hold{Kind: retention.Everything, By: "ann", Reason: "now"})
			kept = left()
			return err
		}
		for after := (store.After{}); ; {
			done, next, err := s.Store.Retain(s.ctx, retention.Texts, before, after, 2)
			if err != nil || !done.More {
				return err
			}
			after = next
		}
	}) {
		s.must(err)
	}
	if now := left(); now != kept {
		s.Errorf("%d events had data when everything was held, and %d have now", kept, now)
	}
	s.verifies()
}

func blobsGo(s *Suite) {
	_, d, _ := s.endedTask(0)
	s.Clock.Add(40 * day)
	here := func(want ...bool) {
		s.Helper()
		for i, suffix := range []string{"", "-rev", "-lost"} {
			if _, err := s.Store.Blob(s.ctx, "bundle:"+d.ID+suffix); (err == nil) != want[i] {
				s.Errorf("bundle%s: %v", suffix, err)
			}
		}
	}
	if done := s.retain(retention.Orphans, s.Clock.Now().Add(-30*day), 100); done.Blobs != 1 {
		s.Errorf("orphans: %+v", done)
	}
	here(true, true, false)
	if done := s.retain(retention.Blobs, s.Clock.Now().Add(-30*day), 100); done.Blobs != 2 || done.Tasks != 1 {
		s.Errorf("blobs: %+v", done)
	}
	here(false, false, false)
	gone, err := s.Store.BlobsGone(s.ctx, []string{d.ID, "dlg_none"})
	if s.must(err); !gone[d.ID] || gone["dlg_none"] {
		s.Errorf("gone: %v", gone)
	}
}

func lateEvents(s *Suite) {
	task, _, _ := s.endedTask(1)
	s.Clock.Add(40 * day)
	s.retain(retention.Texts, s.Clock.Now().Add(-30*day), 100)
	s.in(task.ID, appendOne(s.ctx, "late"))
	if done := s.retain(retention.Texts, s.Clock.Now().Add(-30*day), 100); !done.Nothing() {
		s.Errorf("it went before its time: %+v", done)
	}
	s.Clock.Add(40 * day)
	if done := s.retain(retention.Texts, s.Clock.Now().Add(-30*day), 100); done.Events != 1 {
		s.Errorf("it did not go: %s", fmt.Sprint(done))
	}
	s.verifies()
}
