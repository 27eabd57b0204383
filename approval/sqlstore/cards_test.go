package sqlstore_test

import (
	"errors"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
)

func cards(s *Suite) {
	d := s.delegation(s.task("one"))
	id := s.request(d).ID
	due := func(want string) []approval.Card {
		s.Helper()
		cards, err := s.Store.DueCards(s.ctx, []origin.Channel{"inbox", "chat"}, s.Clock.Now(), s.Clock.Now().Add(time.Minute), 10)
		s.must(err)
		var got []string
		for _, c := range cards {
			got = append(got, fmt.Sprint(c.Channel, c.Shown))
		}
		if fmt.Sprint(got) != want {
			s.Errorf("due %v, want %s", got, want)
		}
		return cards
	}
	c := due("[inbox0]")[0]
	due("[]") // leased
	s.gate(d.TaskID, func(tx approval.Tx) error {
		return tx.EnsureCard(s.ctx, approval.Card{RequestID: id, Channel: "inbox"})
	})
	due("[]") // it existed already
	s.Clock.Add(time.Minute)
	c = due("[inbox0]")[0] // its node died
	c.Error, c.Attempts, c.DueAt = "429", 1, s.Clock.Now().Add(time.Hour)
	s.must(s.Store.SaveCard(s.ctx, c))
	due("[]")
	s.Clock.Add(time.Hour)
	c = due("[inbox0]")[0]
	if c.Attempts != 1 || c.Error != "429" {
		s.Errorf("card %+v", c)
	}
	// The request changes while the first version is on its way.
	s.in(d.TaskID, func(tx orchestrator.Tx) error { return tx.CloseRequest(s.ctx, d.ID, orchestrator.RequestCancelled, "") })
	c.Error, c.Shown, c.ExternalID, c.Attempts = "", 1, "m1", 0
	s.must(s.Store.SaveCard(s.ctx, c))
	c = due("[inbox1]")[0]
	c.Shown = 2
	s.must(s.Store.SaveCard(s.ctx, c))
	s.Clock.Add(24 * time.Hour)
	due("[]") // it has converged
	r, err := s.Store.Request(s.ctx, id)
	if err != nil || len(r.Cards) != 1 || r.Cards[0].ExternalID != "m1" || r.Cards[0].Shown != r.Version {
		s.Errorf("cards %+v %v", r.Cards, err)
	}
	s.is(s.Store.SaveCard(s.ctx, approval.Card{RequestID: "apr_none"}), orchestrator.ErrNotFound)

	other := s.request(d)
	c = due("[inbox0]")[0]
	c.Dead, c.Error = true, "the bot was blocked"
	s.must(s.Store.SaveCard(s.ctx, c))
	s.Clock.Add(24 * time.Hour)
	due("[]") // given up
	s.gate(d.TaskID, func(tx approval.Tx) error {
		r, err := tx.Request(s.ctx, other.ID)
		return errors.Join(err, tx.SaveRequest(s.ctx, r))
	})
	due("[inbox0]") // a change is a reason to try again
}

func cardLeases(s *Suite) {
	d := s.delegation(s.task("one"))
	for range 10 {
		s.request(d)
	}
	stores := []approval.Store{s.Store, s.open("two")}
	got := make(chan string, 1000)
	errs := together(8, func(i int) error {
		for {
			cards, err := stores[i%2].DueCards(s.ctx, []origin.Channel{"inbox"}, s.Clock.Now(), s.Clock.Now().Add(time.Minute), 2)
			if err != nil || len(cards) == 0 {
				return err
			}
			for _, c := range cards {
				got <- c.RequestID
			}
		}
	})
	if count(errs, nil) != 8 {
		s.Fatalf("errors %v", errs)
	}
	// Rows that another node was just leasing are skipped: ask once more.
	for cards, err := stores[0].DueCards(s.ctx, []origin.Channel{"inbox"}, s.Clock.Now(), s.Clock.Now().Add(time.Minute), 20); len(cards) > 0 || err != nil; cards = nil {
		s.must(err)
		for _, c := range cards {
			got <- c.RequestID
		}
	}
	close(got)
	seen := map[string]int{}
	for id := range got {
		seen[id]++
	}
	if len(seen) != 10 {
		s.Errorf("%d cards", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			s.Errorf("%s was leased %d times", id, n)
		}
	}
}
