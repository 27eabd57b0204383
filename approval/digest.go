package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
)

// DigestPrefix begins the ids of digests.
const DigestPrefix = "dig_"

// Flood says when new cards of one address become lines of a digest.
type Flood struct {
	Cards  int           // so many messages of new cards …
	Within time.Duration // … in this time are enough; further ones are lines
	Age    time.Duration // a digest takes lines in for so long …
	Lines  int           // … and so many
}

// flood is in force for every Digester: a person reads five messages in a minute, not
// fifty, and a list of more than fifty lines is longer than a message may be.
var flood = Flood{Cards: 5, Within: time.Minute, Age: 10 * time.Minute, Lines: 50}

// DigestPause is the least time between two edits of one digest, so that fifty
// decisions in a minute are twenty edits at most.
const DigestPause = 3 * time.Second

// Digest is one message that lists many requests in place of a card each.
type Digest struct {
	ID         string // dig_…
	Channel    origin.Channel
	Address    string
	ExternalID string // the channel's name for the message, once sent
	DueAt      time.Time
	Attempts   int
	Error      string
	Dead       bool
	CreatedAt  time.Time
}

// deliverDigests makes one round of the digests of a channel that were sent before, or
// that were not, and reports how many there were. All lines are read just before the message is made, so that it is never
// older than what is saved of it.
func (g *Gateway) deliverDigests(ctx context.Context, ch Channel, sent bool) (int, error) {
	to, ok := ch.(Digester)
	if !ok {
		return 0, nil
	}
	now := g.now()
	due, err := g.store.DueDigests(ctx, ch.Name(), sent, now, now.Add(cardLease), digestBatch)
	if err != nil {
		return 0, fmt.Errorf("reading due digests of %s: %w", ch.Name(), err)
	}
	for i, d := range due {
		if ctx.Err() != nil {
			return i, g.releaseDigests(ctx, due[i:])
		}
		if err := g.deliverDigest(ctx, to, d); err != nil {
			return i, err
		}
	}
	return len(due), nil
}

// deliverDigest makes one delivery of a digest and records how it went.
func (g *Gateway) deliverDigest(ctx context.Context, to Digester, d Digest) error {
	e, err := g.Electorate(ctx)
	if err != nil {
		return err
	}
	lines, err := g.store.DigestLines(ctx, d.ID)
	if err != nil {
		return fmt.Errorf("reading the lines of the digest %s: %w", d.ID, err)
	}
	items, shown := make([]DigestItem, 0, len(lines)), make(map[string]int64, len(lines))
	for _, c := range lines {
		r, err := g.store.Request(ctx, c.RequestID)
		if err != nil {
			return fmt.Errorf("reading request %s of a digest: %w", c.RequestID, err)
		}
		items, shown[r.ID] = append(items, DigestItem{Request: r, View: e.view(r, d.Channel)}), r.Version
	}
	id := d.ExternalID
	if len(items) > 0 || id != "" { // all lines may have left before it was sent
		within, cancel := context.WithTimeout(ctx, deliverTime)
		id, err = to.Digest(within, d.Address, d.ExternalID, items)
		cancel()
	}
	if err != nil && ctx.Err() != nil {
		return g.releaseDigests(ctx, []Digest{d})
	}
	if err == nil {
		if id != "" {
			d.ExternalID = id
		}
		d.Attempts, d.Error, d.Dead, d.DueAt = 0, "", false, g.now().Add(DigestPause)
	} else {
		d.Attempts, d.DueAt, d.Dead = g.later(ctx, d.Channel, d.Attempts, err)
		d.Error = plain(err.Error())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	first, err := g.store.SaveDigest(ctx, d, shown)
	if err != nil {
		return fmt.Errorf("saving the digest %s: %w", d.ID, err)
	}
	for _, item := range items {
		if slices.Contains(first, item.Request.ID) {
			if err := g.notified(ctx, item.Request, d.Channel); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseDigests makes leased digests that were not delivered due again.
func (g *Gateway) releaseDigests(ctx context.Context, all []Digest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	for _, d := range all {
		d.DueAt = g.now()
		if _, err := g.store.SaveDigest(ctx, d, nil); err != nil {
			return fmt.Errorf("giving back the digest %s: %w", d.ID, err)
		}
	}
	return nil
}

// Show makes sure that a request has a message of its own at an address: a card that
// is a line of a digest leaves it, one that does not exist is made. It is due at once.
// The message of a card that has one stays where it is.
func (g *Gateway) Show(ctx context.Context, requestID string, channel origin.Channel, address string) error {
	r, err := g.Request(ctx, requestID)
	if err != nil {
		return err
	}
	if !r.shownIn(channel) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "%s's changes are not shown here: its mode is %s. Open the request's page.", r.Agent, r.Mode)
	}
	err = g.inTask(ctx, r.TaskID, func(tx Tx) error {
		return tx.OwnCard(ctx, Card{RequestID: r.ID, Channel: channel, Address: address})
	})
	if err != nil {
		return fmt.Errorf("showing %s in %s: %w", r.ID, channel, err)
	}
	return nil
}
