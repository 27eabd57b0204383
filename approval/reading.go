package approval

import (
	"context"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// KeepReadings is how long is known how far people had read a revision; what their
// decisions took from it is kept with them.
const KeepReadings = 90 * 24 * time.Hour

// Reading is how far a person has read one revision. It is theirs, on every device.
type Reading struct {
	// OpenedAt is when the server first drew the revision's page for them; zero: never.
	OpenedAt time.Time
	// Viewed are the numbers of the files that they marked, from 1, ascending.
	Viewed []int
	// Opened are the numbers of the files that were before them to the end: scrolled
	// through, unfolded, or on a page of their own. Ascending.
	Opened []int
	// Whole are the places where they were given the whole diff in one piece.
	Whole []string
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
	if got, err = g.Reading(ctx, by, requestID, revision); err == nil && got.OpenedAt.IsZero() {
		got.OpenedAt = g.now() // a page that is drawn of a snapshot does not see what was just kept
	}
	return got, err
}

// MarkViewed sets or removes the person's mark on a file of a revision, by its number
// from 1.
func (g *Gateway) MarkViewed(ctx context.Context, by people.Principal, requestID string, revision, file int, viewed bool) error {
	return g.mark(ctx, by, requestID, revision, []int{file}, func(v Revision) error {
		return g.store.MarkViewed(ctx, by.User.ID, requestID, v.N, file, viewed)
	})
}

// MarkOpened records that files of a revision were before the person on its page, by their
// numbers from 1. It says nothing about what they think of them: that is MarkViewed.
func (g *Gateway) MarkOpened(ctx context.Context, by people.Principal, requestID string, revision int, files []int) error {
	return g.mark(ctx, by, requestID, revision, files, func(v Revision) error {
		return g.store.MarkOpened(ctx, by.User.ID, requestID, v.N, files)
	})
}

// mark keeps a mark on files of a revision that exist, for a person.
func (g *Gateway) mark(ctx context.Context, by people.Principal, requestID string, revision int, files []int, keep func(Revision) error) error {
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
	if len(files) == 0 {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "No file is named. Send the number of a file of revision %d.", v.N)
	}
	for _, file := range files {
		if file < 1 || file > len(v.Files) {
			return orchestrator.Errorf(orchestrator.CodeBadRequest, "Revision %d has %d %s, and none of number %d. Load the page again.", v.N, len(v.Files), plural(len(v.Files), "file", "files"), file)
		}
	}
	if _, err := g.Open(ctx, by, r.ID, v.N); err != nil {
		return err
	}
	return keep(v)
}

// read counts the files that the person had before them: opened, or marked as viewed.
func (r Reading) read() int {
	both := slices.Concat(r.Opened, r.Viewed)
	slices.Sort(both)
	return len(slices.Compact(both))
}

// seen completes what a verdict had before it with what the server knows: nothing of it
// is taken from the form but the ticks. What was read in another place than that of the
// verdict counts, too.
func (g *Gateway) seen(ctx context.Context, b *Ballot, v Revision) error {
	if b.Seen.Surface == "" {
		return nil
	}
	b.Seen.Files = len(v.Files)
	got, err := g.Reading(ctx, b.Principal, b.RequestID, v.N)
	if err != nil {
		return err
	}
	b.Seen.Read = b.reads(got, len(v.Files))
	if b.Seen.Surface != SurfacePage {
		return nil
	}
	b.Seen.FilesViewed, b.Seen.FilesOpened, b.Seen.OpenedAt = len(got.Viewed), got.read(), nil
	if !got.OpenedAt.IsZero() {
		b.Seen.OpenedAt = &got.OpenedAt
	}
	return nil
}
