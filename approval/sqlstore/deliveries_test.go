package sqlstore_test

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
)

var deliveryTests = map[string]func(*Suite){
	"a delivery comes back as it was":                deliveryWhole,
	"the same id or the same body is one delivery":   deliverySame,
	"of many at once one is the first":               deliveryRace,
	"two nodes never work on the same delivery":      deliveryLeases,
	"a delivery ends once":                           deliveryEnds,
	"lists are read page by page":                    deliveryLists,
	"what they carried is forgotten, the rest stays": deliveryForgotten,
	"the times of a schedule only go forward":        scheduleTimes,
}

// delivery makes one of the webhook "ci".
func (s *Suite) delivery(external, body string) trigger.Delivery {
	now := s.Clock.Now()
	return trigger.Delivery{ID: orchestrator.NewID(trigger.DeliveryPrefix, now), Trigger: "ci", Kind: trigger.Webhook, Source: trigger.GitHub, ExternalID: external,
		BodyHash: trigger.Hash([]byte(body)), Event: "push", Headers: map[string]string{"User-Agent": "test"}, Body: []byte(body), State: trigger.Stored, ReceivedAt: now, DueAt: now}
}

// add stores a delivery that must be the first.
func (s *Suite) add(d trigger.Delivery) trigger.Delivery {
	s.Helper()
	got, fresh, err := s.Store.AddDelivery(s.ctx, d, day)
	s.must(err)
	if !fresh {
		s.Fatalf("%s is not the first but %s", d.ID, got.ID)
	}
	return got
}

func deliveryWhole(s *Suite) {
	d := s.delivery("id\x00\xff", "{\"a\":\"\x00\xff\"}")
	d.Event, d.Of, d.By, d.ByID = "a\x00b", "whk_1", "ann", "usr_1"
	done := s.Clock.Now()
	d.State, d.Code, d.Message, d.Text, d.TaskID, d.DoneAt = trigger.Started, "code", "why\x00", "text\xff", "tsk_1", &done
	s.add(d)
	got, err := s.Store.Delivery(s.ctx, d.ID)
	s.must(err)
	if !bytes.Equal(got.Body, d.Body) || got.Event != "a\uFFFDb" || got.ExternalID != "id\uFFFD\uFFFD" || got.Headers["User-Agent"] != "test" || got.By != "ann" || got.ByID != "usr_1" || got.Of != "whk_1" ||
		got.Code != "code" || got.Message != "why\uFFFD" || got.Text != "text\uFFFD" || got.TaskID != "tsk_1" || got.DoneAt == nil || !got.ReceivedAt.Equal(d.ReceivedAt) {
		s.Errorf("got %+v", got)
	}
	_, err = s.Store.Delivery(s.ctx, "whk_none")
	s.is(err, orchestrator.ErrNotFound)
	if ids, err := s.Store.Resolve(s.ctx, d.ID[len(d.ID)-8:], 2, trigger.DeliveryPrefix); err != nil || !slices.Equal(ids, []string{d.ID}) {
		s.Errorf("by its ending: %v %v", ids, err)
	}
}

func deliverySame(s *Suite) {
	first := s.add(s.delivery("one", "body"))
	same := func(what string, d trigger.Delivery, bodyFor time.Duration, want string) {
		s.Helper()
		got, fresh, err := s.Store.AddDelivery(s.ctx, d, bodyFor)
		s.must(err)
		if want == "" && (!fresh || got.ID != d.ID) || want != "" && (fresh || got.ID != want) {
			s.Errorf("%s: %s, fresh %t; want %q", what, got.ID, fresh, want)
		}
	}
	same("the same id with another body", s.delivery("one", "other"), day, first.ID)
	same("another id with the same body", s.delivery("two", "body"), day, first.ID)
	same("that id with a body of its own: nothing was taken by it", s.delivery("two", "third"), day, "")
	same("the same body where ids are signed", s.delivery("three", "body"), 0, "")
	other := s.delivery("one", "body")
	other.Trigger = "another"
	same("another trigger", other, day, "")
	again := s.delivery("one", "body")
	again.Of = first.ID
	same("delivered again by a person", again, 0, "")
	nameless := s.delivery("", "no id")
	same("without an id", nameless, day, "")
	same("without an id, again", s.delivery("", "no id"), day, nameless.ID)
	s.Clock.Add(day + time.Second)
	same("without an id, after the window", s.delivery("", "no id"), day, "")
	same("the same id long after", s.delivery("one", "late"), day, first.ID)
	got, err := s.Store.Delivery(s.ctx, first.ID)
	s.must(err)
	if got.Repeats != 3 {
		s.Errorf("%d repeats were counted, want 3", got.Repeats)
	}
}

func deliveryRace(s *Suite) {
	two := s.open("two")
	const n = 12
	ids, fresh := make([]string, n), make([]bool, n)
	errs := together(n, func(i int) error {
		node := s.Store
		if i%2 == 1 {
			node = two
		}
		d := s.delivery("one", "body")
		if i%3 == 0 {
			d = s.delivery(fmt.Sprint("replay", i), "body")
		}
		got, first, err := node.AddDelivery(s.ctx, d, day)
		ids[i], fresh[i] = got.ID, first
		return err
	})
	if count(errs, nil) != n {
		s.Fatalf("errors %v", errs)
	}
	firsts := 0
	for i := range n {
		if fresh[i] {
			firsts++
		}
		if ids[i] != ids[0] {
			s.Errorf("call %d got %s, call 0 got %s", i, ids[i], ids[0])
		}
	}
	if firsts != 1 {
		s.Errorf("%d were the first", firsts)
	}
}

// dueDeliveries leases what is due for a minute.
func (s *Suite) dueDeliveries(limit int) []string {
	s.Helper()
	found, err := s.Store.DueDeliveries(s.ctx, s.Clock.Now(), s.Clock.Now().Add(time.Minute), limit)
	s.must(err)
	var ids []string
	for _, d := range found {
		if d.Body == nil {
			s.Errorf("%s came without its body", d.ID)
		}
		ids = append(ids, d.ID)
	}
	return ids
}

func deliveryLeases(s *Suite) {
	const n = 40
	for i := range n {
		s.add(s.delivery(fmt.Sprint(i), fmt.Sprint(i)))
	}
	two := s.open("two")
	found := make([][]trigger.Delivery, 8)
	errs := together(len(found), func(i int) (err error) {
		node := s.Store
		if i%2 == 1 {
			node = two
		}
		found[i], err = node.DueDeliveries(s.ctx, s.Clock.Now(), s.Clock.Now().Add(time.Minute), n/len(found))
		return err
	})
	if count(errs, nil) != len(errs) {
		s.Fatalf("errors %v", errs)
	}
	seen := map[string]bool{}
	for _, d := range slices.Concat(found...) {
		if seen[d.ID] {
			s.Errorf("%s was leased twice", d.ID)
		}
		seen[d.ID] = true
	}
	for _, id := range s.dueDeliveries(n) {
		seen[id] = true
	}
	if len(seen) != n {
		s.Errorf("%d of %d were leased", len(seen), n)
	}
	if again := s.dueDeliveries(n); len(again) != 0 {
		s.Errorf("leased again: %v", again)
	}
	s.Clock.Add(time.Minute)
	if again := s.dueDeliveries(n); len(again) != n {
		s.Errorf("after the leases ran out: %d", len(again))
	}
}

func deliveryEnds(s *Suite) {
	d := s.add(s.delivery("one", "body"))
	now := s.Clock.Now()
	d.DueAt, d.Code, d.Message, d.Attempts = now.Add(time.Minute), "unavailable", "later\x00", 0
	s.must(s.Store.DelayDelivery(s.ctx, d))
	if due := s.dueDeliveries(9); len(due) != 0 {
		s.Errorf("due before its time: %v", due)
	}
	s.Clock.Add(time.Minute)
	if due := s.dueDeliveries(9); len(due) != 1 {
		s.Errorf("not due at its time: %v", due)
	}
	d.State, d.Code, d.Message, d.Text, d.TaskID, d.DoneAt = trigger.Started, "", "", "Fix\x00 it", "tsk_1", &now
	said := event.Event{Type: "trigger.not_started", Actor: "gatehouse"}
	mine, err := s.Store.EndDelivery(s.ctx, d, said)
	s.must(err)
	other := d
	other.TaskID = "tsk_2"
	late, err := s.Store.EndDelivery(s.ctx, other, said) // nothing is said of what did not happen
	s.must(err)
	events, err := s.Store.Events(s.ctx, event.System, 0, 100)
	s.must(err)
	if n := len(slices.DeleteFunc(events, func(e event.Event) bool { return e.Type != said.Type })); n != 1 {
		s.Errorf("it was said %d times", n)
	}
	s.must(s.Store.DelayDelivery(s.ctx, d))
	got, err := s.Store.Delivery(s.ctx, d.ID)
	s.must(err)
	if !mine || late || got.TaskID != "tsk_1" || got.State != trigger.Started || got.Attempts != 1 || got.Text != "Fix\uFFFD it" {
		s.Errorf("mine %t, late %t, %+v", mine, late, got)
	}
	last, err := s.Store.LastStarted(s.ctx, "ci")
	s.must(err)
	if last.ID != d.ID {
		s.Errorf("the last one started is %s", last.ID)
	}
	_, err = s.Store.LastStarted(s.ctx, "another")
	s.is(err, orchestrator.ErrNotFound)
}

func deliveryLists(s *Suite) {
	var all []string
	for i := range 7 {
		d := s.delivery(fmt.Sprint(i), fmt.Sprint(i))
		if i%2 == 1 {
			d.State = trigger.Refused
		}
		s.add(d)
		all = append(all, d.ID)
		s.Clock.Add(time.Second)
	}
	foreign := s.delivery("x", "x")
	foreign.Trigger, foreign.Kind = "another", trigger.Schedule
	s.add(foreign)
	slices.Reverse(all)
	var read []string
	for after, n := "", 0; n == 0 || after != ""; n++ {
		page, err := s.Store.Deliveries(s.ctx, trigger.Filter{Trigger: "ci", After: after, Limit: 3})
		s.must(err)
		for _, d := range page.Items {
			if d.Body != nil {
				s.Errorf("%s came with its body", d.ID)
			}
			read = append(read, d.ID)
		}
		after = page.Next
	}
	if !slices.Equal(read, all) {
		s.Errorf("read %v, want %v", read, all)
	}
	for what, c := range map[string]struct {
		f    trigger.Filter
		want int
	}{
		"by state":           {trigger.Filter{Trigger: "ci", States: []trigger.DeliveryState{trigger.Refused}}, 3},
		"by one state twice": {trigger.Filter{Trigger: "ci", States: []trigger.DeliveryState{trigger.Refused, trigger.Refused}}, 3},
		"by several states":  {trigger.Filter{Trigger: "ci", States: []trigger.DeliveryState{trigger.Refused, trigger.Stored}}, 7},
		"by kind":            {trigger.Filter{Kind: trigger.Schedule}, 1},
		"of all":             {trigger.Filter{}, 8},
		"since":              {trigger.Filter{Trigger: "ci", From: s.Clock.Now().Add(-2500 * time.Millisecond)}, 2},
		"of nobody":          {trigger.Filter{Trigger: "'; drop table deliveries; --"}, 0},
		"by no state of any": {trigger.Filter{States: []trigger.DeliveryState{"x"}}, 0},
	} {
		page, err := s.Store.Deliveries(s.ctx, c.f)
		s.must(err)
		if len(page.Items) != c.want {
			s.Errorf("%s: %d, want %d", what, len(page.Items), c.want)
		}
	}
	if n, err := s.Store.Trouble(s.ctx, "ci", s.Clock.Now().Add(-time.Hour)); err != nil || n != 3 {
		s.Errorf("%d in trouble, %v", n, err)
	}
}

func deliveryForgotten(s *Suite) {
	waiting, filtered, started := s.add(s.delivery("1", "1")), s.delivery("2", "2"), s.delivery("3", "3")
	filtered.State, started.State, started.TaskID = trigger.Filtered, trigger.Started, "tsk_1"
	s.add(filtered)
	s.add(started)
	s.Clock.Add(time.Hour)
	young := s.delivery("4", "4")
	young.State = trigger.Filtered
	s.add(young)
	bodies, gone, err := s.Store.ForgetDeliveries(s.ctx, s.Clock.Now())
	s.must(err)
	if bodies != 1 || gone != 1 {
		s.Errorf("%d bodies and %d deliveries went, want 1 and 1", bodies, gone)
	}
	_, err = s.Store.Delivery(s.ctx, filtered.ID)
	s.is(err, orchestrator.ErrNotFound)
	for id, body := range map[string]bool{waiting.ID: true, started.ID: false, young.ID: true} {
		d, err := s.Store.Delivery(s.ctx, id)
		s.must(err)
		if (d.Body != nil) != body {
			s.Errorf("%s: body %q", d.ExternalID, d.Body)
		}
	}
	if _, fresh, err := s.Store.AddDelivery(s.ctx, s.delivery("2", "2"), day); err != nil || !fresh {
		s.Errorf("a key that is forgotten is taken again: %t %v", fresh, err)
	}
	// Bodies that are kept for an hour are no reason to start a task twice within the day.
	for what, d := range map[string]trigger.Delivery{"its id": s.delivery("3", "another"), "its body under another id": s.delivery("forged", "3")} {
		if first, fresh, err := s.Store.AddDelivery(s.ctx, d, day); err != nil || fresh || first.ID != started.ID {
			s.Errorf("%s came again and made %s, fresh %t, %v", what, first.ID, fresh, err)
		}
	}
}

func scheduleTimes(s *Suite) {
	now := s.Clock.Now()
	at := func(want time.Time) {
		s.Helper()
		got, err := s.Store.ScheduledUntil(s.ctx, "nightly", s.Clock.Now())
		s.must(err)
		if !got.Equal(want) {
			s.Errorf("looked at up to %s, want %s", got, want)
		}
	}
	at(now)
	s.Clock.Add(time.Hour)
	at(now) // it was new then, not now
	s.must(s.Store.SetScheduled(s.ctx, "nightly", now.Add(time.Minute), false))
	s.must(s.Store.SetScheduled(s.ctx, "nightly", now, false)) // a node that is late
	at(now.Add(time.Minute))
	s.must(s.Store.SetScheduled(s.ctx, "nightly", now, true))
	at(now)
}
