package sqlstore_test

import (
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

var draftTests = map[string]func(*Suite){
	"a draft is its person's, one for each line": draftsKept,
	"drafts have a limit":                        draftsLimited,
	"drafts are taken with a verdict or stay":    draftsTaken,
	"old drafts go":                              draftsPurged,
}

// draft is a draft of a person on a request.
func draft(userID string, r *approval.Request, line int, text string) approval.Draft {
	return approval.Draft{UserID: userID, RequestID: r.ID, Revision: 1, Path: "core/ä.go", Side: approval.RightSide, Line: line, Code: "\tx := 1", Text: text,
		At: time.Date(2026, 7, 1, 12, 0, line, 0, time.UTC)}
}

func (s *Suite) draftsOf(userID string, r *approval.Request, want ...approval.Draft) {
	s.Helper()
	got, err := s.Store.Drafts(s.ctx, userID, r.ID)
	s.must(err)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("drafts %+v, want %+v", got, want)
	}
}

func draftsKept(s *Suite) {
	ann, bob, r := s.user("ann"), s.user("bob"), s.request(s.delegation(s.task("t")))
	one, two := draft(ann.ID, r, 2, "why?"), draft(ann.ID, r, 10, "no")
	left := draft(ann.ID, r, 2, "on the left")
	left.Side = approval.LeftSide
	for _, d := range []approval.Draft{two, one, left, draft(bob.ID, r, 2, "mine")} {
		s.must(s.Store.SaveDraft(s.ctx, d, 200))
	}
	s.draftsOf(ann.ID, r, left, one, two)
	one.Text, one.Revision, one.Code = "because\x00 of \xff", 2, "y"
	s.must(s.Store.SaveDraft(s.ctx, one, 200))
	one.Text = "because of \uFFFD"
	got, err := s.Store.Drafts(s.ctx, ann.ID, r.ID)
	s.must(err)
	if len(got) != 3 || got[1].Revision != 2 || got[1].Code != "y" {
		s.Errorf("after a change: %+v", got)
	}
	s.must(s.Store.DeleteDraft(s.ctx, one))
	s.must(s.Store.DeleteDraft(s.ctx, one))
	s.draftsOf(ann.ID, r, left, two)
}

func draftsLimited(s *Suite) {
	ann, r := s.user("ann"), s.request(s.delegation(s.task("t")))
	for i := range 3 {
		s.must(s.Store.SaveDraft(s.ctx, draft(ann.ID, r, i+1, "x"), 3))
	}
	s.is(s.Store.SaveDraft(s.ctx, draft(ann.ID, r, 4, "x"), 3), orchestrator.ErrExists)
	s.must(s.Store.SaveDraft(s.ctx, draft(ann.ID, r, 3, "another text"), 3))
}

func draftsTaken(s *Suite) {
	ann, bob, r := s.user("ann"), s.user("bob"), s.request(s.delegation(s.task("t")))
	one, other := draft(ann.ID, r, 1, "x"), draft(bob.ID, r, 1, "y")
	s.must(s.Store.SaveDraft(s.ctx, one, 200))
	s.must(s.Store.SaveDraft(s.ctx, other, 200))
	undone := fmt.Errorf("undone")
	err := s.Store.InGate(s.ctx, r.TaskID, func(tx approval.Tx) error {
		had, err := tx.TakeDrafts(s.ctx, ann.ID, r.ID)
		if err != nil || len(had) != 1 {
			return fmt.Errorf("took %+v, %w", had, err)
		}
		return undone
	})
	s.is(err, undone)
	s.draftsOf(ann.ID, r, one)
	s.gate(r.TaskID, func(tx approval.Tx) error {
		_, err := tx.TakeDrafts(s.ctx, ann.ID, r.ID)
		return err
	})
	s.draftsOf(ann.ID, r)
	s.draftsOf(bob.ID, r, other)
}

func draftsPurged(s *Suite) {
	ann, r := s.user("ann"), s.request(s.delegation(s.task("t")))
	old, young := draft(ann.ID, r, 1, "x"), draft(ann.ID, r, 2, "y")
	s.must(s.Store.SaveDraft(s.ctx, old, 200))
	s.must(s.Store.SaveDraft(s.ctx, young, 200))
	n, err := s.Store.PurgeDrafts(s.ctx, young.At)
	s.must(err)
	if n != 1 {
		s.Errorf("%d went", n)
	}
	s.draftsOf(ann.ID, r, young)
}
