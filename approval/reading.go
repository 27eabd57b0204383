package approval

import (
	"context"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// SurfacePage is what Seen.Surface says of a verdict that was given on the review page.
const SurfacePage = "page"

// KeepReadings is how long is known how far people had read a revision; what their
// decisions took from it is kept with them.
const KeepReadings = 90 * 24 * time.Hour

// Reading is how far a person has read one revision. It is theirs, on every device.
type Reading struct {
	// OpenedAt is when the server first drew the revision's page for them; zero: never.
	OpenedAt time.Time
	// Viewed are the numbers of the files that they marked, from 1, ascending.
	Viewed []int
}

// Reading returns how far the person has read a revision.
func (g *Gateway) Reading(ctx context.Context, by people.Principal, requestID string, revision int) (Reading, error) {
	if by.User.ID == "" {
		return Reading{}, nil
	}
	return g.store.Reading(ctx, by.User.ID, requestID, revision)
}

// Open is Reading for a page that is drawn now: the first time is kept.
func (g *Gateway) Open(ctx context.Context, by people.Principal, requestID string, revision int) (Reading, error) {
	got, err := g.Reading(ctx, by, requestID, revision)
	if err != nil || by.User.ID == "" || !got.OpenedAt.IsZero() {
		return got, err
	}
	if err := g.store.OpenReading(ctx, by.User.ID, requestID, revision, g.now()); err != nil {
		return got, err
	}
	return g.Reading(ctx, by, requestID, revision)
}

// MarkViewed sets or removes the person's mark on a file of a revision, by its number
// from 1.
func (g *Gateway) MarkViewed(ctx context.Context, by people.Principal, requestID string, revision, file int, viewed bool) error {
	if by.User.ID == "" {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Only a person can mark files as viewed. Sign in.")
	}
	r, err := g.Request(ctx, requestID)
	if err != nil {
		return err
	}
	v, err := g.revisionN(ctx, r, revision)
	if err != nil {
		return err
	}
	if file < 1 || file > len(v.Files) {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Revision %d has %d %s, and none of number %d. Load the page again.", v.N, len(v.Files), plural(len(v.Files), "file", "files"), file)
	}
	if _, err := g.Open(ctx, by, r.ID, v.N); err != nil {
		return err
	}
	return g.store.MarkViewed(ctx, by.User.ID, r.ID, v.N, file, viewed)
}

// seen completes what a verdict on the page had before it with what the server knows:
// nothing of it is taken from the form but the ticks.
func (g *Gateway) seen(ctx context.Context, b *Ballot, v Revision) error {
	if b.Seen.Surface != SurfacePage {
		return nil
	}
	got, err := g.Reading(ctx, b.Principal, b.RequestID, v.N)
	if err != nil {
		return err
	}
	b.Seen.Files, b.Seen.FilesViewed, b.Seen.OpenedAt = len(v.Files), len(got.Viewed), nil
	if !got.OpenedAt.IsZero() {
		b.Seen.OpenedAt = &got.OpenedAt
	}
	return nil
}
