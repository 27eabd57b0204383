package patch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/nearest"
	"gatehouse/orchestrator/textcut"
)

// CodeBadRef: a task names something else than a branch or a tag of the source, or a
// patch was made where none can land.
const CodeBadRef = "bad_ref"

// RefError says why a text is not taken as the name of a branch or a tag.
type RefError struct {
	Ref     string
	Message string
}

func (e *RefError) Error() string { return e.Message }

// idLike is what git would take for an object before it looks for a name. A branch may
// be called so; it is refused all the same, for nobody could tell which one is meant.
var idLike = regexp.MustCompile(`^[0-9a-fA-F]*$`)

// shortID is the beginning of an id as people copy it.
var shortID = regexp.MustCompile(`^[0-9a-f]*$`)

// CheckRef refuses a text that cannot be the short name of a branch or a tag of the
// source: ids, HEAD, ways to reach a commit from another, full names, and the branches
// of agents. It asks nobody; the error is a *RefError. "" is the configured branch.
func CheckRef(ref string) error {
	bad := func(format string, args ...any) error {
		return &RefError{Ref: ref, Message: fmt.Sprintf(format, args...)}
	}
	lower := strings.ToLower(ref)
	full, _ := strings.CutPrefix(ref, "refs/")
	_, short, _ := strings.Cut(full, "/")
	switch {
	case ref == "":
		return nil
	case (len(ref) == 40 || len(ref) == 64) && idLike.MatchString(ref):
		return bad("%.12s… is the id of a commit. A task works on a branch, or reads a tag: give its name.", ref)
	case lower == "head" || ref == "@":
		return bad("%s is whatever is checked out there. Give the name of the branch.", ref)
	case lower == "gatehouse" || strings.HasPrefix(lower, branchPrefix):
		return bad("%s is a branch of an agent: what stands there had no yes for a task to build on. Give the branch that the change should land on.", Shown(ref))
	case (strings.HasPrefix(ref, "refs/heads/") || strings.HasPrefix(ref, "refs/tags/")) && nameOfRef(short):
		return bad("%s is a full name. Give the short one: %s.", Shown(ref), Shown(short))
	case strings.HasPrefix(lower, "refs/"):
		return bad("%s is no branch or tag of the repository. Give the short name of one, such as main.", Shown(ref))
	case !nameOfRef(ref):
		return bad("%s is no name of a branch or a tag. Give one, such as main or v1.2; ways to get from one commit to another are not taken.", Shown(textcut.Brief(ref, 80)))
	}
	return nil
}

// nameOfRef is git's rule for names (git-check-ref-format), for the part behind
// refs/heads/. None that it takes is an expression of git's.
func nameOfRef(name string) bool {
	if name == "" || len(name) > 250 || !utf8.ValidString(name) || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") ||
		strings.ContainsAny(name, " ~^:?*[\\") || strings.Contains(name, "..") || strings.Contains(name, "@{") ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// Start is what a task works on: a branch, or a tag, on which nothing can land.
type Start struct {
	Base        // Branch is "" for a tag
	Tag  string // short name, "" for a branch
}

// Start finds a task's ref in the mirror: the branch of that name, else the tag; "" is
// the configured branch. What is no name is a *RefError, a name that the source does not
// have a *SourceError. It fetches only where there is no mirror yet.
func (r *Mirror) Start(ctx context.Context, ref string) (Start, error) {
	b, err := r.Branch(ctx, ref)
	var none *SourceError
	if ref == "" || !errors.As(err, &none) || none.Code != SourceNoBranch {
		return Start{Base: b}, err
	}
	b, found, err := r.tag(ctx, ref)
	switch {
	case err != nil:
		return Start{}, err
	case !found:
		return Start{}, r.source(SourceNoBranch, nil, "%s has no branch and no tag %s. Give one that it has, or make it there.", r.repo.Name, Shown(ref))
	}
	return Start{Base: b, Tag: ref}, nil
}

// Branch returns where a branch of the source is in the mirror; "" is the configured
// one, or what the source's HEAD names. Names alone are taken, never ids, and no agent's
// branch (*RefError). Branch does not fetch, unless there is no mirror yet.
func (r *Mirror) Branch(ctx context.Context, name string) (Base, error) {
	if err := r.ensure(ctx); err != nil {
		return Base{}, err
	}
	if name != "" {
		if err := CheckRef(name); err != nil {
			return Base{}, err
		}
		return r.head(ctx, name)
	}
	if name = r.target(); name == "" { // only the source knows its main branch
		if err := r.Fetch(ctx); err != nil {
			return Base{}, err
		}
		name = r.target()
	}
	if err := CheckRef(name); err != nil {
		return Base{}, r.source(SourceNoBranch, err, "%s has no branch that changes can land on: %s Set `branch`.", r.repo.Name, err.Error())
	}
	return r.head(ctx, name)
}

// head is where a branch is, also an agent's own.
func (r *Mirror) head(ctx context.Context, name string) (Base, error) {
	if !nameOfRef(name) {
		return Base{}, r.noBranch(name)
	}
	full := "refs/remotes/origin/" + name
	out, err := r.text(ctx, "for-each-ref", "--format=%(objectname) %(tree) %(committerdate:unix) %(refname)", full)
	if err != nil {
		return Base{}, err
	}
	for line := range strings.Lines(out) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 4); len(f) == 4 && f[3] == full {
			return Base{Branch: name, Commit: f[0], Tree: f[1], At: unixTime(f[2])}, nil
		}
	}
	return Base{}, r.noBranch(name)
}

// tag finds a tag's commit. Tags stand apart from branches in the mirror, and no
// checkout has them.
func (r *Mirror) tag(ctx context.Context, name string) (b Base, found bool, err error) {
	full := tagPrefix + name
	out, err := r.text(ctx, "for-each-ref", "--format=%(objectname) %(refname)", full)
	if err != nil {
		return Base{}, false, err
	}
	for line := range strings.Lines(out) {
		id, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if ref != full || !isID(id) {
			continue
		}
		b, err := r.point(ctx, id)
		if errors.Is(err, ErrMissing) {
			return Base{}, false, r.source(SourceNoBranch, err, "The tag %s of %s marks no commit, so there is nothing to work on.", Shown(name), r.repo.Name)
		}
		return b, err == nil, err
	}
	return Base{}, false, nil
}

// point is the commit that an id names, by itself or through a tag. It has no Branch.
func (r *Mirror) point(ctx context.Context, id string) (Base, error) {
	if err := checkIDs(id); err != nil {
		return Base{}, err
	}
	out, err := r.text(ctx, "rev-list", "--no-walk", "--format=%T %ct", "--end-of-options", id+"^{commit}")
	if err != nil {
		return Base{}, fmt.Errorf("the commit %s: %w: %w", id, ErrMissing, err)
	}
	f := strings.Fields(out) // "commit ID TREE TIME"
	if len(f) != 4 || !isID(f[1]) || !isID(f[2]) {
		return Base{}, fmt.Errorf("git rev-list printed %q", textcut.Brief(out, 80))
	}
	return Base{Commit: f[1], Tree: f[2], At: unixTime(f[3])}, nil
}

// MadeAt is when a commit was made, as it says itself.
func (r *Mirror) MadeAt(ctx context.Context, commit string) (time.Time, error) {
	b, err := r.point(ctx, commit)
	return b.At, err
}

func unixTime(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// Knows reports whether the source has a branch or a tag of that name. What the mirror
// has is not asked for; else the source is looked at once, without fetching, and near
// are the names there that are most like it. The error says that the source did not tell.
func (r *Mirror) Knows(ctx context.Context, ref string) (found bool, near []string, err error) {
	if r.onDisk() {
		if _, err := r.Start(ctx, ref); err == nil {
			return true, nil, nil
		}
	}
	if err := r.home.furnish(); err != nil {
		return false, nil, err
	}
	if err := r.writeConfig(); err != nil {
		return false, nil, err
	}
	listing, err := r.look(ctx)
	if err != nil {
		return false, nil, err
	}
	branches, _ := parseListing(listing)
	names := slices.Collect(maps.Keys(branches))
	for line := range strings.Lines(listing) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok && !strings.HasSuffix(tag, "^{}") {
			names = append(names, tag)
		}
	}
	if slices.Contains(names, ref) {
		return true, nil, nil
	}
	names = slices.DeleteFunc(names, func(n string) bool { return CheckRef(n) != nil })
	return false, likest(ref, names, 3), nil
}

// likest are the names with the fewest letters changed, at most that many.
func likest(word string, names []string, most int) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	far := make(map[string]int, len(names))
	for _, n := range names {
		far[n] = nearest.Distance(strings.ToLower(word), strings.ToLower(n))
	}
	slices.SortStableFunc(names, func(a, b string) int { return far[a] - far[b] })
	return names[:min(most, len(names))]
}

// UnknownRef says that the source has nothing of that name.
func (r *Mirror) UnknownRef(ref string, near []string) *RefError {
	m := fmt.Sprintf("%s has no branch and no tag %s.", r.repo.Name, Shown(ref))
	if len(ref) >= 7 && len(ref) < 64 && shortID.MatchString(ref) {
		m += " It looks like the beginning of a commit's id, which is not taken."
	}
	if len(near) == 0 {
		return &RefError{Ref: ref, Message: m + " Make it there first, or leave it out."}
	}
	shown := make([]string, len(near))
	for i, n := range near {
		shown[i] = Shown(n)
	}
	return &RefError{Ref: ref, Message: m + " There is " + strings.Join(shown, ", ") + "."}
}
