package sqlstore_test

import (
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
)

var readingTests = map[string]func(*Suite){
	"a reading is its person's, one for each revision": readingsKept,
	"old readings go":                         readingsPurged,
	"who read and said nothing is known, too": looksKept,
}

func (s *Suite) reading(userID string, r *approval.Request, revision int) approval.Reading {
	s.Helper()
	got, err := s.Store.Reading(s.ctx, userID, r.ID, revision)
	s.must(err)
	return got
}

func readingsKept(s *Suite) {
	ann, bob, r := s.user("ann"), s.user("bob"), s.request(s.delegation(s.task("t")))
	first := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	if got := s.reading(ann.ID, r, 1); !got.OpenedAt.IsZero() || len(got.Viewed) > 0 {
		s.Errorf("before: %+v", got)
	}
	for i := range 3 {
		s.must(s.Store.OpenReading(s.ctx, ann.ID, r.ID, 1, first.Add(time.Duration(i)*time.Hour)))
	}
	s.must(s.Store.OpenReading(s.ctx, ann.ID, r.ID, 2, first.Add(time.Minute)))
	s.must(s.Store.OpenReading(s.ctx, bob.ID, r.ID, 1, first.Add(time.Second)))
	for _, file := range []int{3, 1, 2, 3} {
		s.must(s.Store.MarkViewed(s.ctx, ann.ID, r.ID, 1, file, true))
	}
	s.must(s.Store.MarkViewed(s.ctx, ann.ID, r.ID, 1, 2, false))
	s.must(s.Store.MarkViewed(s.ctx, ann.ID, r.ID, 1, 9, false))
	if got := s.reading(ann.ID, r, 1); !got.OpenedAt.Equal(first) || fmt.Sprint(got.Viewed) != "[1 3]" {
		s.Errorf("ann: %+v", got)
	}
	if got := s.reading(ann.ID, r, 2); len(got.Viewed) != 0 || !got.OpenedAt.Equal(first.Add(time.Minute)) {
		s.Errorf("the next revision: %+v", got)
	}
	if got := s.reading(bob.ID, r, 1); len(got.Viewed) != 0 {
		s.Errorf("bob has ann's marks: %+v", got)
	}
	cleo := s.user("cleo") // who never opened the page
	for i, where := range []string{"telegram", "cli", "telegram"} {
		s.must(s.Store.MarkWhole(s.ctx, cleo.ID, r.ID, 1, where, first.Add(time.Duration(i)*time.Second)))
	}
	if got := s.reading(cleo.ID, r, 1); fmt.Sprint(got.Whole) != "[telegram cli]" || !got.OpenedAt.IsZero() {
		s.Errorf("cleo: %+v", got)
	}
	if got := s.reading(cleo.ID, r, 2); len(got.Whole) != 0 {
		s.Errorf("the next revision was read, too: %+v", got)
	}
}

// looksKept: of each revision those who read any of it and gave no verdict on it, with how
// many of its files were before them, by mark or to the end, and where all of it was.
func looksKept(s *Suite) {
	ann, bob, cleo, dan := s.user("ann"), s.user("bob"), s.user("cleo"), s.user("dan")
	r, other := s.request(s.delegation(s.task("t"))), s.request(s.delegation(s.task("u")))
	first := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for i, u := range []people.User{ann, bob, cleo, dan} {
		s.must(s.Store.OpenReading(s.ctx, u.ID, r.ID, 1, first.Add(time.Duration(i)*time.Minute)))
	}
	s.must(s.Store.MarkOpened(s.ctx, bob.ID, r.ID, 1, []int{2, 3}))
	s.must(s.Store.MarkViewed(s.ctx, bob.ID, r.ID, 1, 3, true))
	s.must(s.Store.MarkViewed(s.ctx, bob.ID, r.ID, 1, 4, true))
	s.must(s.Store.MarkWhole(s.ctx, bob.ID, r.ID, 1, "cli", first.Add(time.Hour)))
	s.must(s.Store.MarkWhole(s.ctx, ann.ID, r.ID, 1, "api", first.Add(2*time.Hour)))
	s.must(s.Store.MarkOpened(s.ctx, dan.ID, r.ID, 1, []int{1}))
	s.must(s.Store.OpenReading(s.ctx, dan.ID, r.ID, 2, first))
	s.must(s.Store.MarkOpened(s.ctx, dan.ID, r.ID, 2, []int{1}))
	s.must(s.Store.MarkWhole(s.ctx, ann.ID, other.ID, 1, "cli", first))
	say := func() string {
		got, err := s.Store.Looks(s.ctx, []string{r.ID, "apr_none"})
		s.must(err)
		text := ""
		for _, l := range got {
			text += fmt.Sprintf("%d %v %s %d %v, ", l.Revision, l.Current, l.User, l.Files, l.Whole)
			if l.RequestID != r.ID {
				s.Errorf("of %s: %+v", r.ID, l)
			}
		}
		return text
	}
	if got, want := say(), "1 true bob 3 [cli], 1 true dan 1 [], 1 true ann 0 [api], 2 false dan 1 [], "; got != want {
		s.Errorf("got  %s\nwant %s", got, want)
	}
	s.must(s.Store.InGate(s.ctx, r.TaskID, func(tx approval.Tx) error {
		return tx.InsertDecision(s.ctx, r.ID, approval.Decision{Revision: 1, UserID: dan.ID, User: "dan", Channel: "web", Verdict: approval.Approve})
	}))
	if got, want := say(), "1 true bob 3 [cli], 1 true ann 0 [api], 2 false dan 1 [], "; got != want {
		s.Errorf("after dan's verdict\ngot  %s\nwant %s", got, want)
	}
	if got, err := s.Store.Looks(s.ctx, nil); err != nil || len(got) != 0 {
		s.Errorf("of nothing: %+v %v", got, err)
	}
}

func readingsPurged(s *Suite) {
	ann := s.user("ann")
	waits, over := s.request(s.delegation(s.task("t"))), s.request(s.delegation(s.task("u")))
	over.State = approval.Rejected
	s.must(s.Store.InGate(s.ctx, over.TaskID, func(tx approval.Tx) error { return tx.SaveRequest(s.ctx, over) }))
	old := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, r := range []*approval.Request{waits, over} {
		s.must(s.Store.OpenReading(s.ctx, ann.ID, r.ID, 1, old))
		s.must(s.Store.MarkViewed(s.ctx, ann.ID, r.ID, 1, 1, true))
		s.must(s.Store.MarkWhole(s.ctx, ann.ID, r.ID, 1, "cli", old))
	}
	if n, err := s.Store.PurgeReadings(s.ctx, old); err != nil || n != 0 {
		s.Errorf("removed %d of those that are young: %v", n, err)
	}
	if n, err := s.Store.PurgeReadings(s.ctx, old.Add(time.Second)); err != nil || n != 2 {
		s.Errorf("removed %d: %v", n, err)
	}
	if got := s.reading(ann.ID, over, 1); !got.OpenedAt.IsZero() || len(got.Viewed)+len(got.Whole) > 0 {
		s.Errorf("the old one is still there: %+v", got)
	}
	if got := s.reading(ann.ID, waits, 1); len(got.Viewed) != 1 || len(got.Whole) != 1 {
		s.Errorf("of one that waits: %+v", got)
	}
}
