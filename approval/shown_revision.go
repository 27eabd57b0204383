package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/textcut"
)

// complete adds to a ballot what the server knows of how it came about: whether its
// digest alone says which revision was shown, how much of that was read, and which of its
// ticks were asked for. The transaction takes the ballot on r's revision only.
func (g *Gateway) complete(ctx context.Context, b *Ballot, r Request) error {
	if b.Revision == 0 && r.Revision.N > 1 && b.Digest == r.Revision.Digest {
		all, err := g.store.Revisions(ctx, r.ID)
		if err != nil {
			return fmt.Errorf("reading the revisions of %s: %w", r.ID, err)
		}
		b.twins = slices.ContainsFunc(all, func(v Revision) bool { return v.N != r.Revision.N && v.Digest == b.Digest })
	}
	if err := g.seen(ctx, b, r.Revision); err != nil {
		return err
	}
	b.Seen.WarningsTicked = ticked(r, *b)
	return nil
}

// current reports whether the ballot is about the current revision. A beginning of its
// digest is not enough: an agent can make trees until the first digits agree. Nor is the
// whole digest of a tree that was made twice: its checks may fail now.
func (r Request) current(b Ballot) bool {
	return r.Revision.Digest == b.Digest && (b.Revision == r.Revision.N || b.Revision == 0 && !b.twins)
}

// notShown refuses a verdict on something else than the current revision. What changed is
// added outside of the transaction, by changedSince.
func notShown(r Request) *orchestrator.Error {
	return orchestrator.Errorf(orchestrator.CodeSuperseded, "Revision %d is asked now, and your verdict is not about it. Nothing was stored. Read it, then decide.", r.Revision.N)
}

// changedSince tells whose verdict was on something else what is different now from what
// they were shown. Other refusals stay as they are.
func (g *Gateway) changedSince(ctx context.Context, r Request, b Ballot, refused *orchestrator.Error) error {
	if refused.Code != orchestrator.CodeSuperseded || r.State == Superseded || r.current(b) {
		return refused
	}
	all, err := g.store.Revisions(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("reading what was shown of %s: %w", r.ID, err)
	}
	return superseded(r, shownTo(all, r, b), b)
}

// shownTo is the revision that the ballot's digest and number name, the newest where the
// digest alone fits several; nil: none.
func shownTo(all []Revision, r Request, b Ballot) *Revision {
	for i := len(all) - 1; i >= 0; i-- {
		if v := all[i]; v.Digest == b.Digest && v.N != r.Revision.N && (b.Revision == v.N || b.Revision == 0) {
			return &v
		}
	}
	return nil
}

func superseded(r Request, was *Revision, b Ballot) *orchestrator.Error {
	say := func(format string, args ...any) *orchestrator.Error {
		return orchestrator.Errorf(orchestrator.CodeSuperseded, format, args...)
	}
	now, lost := r.Revision.N, "Your "+noun(b.Verdict)+" was not counted."
	switch {
	case was == nil && now == 1:
		return say("The digest you sent is not that of this change, so you have read something else. Nothing was stored. Read the request again, then decide.")
	case was == nil:
		return say("Revision %d is asked now, and what you sent names no revision of this request, so what you have read is not known here. %s Read revision %d, then decide on it.", now, lost, now)
	case b.Digest == r.Revision.Digest && b.Revision == 0:
		return say("Revisions %d and %d have the same files and so the digest you sent, which does not say which of them you have read. From %d to %d: %s. %s Read revision %d, then send its number with the digest.",
			was.N, now, was.N, now, changed(*was, r.Revision), lost, now)
	}
	return say("Revision %d replaced the one you read, revision %d. Since then: %s. %s Read revision %d, then decide on it.", now, was.N, changed(*was, r.Revision), lost, now)
}

// How much of what changed is told.
const (
	maxNamed = 3  // of each kind
	maxName  = 80 // runes of a path or a command
)

// changed says what is different between what was shown and what is asked now: the files,
// the branch, and what brought knows of warnings and checks.
func changed(was, is Revision) string {
	var added, left, other, parts []string
	had := map[string]patch.File{}
	for _, f := range was.Files {
		had[f.Path] = f
	}
	for _, f := range is.Files {
		old, ok := had[f.Path]
		switch {
		case !ok:
			added = append(added, f.Path)
		case old != f:
			other = append(other, f.Path)
		}
		delete(had, f.Path)
	}
	for _, f := range was.Files {
		if _, ok := had[f.Path]; ok {
			left = append(left, f.Path)
		}
	}
	for _, kind := range []struct {
		what  string
		paths []string
	}{{"added ", added}, {"left out ", left}, {"changed ", other}} {
		if len(kind.paths) > 0 {
			parts = append(parts, kind.what+few(kind.paths))
		}
	}
	switch {
	case was.Base.Branch != is.Base.Branch:
		parts = append(parts, fmt.Sprintf("it lands on %s and not on %s", named(is.Base.Branch), named(was.Base.Branch)))
	case was.Base.Commit != is.Base.Commit:
		parts = append(parts, fmt.Sprintf("%s moved from %.7s to %.7s", named(is.Base.Branch), was.Base.Commit, is.Base.Commit))
	}
	if was.Deliver != is.Deliver {
		parts = append(parts, "it is delivered in another way")
	}
	if fresh := brought(was, is); len(fresh) > 0 {
		parts = append(parts, "there is "+few(fresh))
	}
	if len(parts) == 0 {
		return "nothing in the files, and no new warning or failed check; the work was done again"
	}
	return strings.Join(parts, "; ")
}

// few names the first of a list.
func few(list []string) string { return upTo(maxNamed, list) }

// upTo names so many of a list.
func upTo(most int, list []string) string {
	first := each.Of(list[:min(len(list), most)], named)
	if more := len(list) - len(first); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(first, ", "), more)
	}
	return strings.Join(first, ", ")
}

// named is a name of somebody else's within a sentence: cut, and quoted where characters
// in it cannot be seen.
func named(s string) string {
	s = textcut.Characters(s, maxName)
	if q := fmt.Sprintf("%q", s); q != `"`+s+`"` {
		return q
	}
	return s
}
