package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
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

// The places where a change can be read. What was read, by whom and where is decided here
// alone: decisions, lists, the history and the filter viewed: take it from Seen.Read.
const (
	SurfacePage     = "page" // the review page
	SurfaceChat     = string(origin.Chat)
	SurfaceTelegram = string(origin.Telegram)
	SurfaceCLI      = string(origin.CLI) // gatehouse review
	SurfaceAPI      = string(origin.API) // the patch, fetched by a program
)

// readIn is a place as rows name it.
func readIn(surface string) string {
	if surface == SurfacePage {
		return origin.Web.Read()
	}
	return origin.Channel(surface).Read()
}

// Read is how much of a revision somebody had before them in one place.
type Read struct {
	Surface string `json:"surface"`
	Files   int    `json:"files"` // that were before them to their end
	Whole   bool   `json:"whole"` // the whole diff in one piece
}

// ReadWhole records that a person was given the whole diff of a revision on a channel. What
// an agent fetches is no reading of a person's. That it cannot be stored is no reason not to
// show it.
func (g *Gateway) ReadWhole(ctx context.Context, by people.Principal, r Request, revision int, channel origin.Channel) {
	if by.User.ID == "" || by.Run != nil || readIn(surfaceOf(channel)) == "" {
		return
	}
	err := g.store.MarkWhole(ctx, by.User.ID, r.ID, revision, surfaceOf(channel), g.now())
	g.logError(ctx, "that a person was given a whole diff could not be stored", err)
}

// surfaceOf is the place that a channel reads in.
func surfaceOf(channel origin.Channel) string {
	if channel == origin.Web {
		return SurfacePage
	}
	return string(channel)
}

// reads is all that is known of a person's reading when they decide on a channel; whole says
// that all of the change stands beside the buttons there.
func (b Ballot) reads(got Reading, files int) []Read {
	read := []Read{}
	if n := got.read(); n > 0 {
		read = append(read, Read{Surface: SurfacePage, Files: n})
	}
	whole := got.Whole
	if here := surfaceOf(b.Channel); b.Whole && !slices.Contains(whole, here) {
		whole = append(slices.Clone(whole), here)
	}
	for _, place := range whole {
		if place == SurfacePage { // one place is named once
			read = slices.DeleteFunc(read, func(r Read) bool { return r.Surface == SurfacePage })
		}
		read = append(read, Read{Surface: place, Files: files, Whole: true})
	}
	return read
}

// All reports whether every one of so many files was before whoever decided, in some place.
func (s Seen) All(files int) bool {
	return max(s.FilesViewed, s.FilesOpened) >= files || slices.ContainsFunc(s.Read, func(r Read) bool { return r.Whole || r.Files >= files })
}

// Reader is how somebody has read the current revision; whoever decided, how they had then.
type Reader struct {
	User    string `json:"user"`
	Of      int    `json:"of"`   // files that the revision had
	Reads   []Read `json:"read"` // none: nothing of it was before them here
	Decided bool   `json:"decided"`
}

// Look is that a person who gave no verdict on a revision had something of it before them.
type Look struct {
	RequestID string
	Revision  int
	Current   bool // it is the newest revision of the request
	User      string
	Files     int      // that were before them on the page
	Whole     []string // the places where all of it was
}

// reader is l of a revision that has so many files.
func (l Look) reader(files int) Reader {
	got := Reader{User: l.User, Of: files, Reads: []Read{}}
	if l.Files > 0 && !slices.Contains(l.Whole, SurfacePage) { // one place is named once
		got.Reads = append(got.Reads, Read{Surface: SurfacePage, Files: l.Files})
	}
	for _, place := range l.Whole {
		got.Reads = append(got.Reads, Read{Surface: place, Files: files, Whole: true})
	}
	return got
}

// KnowsReaders reports whether somebody may know who read a request and gave no verdict:
// whoever may read the request, or the history of all of them.
func KnowsReaders(who people.Principal) bool {
	return who.Has(people.ApprovalsRead) || who.Has(people.AuditRead)
}

// ReadersOf is r with who read the revision that it shows, as far as who asks may know.
func (g *Gateway) ReadersOf(ctx context.Context, who people.Principal, r Request) (Request, error) {
	one := []Request{r}
	err := g.WithReaders(ctx, who, one)
	return one[0], err
}

// WithReaders puts onto requests who read the revision that each shows and gave no verdict
// on it, as far as who asks may know that.
func (g *Gateway) WithReaders(ctx context.Context, who people.Principal, requests []Request) error {
	if len(requests) == 0 || !KnowsReaders(who) {
		return nil
	}
	ids := make([]string, len(requests))
	for i, r := range requests {
		ids[i] = r.ID
	}
	looks, err := g.store.Looks(ctx, ids)
	if err != nil {
		return err
	}
	for i := range requests {
		r := &requests[i]
		r.Readers = nil
		for _, l := range looks {
			if l.RequestID == r.ID && l.Revision == r.Revision.N {
				r.Readers = append(r.Readers, l.reader(len(r.Revision.Files)))
			}
		}
	}
	return nil
}

// ReadBy lists the people who decided on the current revision with what each had read, in
// the order of their first verdict, then the Readers. Of verdicts of before that was kept it
// says nothing that it does not know.
func (r Request) ReadBy() []Reader { return append(r.decidedBy(), r.Readers...) }

func (r Request) decidedBy() []Reader {
	all := []Reader{}
	for _, d := range r.Decisions {
		if d.Revision != r.Revision.N || d.OfRule() || d.Seen.Files == 0 {
			continue
		}
		read := d.Seen.Read
		if read == nil {
			n := max(d.Seen.FilesOpened, d.Seen.FilesViewed)
			if d.Seen.Surface != SurfacePage || n == 0 {
				continue
			}
			read = []Read{{Surface: SurfacePage, Files: n}}
		}
		one := Reader{User: d.User, Of: d.Seen.Files, Reads: read, Decided: true}
		if i := slices.IndexFunc(all, func(o Reader) bool { return o.User == d.User }); i >= 0 {
			all[i] = one // the newest verdict knows the most
			continue
		}
		all = append(all, one)
	}
	return all
}

// HowRead is ReadBy as a row says it: "read on the web by ada: 3 of 3 files; in Telegram by
// ben: whole; read without a verdict on the web by cy: 1 of 3 files"; "" while nobody has.
func (r Request) HowRead() string {
	var read, not []string
	for _, by := range r.decidedBy() {
		read = append(read, by.words()...)
		if len(by.Reads) == 0 {
			not = append(not, by.User)
		}
	}
	var parts []string
	if len(read) > 0 {
		parts = append(parts, "read "+strings.Join(read, "; "))
	}
	if len(not) > 0 {
		parts = append(parts, "not read here by "+strings.Join(not, ", "))
	}
	return alsoRead(strings.Join(parts, "; "), r.Readers)
}

// AlsoRead is HowRead of a row that says how those who decided had read a revision of so
// many files; looks are those of the request.
func AlsoRead(decided string, files int, looks []Look) string {
	var others []Reader
	for _, l := range looks {
		if l.Current {
			others = append(others, l.reader(files))
		}
	}
	return alsoRead(decided, others)
}

// maxReaders is how many people a row names who gave no verdict.
const maxReaders = 4

func alsoRead(decided string, others []Reader) string {
	var parts []string
	if decided != "" {
		parts = append(parts, decided)
	}
	var read []string
	for _, by := range others[:min(len(others), maxReaders)] {
		read = append(read, by.words()...)
	}
	if n := len(others) - maxReaders; n > 0 {
		read = append(read, fmt.Sprintf("by %d %s", n, plural(n, "other", "others")))
	}
	if len(read) > 0 {
		parts = append(parts, "read without a verdict "+strings.Join(read, "; "))
	}
	return strings.Join(parts, "; ")
}

// words say where somebody had read, and how much: "on the web by ada: 3 of 3 files".
func (by Reader) words() []string {
	var all []string
	for _, one := range by.Reads {
		much := fmt.Sprintf("%d of %d %s", one.Files, by.Of, plural(by.Of, "file", "files"))
		if one.Whole {
			much = "whole"
		}
		all = append(all, fmt.Sprintf("%s by %s: %s", readIn(one.Surface), by.User, much))
	}
	return all
}
