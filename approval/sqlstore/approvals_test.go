package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

var approvalTests = map[string]func(*Suite){
	"what is pending is told as it is now":              pendingNow,
	"a request comes back as it was made":               requestComesBack,
	"every revision is kept":                            revisions,
	"the end of a delegation closes its request":        closes,
	"a request that is made meanwhile is closed, too":   closesTheLate,
	"what people approved where is remembered":          approvedContents,
	"what holds a landing up is shown on its cards":     showsLanding,
	"cards converge to their request":                   cards,
	"a card is delivered by one node":                   cardLeases,
	"requests can be listed":                            requestList,
	"requests are found by their rule and counted":      requestsByRule,
	"a request from before another change is not saved": staleRequest,
	"what waits on branches is all listed":              standing,
}

func (s *Suite) gate(task string, fn func(tx approval.Tx) error) {
	s.Helper()
	s.must(s.Store.InGate(s.ctx, task, fn))
}

// request makes a pending request of d.
func (s *Suite) request(d *orchestrator.Delegation, change ...func(*approval.Request)) *approval.Request {
	s.Helper()
	r := &approval.Request{ID: orchestrator.NewID(orchestrator.RequestPrefix, s.Clock.Now()), DelegationID: d.ID, State: approval.Pending, Agent: d.To,
		Title: "Fix", Repository: "app", Rule: policy.Rule{Name: "rest", Need: 1, From: []string{}},
		Revision: approval.Revision{N: 1, State: approval.Pending, Digest: "d1", Base: patch.Base{Branch: "main"}}}
	for _, c := range change {
		c(r)
	}
	s.gate(d.TaskID, func(tx approval.Tx) error {
		return errors.Join(tx.InsertRequest(s.ctx, r), tx.EnsureCard(s.ctx, approval.Card{RequestID: r.ID, Channel: "inbox"}))
	})
	return r
}

// closesTheLate: whether there is a request to close is looked at without a lock, so a step
// that found none is run again where another node has made one by then, even without an event.
func closesTheLate(s *Suite) {
	other := s.open("two")
	for name, before := range map[string]func(d *orchestrator.Delegation){
		"none": func(*orchestrator.Delegation) {},
		"one of a hand-over": func(d *orchestrator.Delegation) {
			s.request(d, func(r *approval.Request) {
				r.State, r.Kind, r.Handover = approval.Approved, approval.Handover, &orchestrator.HandoverQuestion{From: "a", To: "b", Text: "x"}
			})
		},
		"one that has ended": func(d *orchestrator.Delegation) {
			s.request(d, func(r *approval.Request) { r.State = approval.Landed })
		},
	} {
		d := s.delegation(s.task(name))
		before(d)
		late := &approval.Request{ID: orchestrator.NewID(orchestrator.RequestPrefix, s.Clock.Now().Add(time.Minute)), DelegationID: d.ID, State: approval.Pending,
			Agent: d.To, Title: "Fix", Revision: approval.Revision{State: approval.Pending, Digest: "d1"}}
		calls := 0
		s.in(d.TaskID, func(tx orchestrator.Tx) error {
			calls++
			if err := tx.CloseRequest(s.ctx, d.ID, orchestrator.RequestCancelled, ""); err != nil || calls > 1 {
				return err
			}
			s.must(other.InGate(s.ctx, d.TaskID, func(tx approval.Tx) error { return tx.InsertRequest(s.ctx, late) }))
			return tx.Append(s.ctx, event.Event{Type: event.Progress, DelegationID: d.ID, Actor: "kik"})
		})
		r, err := s.Store.Request(s.ctx, late.ID)
		if err != nil || calls != 2 || r.State != approval.State(orchestrator.RequestCancelled) {
			s.Errorf("after %s: %d calls, and the late request is %s: %v", name, calls, r.State, err)
		}
	}
}

func requestComesBack(s *Suite) {
	d := s.delegation(s.task("one"))
	now, later := s.Clock.Now(), s.Clock.Now().Add(time.Hour)
	want := s.request(d, func(r *approval.Request) {
		*r = approval.Request{ID: "apr_1", TaskID: d.TaskID, DelegationID: d.ID, State: approval.Pending, Version: 1, Agent: "coder", Title: "Fix", Repository: "app",
			RequesterID: "usr_ann", Requester: "ann", Via: origin.From(origin.Web), Chain: chain.Names{"kik", "coder"}, Rule: policy.Rule{Name: "core", When: "true", Need: 2, From: []string{"maintainers"}},
			RevertOf: "apr_0", ExpiresAt: &later, CreatedAt: now,
			Revision: approval.Revision{N: 1, State: approval.Pending, Digest: "d1", Deliver: "merge", Base: patch.Base{Branch: "main"}, Tree: "t", Branch: "gatehouse/x", Commit: "c",
				Bundle: "b", Text: "I fixed it", Files: []patch.File{{Path: "a\xc3\xa9", Added: 1}}, Added: 1, Removed: 2,
				Warnings: []patch.Warning{{Code: "bidi", Path: "a", Text: "x"}}, Notes: []patch.Note{{Code: "no_checks", Text: "y"}},
				Checks: []orchestrator.Check{{Command: "go vet", OK: true, Took: time.Second}}, Sandbox: "none", At: now,
				Overtaken: &patch.Overtaken{Branch: "main", Head: "f00", Files: []string{"a\xc3\xa9"}, Why: "main changed aé meanwhile"}}}
	})
	decision := approval.Decision{ID: "dec_1", Revision: 1, UserID: "usr_bob", User: "bob", Channel: "web", Verdict: approval.Approve, Comment: "fine", Digest: "d1", At: now, StartOver: true,
		Seen: approval.Seen{Surface: "page", Files: 1, FilesViewed: 1, WarningsTicked: []string{"bidi"}, Read: []approval.Read{{Surface: "page", Files: 1}, {Surface: "cli", Files: 1, Whole: true}}}}
	s.gate(d.TaskID, func(tx approval.Tx) error {
		got, err := tx.Request(s.ctx, "apr_1")
		s.must(err)
		s.must(tx.InsertDecision(s.ctx, "apr_1", decision))
		if len(got.Decisions) != 1 {
			s.Error("the decision is not in the request that this transaction has read")
		}
		return nil
	})
	want.Decisions = []approval.Decision{decision}
	want.Cards = []approval.Card{{RequestID: "apr_1", Channel: "inbox", DueAt: now}}
	got, err := s.Store.Request(s.ctx, "apr_1")
	s.must(err)
	if !reflect.DeepEqual(&got, want) {
		s.Errorf("got  %+v\nwant %+v", got, *want)
	}
	_, err = s.Store.Request(s.ctx, "apr_none")
	s.is(err, orchestrator.ErrNotFound)
	s.gate(s.task("two").ID, func(tx approval.Tx) error {
		_, err := tx.Request(s.ctx, "apr_1") // its task is not locked here
		s.is(err, orchestrator.ErrNotFound)
		return nil
	})
}

func revisions(s *Suite) {
	d := s.delegation(s.task("one"))
	id := s.request(d).ID
	s.gate(d.TaskID, func(tx approval.Tx) error {
		r, err := tx.Request(s.ctx, id)
		s.must(err)
		r.State, r.Revision.State = approval.ChangesRequested, approval.ChangesRequested
		s.must(tx.SaveRequest(s.ctx, r))
		r.State, r.Revision = approval.Pending, approval.Revision{N: 2, State: approval.Pending, Digest: "d2", Previous: "t1"}
		return tx.SaveRequest(s.ctx, r)
	})
	r, err := s.Store.Request(s.ctx, id)
	s.must(err)
	if r.Version != 3 || r.Revision.N != 2 || r.Revision.Digest != "d2" || r.State != approval.Pending {
		s.Errorf("request %+v", r)
	}
	all, err := s.Store.Revisions(s.ctx, id)
	if err != nil || len(all) != 2 || all[0].State != approval.ChangesRequested || all[0].Digest != "d1" || all[1].Previous != "t1" {
		s.Errorf("revisions %+v %v", all, err)
	}
}

func closes(s *Suite) {
	for _, c := range []struct {
		before approval.State
		end    orchestrator.RequestEnd
		want   approval.State
	}{
		{approval.Pending, "cancelled", approval.Cancelled}, {approval.Approved, "landed", approval.Landed},
		{approval.ChangesRequested, "cancelled", approval.Cancelled}, {approval.Stale, "failed", approval.Failed},
		{approval.Approved, orchestrator.RequestStale, approval.Stale}, {approval.Approved, orchestrator.RequestRejected, approval.Rejected},
		{approval.Approved, orchestrator.RequestExpired, approval.Expired}, {approval.Approved, orchestrator.RequestFailed, approval.Failed},
		{approval.Approved, orchestrator.RequestLanded, approval.Landed}, {approval.Approved, orchestrator.RequestCancelled, approval.Cancelled},
		{approval.Rejected, "cancelled", approval.Rejected}, {approval.Landed, "failed", approval.Landed}, {approval.Reverted, "landed", approval.Reverted},
	} {
		d := s.delegation(s.task("one"))
		id := s.request(d, func(r *approval.Request) { r.State, r.Revision.State = c.before, c.before }).ID
		s.in(d.TaskID, func(tx orchestrator.Tx) error { return tx.CloseRequest(s.ctx, d.ID, c.end, "c0ffee") })
		r, err := s.Store.Request(s.ctx, id)
		s.must(err)
		changed := c.before != c.want
		if r.State != c.want || r.Revision.State != c.want || (r.Landed == "c0ffee") != changed || (r.Version == 2) != changed {
			s.Errorf("%s closed as %s: %s, revision %s, landed %q, version %d", c.before, c.end, r.State, r.Revision.State, r.Landed, r.Version)
		}
	}
	s.in(s.task("two").ID, func(tx orchestrator.Tx) error { return tx.CloseRequest(s.ctx, "dlg_none", "failed", "") })
}

// What holds a landing up is shown on the cards of its request, and on no other's.
func showsLanding(s *Suite) {
	for state, version := range map[approval.State]int64{approval.Approved: 2, approval.Pending: 1, approval.Landed: 1} {
		d := s.delegation(s.task("one"))
		id := s.request(d, func(r *approval.Request) { r.State, r.Revision.State = state, state }).ID
		s.in(d.TaskID, func(tx orchestrator.Tx) error { return tx.ShowLanding(s.ctx, d.ID) })
		r, err := s.Store.Request(s.ctx, id)
		s.must(err)
		if r.State != state || r.Version != version {
			s.Errorf("%s: now %s, version %d, want version %d", state, r.State, r.Version, version)
		}
	}
	s.in(s.task("two").ID, func(tx orchestrator.Tx) error { return tx.ShowLanding(s.ctx, "dlg_none") })
}

func staleRequest(s *Suite) {
	d := s.delegation(s.task("one"))
	old := *s.request(d)
	s.in(d.TaskID, func(tx orchestrator.Tx) error { return tx.CloseRequest(s.ctx, d.ID, orchestrator.RequestCancelled, "") })
	err := s.Store.InGate(s.ctx, d.TaskID, func(tx approval.Tx) error {
		old.State = approval.Approved
		return tx.SaveRequest(s.ctx, &old)
	})
	s.is(err, orchestrator.ErrLost)
}

func requestsByRule(s *Suite) {
	d := s.delegation(s.task("one"))
	var named []string
	for i := range 6 {
		s.Clock.Add(time.Millisecond)
		r := s.request(d, func(r *approval.Request) {
			r.Rule.Name = []string{`cör"e`, "cör", "other"}[i%3]
		})
		if i%3 == 0 {
			named = append(named, r.ID)
		}
	}
	f := approval.Filter{Rule: `cör"e`, Oldest: true, Limit: 1}
	for _, want := range named {
		page, err := s.Store.Requests(s.ctx, f)
		s.must(err)
		if len(page.Items) != 1 || page.Items[0].ID != want {
			s.Fatalf("after %q: %+v, want %s", f.After, page.Items, want)
		}
		f.After = page.Next
	}
	if f.After != "" {
		s.Errorf("after the last one: %s", f.After)
	}
	for name, want := range map[string]int{`cör"e`: 2, "cör": 2, "c": 0, "%": 0, "": 6} {
		if n, err := s.Store.CountRequests(s.ctx, approval.Filter{Rule: name}, 100); err != nil || n != want {
			s.Errorf("%q: %d (%v), want %d", name, n, err, want)
		}
	}
	if n, err := s.Store.CountRequests(s.ctx, approval.Filter{}, 4); err != nil || n != 4 {
		s.Errorf("counted %d of 4 at most: %v", n, err)
	}
}

func requestList(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	past := s.Clock.Now().Add(-time.Second)
	future := s.Clock.Now().Add(time.Hour)
	var pending []string
	for i := range 9 {
		s.Clock.Add(time.Millisecond)
		r := s.request(d, func(r *approval.Request) {
			r.State, r.Agent = []approval.State{approval.Pending, approval.Landed, approval.Rejected}[i%3], []string{"kik", "coder"}[i%2]
			r.ExpiresAt = []*time.Time{&past, nil, &past, &future}[i%4]
		})
		if r.State == approval.Pending {
			pending = append(pending, r.ID)
		}
	}
	list := func(f approval.Filter) (n int) {
		s.Helper()
		f.Limit = 2
		last := "~"
		for {
			page, err := s.Store.Requests(s.ctx, f)
			s.must(err)
			for _, r := range page.Items {
				if r.ID >= last || len(r.Cards) != 1 {
					s.Errorf("%s after %s with %d cards", r.ID, last, len(r.Cards))
				}
				last, n = r.ID, n+1
			}
			if page.Next == "" {
				return n
			}
			f.After = page.Next
		}
	}
	for _, c := range []struct {
		f    approval.Filter
		want int
	}{
		{approval.Filter{}, 9}, {approval.Filter{States: []approval.State{approval.Pending}}, 3}, {approval.Filter{States: []approval.State{approval.Pending, approval.Landed}}, 6},
		{approval.Filter{TaskID: task.ID, DelegationID: d.ID, Repository: "app", Agent: "coder"}, 4}, {approval.Filter{Repository: "none"}, 0},
	} {
		if got := list(c.f); got != c.want {
			s.Errorf("%+v: %d, want %d", c.f, got, c.want)
		}
	}
	got, err := s.Store.PendingOf(s.ctx, task.ID)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(pending) {
		s.Errorf("pending %v %v, want %v", got, err, pending)
	}
	overdue, err := s.Store.Overdue(s.ctx, s.Clock.Now(), 10)
	if err != nil || len(overdue) != 2 || overdue[0].State != approval.Pending { // 0 and 6; 3 has an hour left
		s.Errorf("overdue %+v %v", overdue, err)
	}
}

func pendingNow(s *Suite) {
	task := s.task("one")
	var requests []*approval.Request
	for range 3 {
		s.Clock.Add(time.Second)
		requests = append(requests, s.request(s.delegation(task)))
	}
	other := s.open("two")
	see := func(limit int, want ...string) {
		s.Helper()
		for _, st := range []interface {
			Pending(context.Context, int) ([]approval.Request, error)
		}{s.Store, other} {
			for range 2 { // read, and remembered
				all, err := st.Pending(s.ctx, limit)
				s.must(err)
				var got []string
				for _, r := range all {
					got = append(got, fmt.Sprint(r.ID == requests[0].ID, r.Title, len(r.Decisions)))
				}
				if !slices.Equal(got, want) {
					s.Errorf("pending %q, want %q", got, want)
				}
			}
		}
	}
	see(10, "falseFix0", "falseFix0", "trueFix0")
	see(2, "falseFix0", "falseFix0")
	s.gate(task.ID, func(tx approval.Tx) error {
		r, err := tx.Request(s.ctx, requests[0].ID)
		s.must(err)
		s.must(tx.InsertDecision(s.ctx, r.ID, approval.Decision{UserID: "usr_bob", User: "bob", Verdict: approval.Approve, Revision: 1}))
		r.Title = "Fixed"
		s.must(tx.SaveRequest(s.ctx, r))
		r, err = tx.Request(s.ctx, requests[2].ID)
		s.must(err)
		r.State = approval.Rejected
		return tx.SaveRequest(s.ctx, r)
	})
	see(10, "falseFix0", "trueFixed1")
	paths, err := s.Store.Paths(s.ctx, []string{task.ID, "tsk_none"})
	if err != nil || len(paths) != 1 || len(paths[task.ID]) != 3 || paths[task.ID][0].ID != requests[0].DelegationID || paths[task.ID][0].To != "kik" {
		s.Errorf("paths %+v, %v", paths, err)
	}
}
