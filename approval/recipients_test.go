package approval_test

import (
	"context"
	"slices"
	"testing"

	"gatehouse/approval"
)

// A channel that the configuration gets while requests wait shows them, and Run sees to it.
func TestAChannelThatComesLaterShowsWhatWaits(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	ended := w.asked()
	w.decide(ballot(ended, "bob", approval.Reject))
	b := newBoard()
	done := make(chan error)
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	go func() { done <- w.g.Run(ctx) }()
	c := w.g.Config()
	c.Channels = append(slices.Clone(c.Channels), b)
	w.g.SetConfig(c)
	w.eventually("shown", func() bool {
		r := w.request(r.ID)
		return len(r.Cards) == 3 && w.card(r, "north").Shown == r.Version
	})
	stop()
	w.must(<-done)
	if cards := w.request(ended.ID).Cards; len(cards) != 1 {
		t.Errorf("what was decided has got cards: %+v", cards)
	}
}
