package sqlstore_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/orchestrator"
)

const testBot, otherBot = 4242, 4343

var telegramTests = map[string]func(*Suite){
	"an update that comes twice is handled once":      updateTwice,
	"two nodes never handle the same update":          updateLeases,
	"an update that fails comes again until given up": updateFails,
	"only who has the lease begins or gives back":     updateBegun,
	"old updates are forgotten, open ones are not":    updatesForgotten,
	"the message about a task finds the task":         reportFound,
}

// reportFound: a message is found by its number at its own place, the newest without one.
func reportFound(s *Suite) {
	follow := func(address, message string, kind approval.ReportKind) string {
		t := s.task("x")
		r := approval.Report{TaskID: t.ID, Channel: "telegram", Address: address, Kind: kind, ExternalID: message, Shown: 1}
		s.must(s.Store.Follow(s.ctx, r))
		s.must(s.Store.SaveReport(s.ctx, r, false))
		s.Clock.Add(time.Second)
		return t.ID
	}
	first, second := follow("1001", "12#aa", approval.LiveReport), follow("1001", "123#bb", approval.LiveReport)
	elsewhere := follow("1002", "12#cc", approval.LiveReport)
	follow("1001", "99", approval.EndReport)
	for _, c := range []struct{ address, message, want string }{
		{"1001", "12", first}, {"1001", "123", second}, {"1001", "", second}, {"1002", "12", elsewhere},
		{"1001", "1", ""}, {"1001", "99", ""}, {"1001", "%", ""}, {"1003", "", ""},
	} {
		got, err := s.Store.Reported(s.ctx, "telegram", c.address, c.message)
		if got != c.want || c.want == "" && !errors.Is(err, orchestrator.ErrNotFound) || c.want != "" && err != nil {
			s.Errorf("message %q at %s: %s %v, want %s", c.message, c.address, got, err, c.want)
		}
	}
}

// updates makes updates with these numbers.
func updates(ids ...int64) []telegram.RawUpdate {
	all := make([]telegram.RawUpdate, len(ids))
	for i, id := range ids {
		all[i] = telegram.RawUpdate{ID: id, Body: fmt.Appendf(nil, `{"update_id":%d,"message":{"text":"a"}}`, id)}
	}
	return all
}

// due leases the updates that are due, for a minute.
func (s *Suite) due(limit int) []telegram.RawUpdate {
	s.Helper()
	got, err := s.Store.DueUpdates(s.ctx, testBot, s.Clock.Now(), s.Clock.Now().Add(time.Minute), limit)
	s.must(err)
	return got
}

func (s *Suite) wantDue(what string, want ...int64) []telegram.RawUpdate {
	s.Helper()
	got := s.due(100)
	ids := make([]int64, len(got))
	for i, u := range got {
		ids[i] = u.ID
	}
	if !slices.Equal(ids, want) {
		s.Fatalf("%s: due are %v, want %v", what, ids, want)
	}
	return got
}

func updateTwice(s *Suite) {
	s.wantDue("nothing came")
	s.must(s.Store.AddUpdates(s.ctx, testBot, nil, s.Clock.Now()))
	s.must(s.Store.AddUpdates(s.ctx, testBot, updates(12, 11, 12), s.Clock.Now()))
	got := s.wantDue("both, in their order", 11, 12)
	if string(got[0].Body) != `{"update_id":11,"message":{"text":"a"}}` {
		s.Errorf("update %+v", got[0])
	}
	s.must(s.Store.DoneUpdate(s.ctx, testBot, 11, s.Clock.Now()))
	s.must(s.Store.DoneUpdate(s.ctx, testBot, 12, s.Clock.Now()))
	s.must(s.Store.AddUpdates(s.ctx, testBot, append(updates(11), telegram.RawUpdate{ID: 12, Body: []byte("other")}), s.Clock.Now()))
	s.Clock.Add(time.Hour)
	s.wantDue("they were done")

	s.must(s.Store.AddUpdates(s.ctx, otherBot, append(updates(11), telegram.RawUpdate{ID: 99, Body: []byte("{\"a\x00\xff\"}")}), s.Clock.Now()))
	s.wantDue("another bot's numbers are its own")
	for bot, want := range map[int64]int64{testBot: 12, otherBot: 99, 1: 0} {
		if last, err := s.Store.LastUpdate(s.ctx, bot); err != nil || last != want {
			s.Errorf("last update of %d: %d %v, want %d", bot, last, err, want)
		}
	}
}

func updateLeases(s *Suite) {
	const n = 60
	for id := range int64(n) {
		s.must(s.Store.AddUpdates(s.ctx, testBot, updates(id+1), s.Clock.Now()))
	}
	two := s.open("two")
	found := make([][]telegram.RawUpdate, 12)
	errs := together(len(found), func(i int) (err error) {
		node := s.Store
		if i%2 == 1 {
			node = two
		}
		found[i], err = node.DueUpdates(s.ctx, testBot, s.Clock.Now(), s.Clock.Now().Add(time.Minute), n/len(found))
		return err
	})
	if count(errs, nil) != len(errs) {
		s.Fatalf("errors %v", errs)
	}
	seen := map[int64]bool{}
	for _, u := range append(slices.Concat(found...), s.due(n)...) {
		if seen[u.ID] {
			s.Errorf("update %d was leased twice", u.ID)
		}
		seen[u.ID] = true
	}
	if len(seen) != n {
		s.Errorf("%d of %d updates were leased", len(seen), n)
	}
	s.Clock.Add(time.Minute)
	if again := s.due(n); len(again) != n {
		s.Errorf("after the leases ran out: %d updates", len(again))
	}
}

func updateFails(s *Suite) {
	s.must(s.Store.AddUpdates(s.ctx, testBot, updates(1, 2), s.Clock.Now()))
	s.wantDue("at first", 1, 2)
	s.must(s.Store.FailUpdate(s.ctx, testBot, 1, "no\x00 luck", s.Clock.Now().Add(time.Second), false))
	s.wantDue("not yet")
	s.Clock.Add(time.Second)
	s.wantDue("again", 1)
	s.must(s.Store.FailUpdate(s.ctx, testBot, 1, "still none", s.Clock.Now(), true))
	s.must(s.Store.DoneUpdate(s.ctx, testBot, 2, s.Clock.Now()))
	s.must(s.Store.FailUpdate(s.ctx, testBot, 2, "a node that was late", s.Clock.Now(), false))
	s.Clock.Add(time.Hour)
	s.wantDue("one given up, one done")
}

func updateBegun(s *Suite) {
	begin := func(leased, until time.Time, want int) {
		s.Helper()
		n, mine, err := s.Store.BeginUpdate(s.ctx, testBot, 1, leased, until)
		if err != nil || n != want || mine != (want > 0) {
			s.Fatalf("begun: %d %t %v, want attempt %d", n, mine, err, want)
		}
	}
	s.must(s.Store.AddUpdates(s.ctx, testBot, updates(1), s.Clock.Now()))
	first := s.Clock.Now().Add(time.Minute)
	s.wantDue("at once", 1)
	s.Clock.Add(time.Hour)
	begin(first, s.Clock.Now().Add(time.Minute), 1) // the lease was over, but nobody else has it
	begin(first, s.Clock.Now().Add(time.Minute), 0)
	s.wantDue("it is being handled")

	second := s.Clock.Now().Add(time.Minute)
	s.Clock.Add(time.Minute)
	s.wantDue("whoever began died", 1)
	s.must(s.Store.ReturnUpdate(s.ctx, testBot, 1, second, s.Clock.Now()))
	s.wantDue("the dead one has nothing to give back")
	third := s.Clock.Now().Add(time.Minute)
	s.must(s.Store.ReturnUpdate(s.ctx, testBot, 1, third, s.Clock.Now()))
	s.wantDue("this one has", 1)
	begin(third, third.Add(time.Second), 2)

	s.must(s.Store.DoneUpdate(s.ctx, testBot, 1, s.Clock.Now()))
	begin(third.Add(time.Second), third.Add(time.Minute), 0)
	s.must(s.Store.ReturnUpdate(s.ctx, testBot, 1, third.Add(time.Second), s.Clock.Now()))
	s.wantDue("done is done")
}

func updatesForgotten(s *Suite) {
	s.must(s.Store.AddUpdates(s.ctx, testBot, updates(1, 2, 3), s.Clock.Now()))
	s.wantDue("at first", 1, 2, 3)
	s.must(s.Store.DoneUpdate(s.ctx, testBot, 3, s.Clock.Now()))
	s.Clock.Add(time.Hour)
	s.must(s.Store.DoneUpdate(s.ctx, testBot, 2, s.Clock.Now()))
	s.must(s.Store.ForgetUpdates(s.ctx, testBot, s.Clock.Now()))
	if last, err := s.Store.LastUpdate(s.ctx, testBot); err != nil || last != 2 {
		s.Errorf("last update %d %v, want 2: 3 was forgotten", last, err)
	}
	s.wantDue("the open one", 1)
}
