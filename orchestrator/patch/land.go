package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// PlanLanding fetches, and decides the one push that carries out a yes. Nothing
// is pushed yet: the caller stores the Intent first. Where the base moved and
// the approval does not carry over, the error is *Moved; where it does, the
// intent says Carried and its Tree must pass the checks before Land. An
// approval whose base is no part of the branch any more never carries over.
func (r *Mirror) PlanLanding(ctx context.Context, spec LandSpec) (Intent, error) {
	if err := checkIDs(spec.Commit, spec.Tree, spec.Base.Commit, spec.Base.Tree); err != nil {
		return Intent{}, err
	}
	if err := r.Fetch(ctx); err != nil {
		return Intent{}, err
	}
	in := Intent{Commit: spec.Commit, Base: spec.Base.Commit, Patched: spec.Tree, Tree: spec.Tree,
		At: spec.At.UTC().Truncate(time.Second), Deliver: r.repo.Deliver,
		Name: cmp.Or(r.repo.Committer.Name, r.home.opts.Name), Email: cmp.Or(r.repo.Committer.Email, r.home.opts.Email)}
	head, err := r.aim(ctx, spec)
	if err != nil {
		return Intent{}, err
	}
	branch := head.Branch
	in.Target = branch
	if r.repo.Deliver == DeliverBranch {
		return r.planBranch(ctx, spec, in)
	}
	if head.Commit != spec.Base.Commit {
		carried, err := r.CarryOver(ctx, spec.Base.Tree, spec.Tree, head.Tree)
		if err != nil {
			return Intent{}, err
		}
		if !carried.OK {
			return Intent{}, r.movedTo(ctx, branch, spec.Base.Commit, head.Commit, carried.Moved)
		}
		in.Carried, in.Tree = true, carried.Tree
	}
	in.Ref, in.Old, in.Onto = "refs/heads/"+branch, head.Commit, head
	in.Message = fmt.Sprintf("Merge %s\n\n%s", mergeTitle(spec),
		spec.trailers())
	in.Merge, err = r.commit(ctx, in.spec())
	in.New = in.Merge
	return in, err
}

func mergeTitle(spec LandSpec) string {
	if spec.Branch == "" {
		return subject(spec.Title)
	}
	return subject(spec.Title) + " (" + subject(spec.Branch) + ")"
}

func (s LandSpec) trailers() string {
	return trailers(s.Task, s.Delegation, s.Agent, s.Digest, s.Requester, s.Editors, s.Approvers)
}

// spec is the commit that is pushed; it can be made again anywhere, with the same id.
func (in Intent) spec() commitSpec {
	parents := []string{in.Old, in.Commit}
	if in.Deliver == DeliverBranch {
		parents = []string{in.Base}
	}
	return commitSpec{tree: in.Tree, parents: parents, message: in.Message, name: in.Name, email: in.Email, at: in.At}
}

// planBranch delivers the agent's branch, for people who merge by hand: the approved tree
// on its base, in a commit that says who approved it.
func (r *Mirror) planBranch(ctx context.Context, spec LandSpec, in Intent) (Intent, error) {
	if err := checkBranch(spec.Branch); err != nil {
		return Intent{}, err
	}
	in.Ref, in.Onto = "refs/heads/"+spec.Branch, spec.Base
	in.Message = subject(spec.Title) + "\n\n" + spec.trailers()
	made, err := r.commit(ctx, in.spec())
	if err != nil {
		return Intent{}, err
	}
	in.Merge, in.New = made, made
	head, err := r.head(ctx, spec.Branch)
	var none *SourceError
	switch {
	case err == nil:
		in.Old, in.Onto = head.Commit, head
	case !errors.As(err, &none) || none.Code != SourceNoBranch:
		return Intent{}, err
	}
	return in, nil
}

// aim finds where a yes lands, and refuses with *Moved what must not land there.
func (r *Mirror) aim(ctx context.Context, spec LandSpec) (Base, error) {
	head, err := r.Branch(ctx, spec.Base.Target())
	if err != nil {
		return Base{}, err
	}
	why := MovedUnnamed
	if spec.Base.Target() != "" {
		if why, err = r.brings(ctx, spec.Commit, spec.Base.Commit, head.Commit); err != nil {
			return Base{}, err
		}
	}
	if why != "" {
		return Base{}, &Moved{Branch: head.Branch, From: spec.Base.Commit, To: head.Commit, Why: why}
	}
	return head, nil
}

// brings says what an approved commit would bring into the history of onto beside
// itself; "" is nothing. Its only parent must be the base that it was approved on, and
// that must be in onto's history already. Then everything that the commit reaches and
// onto does not is the commit alone.
func (r *Mirror) brings(ctx context.Context, commit, base, onto string) (MovedWhy, error) {
	if err := checkIDs(commit, base, onto); err != nil {
		return "", err
	}
	out, err := r.text(ctx, "rev-list", "--no-walk", "--parents", "--end-of-options", commit)
	if err != nil {
		return "", fmt.Errorf("the parents of %s: %w: %w", commit, ErrMissing, err)
	}
	if f := strings.Fields(out); len(f) != 2 || f[1] != base {
		return MovedForeign, nil
	}
	if base == onto {
		return "", nil
	}
	_, err = r.git(ctx, command{args: []string{"merge-base", "--is-ancestor", base, onto}})
	if exitCode(err) == 1 || err != nil && r.Has(ctx, onto) && !r.Has(ctx, base) {
		return MovedRewound, nil
	}
	return "", r.missing(err)
}

func (r *Mirror) movedTo(ctx context.Context, branch, from, to string, files []string) *Moved {
	m := &Moved{Branch: branch, From: from, To: to, Files: files}
	if to == "" {
		return m
	}
	if out, err := r.text(ctx, "rev-list", "--count", "--end-of-options", to, "^"+from); err == nil {
		_, _ = fmt.Sscan(out, &m.Commits)
	}
	return m
}

// Land makes the push of an intent. The branch moves only from exactly Old to
// exactly New. Where the branch is checked out in a local folder, the folder
// moves with it; one with work in the way is a *DirtyFolder and nothing
// happens. A lost lease is *Moved, a refusal by the other side *Rejected, and
// what may pass by itself a *SourceError that is Temporary. Landing what has
// landed is no error.
//
// All of this may take its time, and a process may sleep in the middle of it. So
// still is asked right before the push, and its error keeps everything as it is;
// nil asks nobody.
func (r *Mirror) Land(ctx context.Context, in Intent, still func(context.Context) error) error {
	if err := in.check(); err != nil {
		return err
	}
	if err := r.ensure(ctx); err != nil {
		return err
	}
	if err := r.rebuild(ctx, in); err != nil {
		return err
	}
	if err := r.stillFits(ctx, in); err != nil {
		return err
	}
	held, release, err := r.alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	if held != nil {
		// Whoever had it before may have made this very push: a server that was killed, or
		// one that lost the delegation.
		if outcome, now, err := r.where(ctx, in); err != nil || outcome == Landed {
			return err
		} else if outcome == BaseMoved {
			return r.movedTo(ctx, in.Branch(), in.Old, now, nil)
		}
	}
	folder, err := r.prepareFolder(ctx, in)
	if err != nil {
		return err
	}
	args := []string{"push", "--porcelain", "--no-verify", "--no-follow-tags", "--force-with-lease=" + in.Ref + ":" + in.Old}
	if r.repo.Local() {
		args = append(args, "--receive-pack="+folder.receivePack())
	}
	args = append(args, "--", r.repo.Source, in.New+":"+in.Ref)
	pushing, cancel := folder.pushTime(ctx)
	defer cancel()
	if still != nil {
		if err := still(ctx); err != nil {
			return err
		}
	}
	out, err := r.git(pushing, command{remote: true, args: args, held: held})
	if err == nil {
		return nil
	}
	return r.pushFailure(ctx, in, string(out), err)
}

func (in Intent) check() error {
	if err := checkIDs(in.New, in.Commit); err != nil {
		return fmt.Errorf("landing intent: %w", err)
	}
	if in.Old != "" && !isID(in.Old) || !strings.HasPrefix(in.Ref, "refs/heads/") || strings.ContainsAny(in.Ref, " :~^?*[\\\n") {
		return fmt.Errorf("landing intent: %q at %q is no branch", in.Ref, in.Old)
	}
	return nil
}

// stillFits asks right before the push what PlanLanding asked: an intent may be days old,
// planned by another node or by an older version. That the branch is at Old is the
// lease's part; what Old's history holds never changes.
func (r *Mirror) stillFits(ctx context.Context, in Intent) error {
	if in.Base == "" {
		return nil // of a version that pushed an agent's branch by itself
	}
	onto := in.Old
	if in.Deliver == DeliverBranch || in.New == in.Commit { // older intents pushed the agent's commit itself
		if in.Target == "" {
			return nil // the same: where it was to land was not written down
		}
		head, err := r.Branch(ctx, in.Target)
		if err != nil {
			return err
		}
		onto = head.Commit
	}
	why, err := r.brings(ctx, in.Commit, in.Base, onto)
	if err != nil || why == "" {
		return err
	}
	return &Moved{Branch: cmp.Or(in.Target, in.Branch()), From: in.Base, To: onto, Why: why}
}

// rebuild makes the merge commit again on a node that did not plan it. The
// agent's commit must have been imported.
func (r *Mirror) rebuild(ctx context.Context, in Intent) error {
	if r.Has(ctx, in.New) {
		return nil
	}
	if in.New != in.Merge || in.Message == "" {
		return fmt.Errorf("land %s: %w", in.New, ErrMissing)
	}
	if in.Old != "" && !r.Has(ctx, in.Old) {
		if err := r.Fetch(ctx); err != nil {
			return err
		}
	}
	if in.Carried && !r.Has(ctx, in.Tree) {
		base, err := r.TreeOf(ctx, in.Base)
		if err != nil {
			return err
		}
		carried, err := r.CarryOver(ctx, base, in.Patched, in.Onto.Tree)
		if err != nil {
			return err
		}
		if carried.Tree != in.Tree {
			return fmt.Errorf("land %s: the tree of the intent cannot be made again: %w", in.New, ErrMissing)
		}
	}
	made, err := r.commit(ctx, in.spec())
	if err != nil {
		return err
	}
	if made != in.New {
		return fmt.Errorf("land %s: making the commit again gave %s", in.New, made)
	}
	return nil
}

// pushFailure asks the source what is true before it says what went wrong: the
// answer of a push can be lost after the ref moved.
func (r *Mirror) pushFailure(ctx context.Context, in Intent, printed string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("land on %s: %w", in.Branch(), cause)
	}
	outcome, now, lerr := r.where(ctx, in)
	if lerr != nil {
		return lerr
	}
	switch outcome {
	case Landed:
		return nil
	case BaseMoved:
		return r.movedTo(ctx, in.Branch(), in.Old, now, nil)
	}
	reason := rejection(printed)
	said := stderrOf(err) + "\n" + reason
	for _, w := range []string{"Working directory has", "Working tree has", "branch is currently checked out", "Could not update working tree",
		"Up-to-date check failed", "refusing to update checked out branch", "untracked working tree", "not uptodate"} {
		if strings.Contains(said, w) {
			return &DirtyFolder{Repository: r.repo.Name, Folder: r.repo.Source, Reason: "uncommitted"}
		}
	}
	for _, w := range []string{"cannot lock ref", "failed to update ref", "failed to lock", "Unable to create", "unable to create", "stale info", "fetch first"} {
		if strings.Contains(said, w) {
			return r.source(SourceUnreachable, err, "%s is busy: %s. The approval stands.", r.repo.Name, r.redact(firstLine(reason+"\n"+stderrOf(err))))
		}
	}
	if reason != "" {
		return &Rejected{Repository: r.repo.Name, Ref: in.Ref, Reason: r.redact(reason), Said: r.redact(remoteWords(stderrOf(err)))}
	}
	return r.sourceFailure(err)
}

// Branch is the branch that is pushed.
func (in Intent) Branch() string { return strings.TrimPrefix(in.Ref, "refs/heads/") }

// rejection reads why a ref was refused from push --porcelain.
func rejection(printed string) string {
	for line := range strings.Lines(printed) {
		f := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(f) == 3 && f[0] == "!" {
			return f[2]
		}
	}
	return ""
}

// remoteWords are the lines that the other side's hooks printed, as one line.
func remoteWords(stderr string) string {
	var said []string
	for line := range strings.Lines(stderr) {
		if words, ok := strings.CutPrefix(strings.TrimSpace(line), "remote:"); ok && strings.TrimSpace(words) != "" {
			said = append(said, strings.TrimSpace(words))
		}
	}
	text := plainText(strings.Join(said, " "))
	if len(text) > 1000 {
		text = strings.ToValidUTF8(text[:1000], "") + " …"
	}
	return text
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// Landed asks the source what became of an intent, for recovery after a crash.
func (r *Mirror) Landed(ctx context.Context, in Intent) (Outcome, error) {
	if err := in.check(); err != nil {
		return "", err
	}
	outcome, _, err := r.where(ctx, in)
	return outcome, err
}

func (r *Mirror) where(ctx context.Context, in Intent) (Outcome, string, error) {
	if err := r.Fetch(ctx); err != nil {
		return "", "", err
	}
	head, err := r.head(ctx, in.Branch())
	if none, ok := errors.AsType[*SourceError](err); ok && none.Code == SourceNoBranch {
		if in.Old == "" {
			return PushAgain, "", nil
		}
		return BaseMoved, "", nil
	}
	if err != nil {
		return "", "", err
	}
	switch {
	case head.Commit == in.New:
		return Landed, head.Commit, nil
	case head.Commit == in.Old:
		return PushAgain, head.Commit, nil
	case !r.Has(ctx, in.New):
		return BaseMoved, head.Commit, nil
	}
	_, err = r.git(ctx, command{args: []string{"merge-base", "--is-ancestor", in.New, head.Commit}})
	switch exitCode(err) {
	case 1:
		return BaseMoved, head.Commit, nil
	case -1:
		return Landed, head.Commit, err
	}
	if err != nil {
		return "", "", err
	}
	return Landed, head.Commit, nil
}
