package sqlstore_test

import (
	"errors"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

var outboxTests = map[string]func(*Suite){
	"what was shown comes before what is new":   editsFirst,
	"a flood becomes lines of a digest":         floods,
	"a digest is due while a line is behind":    digestLines,
	"a card leaves its digest":                  leaves,
	"notices are leased, sent once or given up": notices,
	"what is due on requests is found":          acts,
	"dead letters are listed and tried again":   deadLetters,
	"a channel's health is kept":                health,
}

// flood is small, so that a test sees both sides of it.
var flood = approval.Flood{Cards: 2, Within: time.Minute, Age: 10 * time.Minute, Lines: 3}

// shownAt makes a request of d with a card at an address, delivered already or not.
func (s *Suite) shownAt(d *orchestrator.Delegation, address string, delivered bool) approval.Card {
	s.Helper()
	s.Clock.Add(time.Millisecond)
	r := s.request(d)
	c := approval.Card{RequestID: r.ID, Channel: "tg", Address: address}
	s.gate(d.TaskID, func(tx approval.Tx) error { return tx.EnsureCard(s.ctx, c) })
	if delivered {
		now := s.Clock.Now()
		c.Shown, c.ExternalID, c.SentAt = 1, "m"+r.ID, &now
		s.must(s.Store.SaveCard(s.ctx, c))
	}
	return c
}

func (s *Suite) card(c approval.Card) approval.Card {
	s.Helper()
	r, err := s.Store.Request(s.ctx, c.RequestID)
	s.must(err)
	for _, known := range r.Cards {
		if known.Channel == c.Channel && known.Address == c.Address {
			return known
		}
	}
	s.Fatalf("no card %+v", c)
	return c
}

// touch changes the request of a card.
func (s *Suite) touch(d *orchestrator.Delegation, c approval.Card) {
	s.Helper()
	s.gate(d.TaskID, func(tx approval.Tx) error {
		r, err := tx.Request(s.ctx, c.RequestID)
		return errors.Join(err, tx.SaveRequest(s.ctx, r))
	})
}

func (s *Suite) intoDigest(c approval.Card, want bool) {
	s.Helper()
	in, err := s.Store.IntoDigest(s.ctx, c, flood)
	s.must(err)
	if in != want || (s.card(c).Digest != "") != want {
		s.Fatalf("in a digest: %t, want %t; card %+v", in, want, s.card(c))
	}
}

func editsFirst(s *Suite) {
	d := s.delegation(s.task("one"))
	old := s.shownAt(d, "a", true)
	fresh := s.shownAt(d, "a", false)
	s.Clock.Add(time.Second)
	s.touch(d, old)
	due := func(find func() ([]approval.Card, error)) (got []string) {
		s.Helper()
		cards, err := find()
		s.must(err)
		for _, c := range cards {
			got = append(got, c.RequestID)
		}
		return got
	}
	now := s.Clock.Now()
	got := due(func() ([]approval.Card, error) { return s.Store.DueCards(s.ctx, []origin.Channel{"tg"}, now, now, 10) })
	if fmt.Sprint(got) != fmt.Sprint([]string{old.RequestID, fresh.RequestID}) {
		s.Errorf("due %v, want %s before %s", got, old.RequestID, fresh.RequestID)
	}
	got = due(func() ([]approval.Card, error) {
		return s.Store.DueEdits(s.ctx, []origin.Channel{"tg"}, now, now.Add(time.Minute), 10)
	})
	if fmt.Sprint(got) != fmt.Sprint([]string{old.RequestID}) {
		s.Errorf("edits %v, want %s alone", got, old.RequestID)
	}
	if got := due(func() ([]approval.Card, error) { return s.Store.DueEdits(s.ctx, []origin.Channel{"tg"}, now, now, 10) }); len(got) != 0 {
		s.Errorf("leased twice: %v", got)
	}
}

func floods(s *Suite) {
	d := s.delegation(s.task("one"))
	s.shownAt(d, "a", true)
	third := s.shownAt(d, "a", false)
	s.intoDigest(third, false) // one message so far
	s.shownAt(d, "a", true)
	s.intoDigest(third, true)
	s.intoDigest(s.shownAt(d, "b", false), false) // another address
	digest := s.card(third).Digest
	for i := range 3 { // three lines fill it
		c := s.shownAt(d, "a", false)
		s.intoDigest(c, true)
		if same := s.card(c).Digest == digest; same != (i < 2) {
			s.Errorf("line %d in the same digest: %t", i+2, same)
		}
	}
	s.Clock.Add(flood.Within + time.Second)
	s.intoDigest(s.shownAt(d, "a", false), false) // it is quiet again
	s.Clock.Add(-30 * time.Minute)
	s.intoDigest(s.shownAt(d, "a", false), false) // messages of a clock that was ahead
	s.Clock.Add(30 * time.Minute)
	s.Clock.Add(flood.Age)
	s.shownAt(d, "a", true)
	s.shownAt(d, "a", true)
	late := s.shownAt(d, "a", false)
	s.intoDigest(late, true)
	if s.card(late).Digest == digest {
		s.Error("an old digest takes lines in")
	}
	cards, err := s.Store.DueCards(s.ctx, []origin.Channel{"tg"}, s.Clock.Now(), s.Clock.Now(), 50)
	s.must(err)
	for _, c := range cards {
		if c.Digest != "" {
			s.Errorf("a line is due as a card: %+v", c)
		}
	}
}

func digestLines(s *Suite) {
	d := s.delegation(s.task("one"))
	s.shownAt(d, "a", true)
	s.shownAt(d, "a", true)
	one, two := s.shownAt(d, "a", false), s.shownAt(d, "a", false)
	s.intoDigest(one, true)
	s.intoDigest(two, true)
	due := func(sent bool) []approval.Digest {
		s.Helper()
		all, err := s.Store.DueDigests(s.ctx, "tg", sent, s.Clock.Now(), s.Clock.Now().Add(time.Minute), 10)
		s.must(err)
		return all
	}
	if len(due(true)) != 0 {
		s.Error("a digest that was not sent is due for an edit")
	}
	all := due(false)
	if len(all) != 1 || all[0].Channel != "tg" || all[0].Address != "a" || len(due(false)) != 0 {
		s.Fatalf("due %+v", all)
	}
	lines, err := s.Store.DigestLines(s.ctx, all[0].ID)
	if err != nil || len(lines) != 2 || lines[0].RequestID != one.RequestID || lines[1].RequestID != two.RequestID {
		s.Fatalf("lines %+v %v", lines, err)
	}
	s.touch(d, two) // while it is on its way
	g := all[0]
	g.ExternalID, g.DueAt = "m1", s.Clock.Now().Add(3*time.Second)
	first, err := s.Store.SaveDigest(s.ctx, g, map[string]int64{one.RequestID: 1, two.RequestID: 1})
	if err != nil || len(first) != 2 {
		s.Fatalf("first %v %v", first, err)
	}
	if c := s.card(one); c.Shown != 1 || c.SentAt == nil || c.ExternalID != "" {
		s.Errorf("line %+v", c)
	}
	if len(due(true)) != 0 {
		s.Error("edited before its time")
	}
	s.Clock.Add(3 * time.Second)
	if all = due(true); len(all) != 1 || all[0].ExternalID != "m1" {
		s.Fatalf("due %+v: the second line changed", all)
	}
	g = all[0]
	g.Error, g.Attempts, g.DueAt = "503", 1, s.Clock.Now().Add(time.Second)
	if first, err = s.Store.SaveDigest(s.ctx, g, map[string]int64{two.RequestID: 2}); err != nil || len(first) != 0 || s.card(two).Shown != 1 {
		s.Errorf("first %v %v, line %+v: it was not delivered", first, err, s.card(two))
	}
	s.Clock.Add(time.Second)
	if all = due(true); len(all) != 1 || all[0].Attempts != 1 || all[0].Error != "503" {
		s.Fatalf("due %+v", all)
	}
	g.Error, g.Attempts = "", 0
	if first, err = s.Store.SaveDigest(s.ctx, g, map[string]int64{one.RequestID: 1, two.RequestID: 2}); err != nil || len(first) != 0 {
		s.Errorf("first %v %v", first, err)
	}
	s.Clock.Add(time.Hour)
	if all = due(true); len(all) != 0 {
		s.Errorf("due %+v: every line is as its request", all)
	}
	_, err = s.Store.SaveDigest(s.ctx, approval.Digest{ID: "dig_none"}, nil)
	s.is(err, orchestrator.ErrNotFound)
}

func leaves(s *Suite) {
	d := s.delegation(s.task("one"))
	s.shownAt(d, "a", true)
	s.shownAt(d, "a", true)
	c := s.shownAt(d, "a", false)
	s.intoDigest(c, true)
	digest := s.card(c).Digest
	s.gate(d.TaskID, func(tx approval.Tx) error { return tx.OwnCard(s.ctx, c) })
	own := s.card(c)
	if own.Digest != "" || own.SentAt == nil || own.ExternalID != "" {
		s.Fatalf("card %+v", own)
	}
	s.intoDigest(c, false) // it stays out
	cards, err := s.Store.DueEdits(s.ctx, []origin.Channel{"tg"}, s.Clock.Now(), s.Clock.Now(), 10)
	if err != nil || len(cards) != 1 || cards[0].RequestID != c.RequestID {
		s.Errorf("due %+v %v", cards, err)
	}
	// A digest that was on its way with the line does not take it back.
	first, err := s.Store.SaveDigest(s.ctx, approval.Digest{ID: digest, Channel: "tg", Address: "a", ExternalID: "m"}, map[string]int64{c.RequestID: 1})
	if err != nil || len(first) != 0 || s.card(c).Shown != 0 {
		s.Errorf("first %v %v, card %+v", first, err, s.card(c))
	}
	s.gate(d.TaskID, func(tx approval.Tx) error {
		c := approval.Card{RequestID: c.RequestID, Channel: "tg", Address: "new"}
		all, err := tx.Cards(s.ctx, c.RequestID)
		if err != nil || len(all) != 2 {
			s.Errorf("cards %+v %v", all, err)
		}
		return tx.OwnCard(s.ctx, c)
	})
	if own := s.card(approval.Card{RequestID: c.RequestID, Channel: "tg", Address: "new"}); own.SentAt == nil || own.Shown != 0 {
		s.Errorf("card %+v", own)
	}
}

func notices(s *Suite) {
	d := s.delegation(s.task("one"))
	r := s.request(d)
	s.gate(d.TaskID, func(tx approval.Tx) error {
		return errors.Join(
			tx.InsertNotice(s.ctx, approval.Notice{ID: "ntc_1", RequestID: r.ID, Revision: 1, Channel: "tg", Address: "a", Kind: approval.Reminder}),
			tx.InsertNotice(s.ctx, approval.Notice{ID: "ntc_2", RequestID: r.ID, Revision: 1, Channel: "tg", Address: "b", Kind: approval.Escalation, To: []string{"leads"}}))
	})
	due := func() []approval.Notice {
		s.Helper()
		all, err := s.Store.DueNotices(s.ctx, "tg", s.Clock.Now(), s.Clock.Now().Add(time.Minute), 10)
		s.must(err)
		return all
	}
	other, err := s.Store.DueNotices(s.ctx, "chat", s.Clock.Now(), s.Clock.Now(), 10)
	if err != nil || len(other) != 0 {
		s.Errorf("another channel has %+v %v", other, err)
	}
	all := due()
	if len(all) != 2 || len(due()) != 0 {
		s.Fatalf("due %+v", all)
	}
	for _, n := range all {
		now := s.Clock.Now()
		if n.ID == "ntc_1" {
			n.SentAt = &now
		} else if n.Dead, n.Error = true, "gone"; fmt.Sprint(n.To) != "[leads]" || n.Kind != approval.Escalation || n.Revision != 1 {
			s.Errorf("notice %+v", n)
		}
		s.must(s.Store.SaveNotice(s.ctx, n))
	}
	s.Clock.Add(time.Hour)
	if all = due(); len(all) != 0 {
		s.Errorf("due %+v", all)
	}
	s.is(s.Store.SaveNotice(s.ctx, approval.Notice{ID: "ntc_none"}), orchestrator.ErrNotFound)
}

func acts(s *Suite) {
	d := s.delegation(s.task("one"))
	past, later := s.Clock.Now().Add(-time.Second), s.Clock.Now().Add(time.Hour)
	ids := map[string]string{}
	for name, at := range map[string]*time.Time{"due": &past, "later": &later, "none": nil} {
		ids[name] = s.request(d, func(r *approval.Request) { r.NextAt = at }).ID
	}
	s.request(d, func(r *approval.Request) { r.State, r.NextAt = approval.Approved, &past })
	found, err := s.Store.DueActs(s.ctx, s.Clock.Now(), 10)
	if err != nil || len(found) != 1 || found[0].ID != ids["due"] || len(found[0].Cards) != 1 {
		s.Errorf("due %+v %v", found, err)
	}
	other := s.delegation(s.task("two"))
	r := s.request(other, func(r *approval.Request) { r.NextAt = &past })
	s.in(other.TaskID, func(tx orchestrator.Tx) error {
		return tx.CloseRequest(s.ctx, other.ID, orchestrator.RequestCancelled, "")
	})
	if r, err := s.Store.Request(s.ctx, r.ID); err != nil || r.NextAt != nil {
		s.Errorf("something is due on a cancelled request: %v %v", r.NextAt, err)
	}
}

func deadLetters(s *Suite) {
	d := s.delegation(s.task("one"))
	for i := range 3 {
		c := s.shownAt(d, fmt.Sprint("a", i), false)
		c.Dead, c.Error, c.Attempts = true, "kicked", 12
		s.must(s.Store.SaveCard(s.ctx, c))
	}
	r, decided := s.request(d), s.request(d, func(r *approval.Request) { r.State = approval.Rejected })
	s.gate(d.TaskID, func(tx approval.Tx) error {
		for id, of := range map[string]string{"ntc_1": r.ID, "ntc_2": decided.ID} {
			if err := tx.InsertNotice(s.ctx, approval.Notice{ID: id, RequestID: of, Revision: 1, Channel: "hook", Address: "b", Kind: approval.Reminder}); err != nil {
				return err
			}
		}
		return nil
	})
	all, err := s.Store.DueNotices(s.ctx, "hook", s.Clock.Now(), s.Clock.Now(), 10)
	s.must(err)
	for _, n := range all {
		n.Dead, n.Error = true, "404"
		s.must(s.Store.SaveNotice(s.ctx, n))
	}
	seen, after := map[string]int{}, ""
	for pages := 1; ; pages++ {
		page, err := s.Store.DeadLetters(s.ctx, approval.DeadFilter{After: after, Limit: 3})
		s.must(err)
		for _, l := range page.Items {
			seen[l.Kind]++
			if l.Key <= after || l.Error == "" || l.Title != "Fix" || l.State != approval.Pending {
				s.Errorf("letter %+v after %q", l, after)
			}
			after = l.Key
		}
		if page.Next == "" {
			if pages != 2 {
				s.Errorf("%d pages", pages)
			}
			break
		}
	}
	if seen[approval.DeadCard] != 3 || seen[approval.DeadNotice] != 1 {
		s.Errorf("letters %v: the notice of the decided request is not wanted any more", seen)
	}
	backlog, err := s.Store.Backlog(s.ctx)
	if err != nil || fmt.Sprint(backlog) != "[{hook 0 1} {inbox 5 0} {tg 0 3}]" {
		s.Errorf("backlog %v %v", backlog, err)
	}
	one, err := s.Store.DeadLetters(s.ctx, approval.DeadFilter{Channel: "tg", Limit: 1})
	s.must(err)
	for i, want := range []int{1, 0} {
		if n, err := s.Store.Revive(s.ctx, "ann", approval.DeadFilter{Key: one.Items[0].Key}); n != want || err != nil {
			s.Errorf("retry %d: %d %v", i, n, err)
		}
	}
	if n, err := s.Store.Revive(s.ctx, "ann", approval.DeadFilter{Channel: "tg"}); n != 2 || err != nil {
		s.Errorf("%d tried again, %v", n, err)
	}
	cards, err := s.Store.DueCards(s.ctx, []origin.Channel{"tg"}, s.Clock.Now(), s.Clock.Now(), 10)
	if err != nil || len(cards) != 3 || cards[0].Attempts != 0 || cards[0].Error != "" {
		s.Errorf("due %+v %v", cards, err)
	}
	events, err := s.Store.Events(s.ctx, event.System, 0, 50)
	if err != nil || len(events) != 2 || events[0].Type != event.ChannelRetried || events[0].Actor != "ann" {
		s.Errorf("events %+v %v", events, err)
	}
}

func health(s *Suite) {
	two := s.open("two")
	s.must(s.Store.SetHealth(s.ctx, "tg", approval.Connected, ""))
	since := s.Clock.Now()
	s.Clock.Add(time.Minute)
	s.must(s.Store.SetHealth(s.ctx, "tg", approval.Connected, "")) // nothing new
	s.must(two.SetHealth(s.ctx, "tg", approval.Connected, "webhook"))
	all, err := s.Store.Health(s.ctx)
	if err != nil || len(all) != 1 || all[0] != (approval.Health{Channel: "tg", State: approval.Connected, Detail: "webhook", Node: "two", Since: since}) {
		s.Fatalf("health %+v %v", all, err)
	}
	s.must(two.SetHealth(s.ctx, "tg", approval.Conflict, "Another program polls this bot."))
	all, err = s.Store.Health(s.ctx)
	if err != nil || !all[0].Bad() || all[0].Since != s.Clock.Now() {
		s.Errorf("health %+v %v", all, err)
	}
	events, err := s.Store.Events(s.ctx, event.System, 0, 50)
	if err != nil || len(events) != 2 || events[1].Type != event.ChannelHealth {
		s.Errorf("%d events, %v: one for each change of the state", len(events), err)
	}
}
