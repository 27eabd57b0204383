package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
)

// Handed is a hand-over as the gate is shown it: what is asked, and the files that travel.
type Handed struct {
	HandoverQuestion
	Base   patch.Base    // what the files are compared with: the branch as people approved it
	Review *patch.Review // of the files that travel against Base; nil where none do
	Commit string        // carries the tree in Bundle
	Bundle string        // blob
}

// base is what a child on the same repository starts from: the caller's snapshot at a hop,
// with what steers programs as the branch has it.
type base struct {
	commit string // the commit that the caller's checkout was made from
	branch string // where it would land
	tag    string // or what it reads
	own    string // tree of commit
	tree   string
	saved  string // commit that carries tree, "" while nothing does
	bundle []byte
	// lineage is who had worked on tree by then.
	lineage Lineage

	steering []string // paths that steer programs and that the caller changed
	trusted  bool     // they are the caller's nevertheless: the agent has trust_checkout
	missing  []string // programs of the agent that the branch does not have

	review *patch.Review // against own; nil where nobody asks for it
	files  string        // sha256 over the paths that differ from own
}

// maxSteering is how many of the paths that a caller changed are named in an event and on
// the child.
const maxSteering = 100

// hand decides which files the child of a plan is given, before the transaction that makes
// it. s is the caller's snapshot, nil where none travels; it is not changed. seen holds
// the reviews of the same moment, by tree.
func (r *run) hand(ctx context.Context, p *planned, s *base, seen map[string]*patch.Review) error {
	if s == nil || p.repo != r.d.Repository || !p.known {
		return r.elsewhere(ctx, p)
	}
	b := *s
	p.snapshot = &b
	if err := r.steer(ctx, &b, p.target); err != nil || len(b.missing) > 0 {
		return err
	}
	if b.saved == "" {
		// The key may be the agent's own words; a ref's name may not.
		name := sha256.Sum256([]byte(p.key))
		var err error
		b.saved, b.bundle, err = r.mirror.SaveTree(ctx, r.id+"-"+hex.EncodeToString(name[:12]), b.commit, b.tree, r.d.CreatedAt)
		if err != nil {
			return err
		}
	}
	if p.asks == nil || !p.asks.Reads(p.target.AskFirst) {
		return nil
	}
	return r.reviewed(ctx, &b, seen)
}

// elsewhere looks up what a child that shares no files would start from, where people may be
// asked about it.
func (r *run) elsewhere(ctx context.Context, p *planned) error {
	if !p.known || p.repo == "" || p.asks == nil || !p.asks.Reads(p.target.AskFirst) || !r.e.traits(p.target).Files {
		return nil
	}
	m, _, err := r.e.mirror(p.repo)
	if err == nil {
		name := sha256.Sum256([]byte(p.key))
		p.stands, err = standing(ctx, m, r.task.Ref, r.id+"-"+hex.EncodeToString(name[:12]), r.d.CreatedAt)
	}
	return r.fetched(err)
}

// standing is where the branch or tag of a task's root is now: a yes to the root is to that
// commit, wherever the branch goes before it. Nil for an agent that works on no files.
func (e *Engine) standing(ctx context.Context, t *Task, root *Delegation, spec agent.Spec) (*base, error) {
	if root.Repository == "" || !e.traits(spec).Files {
		return nil, nil
	}
	m, _, err := e.mirror(root.Repository)
	if err != nil {
		return nil, err
	}
	b, err := standing(ctx, m, t.Ref, root.ID+"-asked", t.CreatedAt)
	if source, ok := errors.AsType[*patch.SourceError](err); ok {
		return nil, &Error{Code: CodeUnavailable, Message: "What " + root.To + " would start from could not be looked up, so nobody is asked about it yet. " + source.Message, Err: err}
	}
	if err != nil {
		return nil, refFailure(err)
	}
	b.stand(root)
	return b, nil
}

// standing keeps where a ref is now under key.
func standing(ctx context.Context, m *patch.Mirror, ref, key string, at time.Time) (*base, error) {
	if err := m.Fetch(ctx); err != nil {
		return nil, err
	}
	s, err := m.Start(ctx, ref)
	if err != nil {
		return nil, err
	}
	none := sha256.Sum256(nil) // of the paths that differ
	b := &base{commit: s.Commit, branch: s.Branch, tag: s.Tag, own: s.Tree, tree: s.Tree, files: hex.EncodeToString(none[:])}
	b.saved, b.bundle, err = m.SaveTree(ctx, key+"-"+b.commit[:12], b.commit, b.tree, at)
	return b, err
}

// stand makes d start from b, which is no snapshot of its caller's.
func (b *base) stand(d *Delegation) {
	d.Work.Base = Base{Stand: Stand{b.branch, b.tag, b.commit, b.tree}, BaseSaved: b.saved, BaseBundle: bundleID("base", d.ID, "-", b.saved)}
}

// on tells the gate what d starts from.
func (h *Handed) on(d *Delegation, s *base) {
	h.Repository, h.Branch, h.Tag, h.BaseCommit, h.BaseTree, h.Tree = d.Repository, s.branch, s.tag, s.commit, s.own, s.tree
	h.FilesHash, h.Trusted, h.Steering = s.files, s.trusted, s.steering
	h.Base = patch.Base{Branch: s.branch, Commit: s.commit, Tree: s.own}
	h.Review, h.Commit, h.Bundle = s.review, s.saved, d.Work.BaseBundle
}

// steer takes from the branch what steers programs, the target's own program with it.
func (r *run) steer(ctx context.Context, b *base, target agent.Spec) error {
	b.own = r.d.Work.BaseTree
	if r.d.Work.Shares {
		var err error
		if b.own, err = r.mirror.TreeOf(ctx, b.commit); err != nil {
			return err
		}
	}
	if b.tree == b.own {
		return nil
	}
	s, err := r.mirror.Steer(ctx, b.own, b.tree, programs(target))
	if err != nil {
		return err
	}
	b.steering = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Changed, s.Missing))))
	switch {
	case target.TrustCheckout:
		b.trusted = true
	case s.Tree != b.tree:
		b.tree, b.saved, b.bundle = s.Tree, "", nil
		b.missing = s.Missing
	default:
		b.missing = s.Missing
	}
	return nil
}

// programs are those that an agent is started with.
func programs(spec agent.Spec) []patch.Program {
	var all []patch.Program
	for _, p := range spec.Programs() {
		need := patch.WhereFile
		switch {
		case p.Sure:
			need = patch.Always
		case p.Started:
			need = patch.WhereStarted
		}
		all = append(all, patch.Program{Path: p.Path, Need: need})
	}
	return all
}

// steered names the programs that an agent's files were made fit for, and whether they had
// to be.
func steered(spec agent.Spec) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%t %q", spec.TrustCheckout, programs(spec)))
	return hex.EncodeToString(sum[:8])
}

// steady refuses to run an agent in files of its caller that were not made fit for it as
// it is configured now: its program changed since the hop, or an older server made it. The
// tree that was asked about is never replaced by another.
func (r *run) steady(spec agent.Spec) error {
	w := &r.d.Work
	if !w.Shares || spec.TrustCheckout || w.Steered == steered(spec) {
		return nil
	}
	own, err := r.mirror.TreeOf(r.ctx, w.BaseCommit)
	if err != nil {
		return err
	}
	s, err := r.mirror.Steer(r.ctx, own, w.BaseTree, programs(spec))
	if err != nil || len(s.Changed)+len(s.Missing) == 0 {
		return err
	}
	return agent.Fail(agent.CodeStart, "%s would run or read %s as %s left it, which nobody has approved: its settings changed since the work was handed on, or the server did. Hand it on again.",
		spec.Name, patch.Shown(slices.Concat(s.Changed, s.Missing)[0]), r.d.From)
}

// reviewed compares the files that travel with the branch, for people and rules.
func (r *run) reviewed(ctx context.Context, b *base, seen map[string]*patch.Review) error {
	changes, err := r.mirror.Changes(ctx, b.own, b.tree)
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, c := range changes {
		fmt.Fprintf(h, "%s %s %s %s %s\x00", c.OldMode, c.OldID, c.NewMode, c.NewID, c.Path)
	}
	b.files = hex.EncodeToString(h.Sum(nil))
	if b.review = seen[b.tree]; b.review != nil {
		return nil
	}
	if b.review, err = r.mirror.Review(ctx, b.own, b.tree); err == nil && seen != nil {
		seen[b.tree] = b.review
	}
	return err
}

// unapproved refuses a hop to an agent whose program nobody has approved; nil lets it pass.
func (p planned) unapproved() *guard.Verdict {
	if p.snapshot == nil || len(p.snapshot.missing) == 0 {
		return nil
	}
	s := p.snapshot
	return &guard.Verdict{Guard: "program", Code: agent.CodeStart, Message: fmt.Sprintf(
		"%s, which %s is started with, is not on %s: nobody has approved it, so it was not started. Land it first, or set trust_checkout: true for %s in gatehouse.yaml.",
		patch.Shown(strings.Join(s.missing, ", ")), p.target.Name, placeName(s.branch, s.tag), p.target.Name)}
}

// handed is a planned hop as the gate is shown it.
func (p planned) handed(child *Delegation) Handed {
	h := Handed{HandoverQuestion: HandoverQuestion{From: child.From, To: child.To, Text: p.Text, Context: p.Context, Handover: p.Handover}}
	s := p.snapshot
	if s == nil || !child.Work.Shares {
		return h
	}
	h.on(child, s)
	return h
}

func placeName(branch, tag string) string {
	if tag != "" {
		return "the tag " + tag
	}
	return branch
}

// Artifacts names what the command object of a hand-over carries.
func (q HandoverQuestion) Artifacts() []string { return q.Handover.ArtifactNames() }

func writeNamed(w io.Writer, head string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(w, "\n%s\n", head)
	}
	for _, n := range names {
		fmt.Fprintf(w, "- %s\n", patch.Shown(n))
	}
}

// How much of a hand-over's context its command object repeats. The shared context has the
// whole, in the namespace of the task's hand-overs.
const (
	maxCarriedValue = 2000     // characters of one value
	maxCarried      = 16 << 10 // bytes of all
)

// carried is the command object of a hop as the child has it: with the context that came
// beside it, and without what looks like a secret. Nil where none was handed over. The
// question to people has it as it was sent, so that a secret in it is seen.
func carried(h *agent.Handover, context map[string]string) *agent.Handover {
	if h == nil {
		return nil
	}
	c := *h
	c.Update.Context.More = nil
	size := 0
	for _, name := range slices.Sorted(maps.Keys(context)) {
		value := []rune(context[name])
		if len(value) > maxCarriedValue {
			value = append(value[:maxCarriedValue:maxCarriedValue], '…')
		}
		if size += len(name) + len(string(value)); size > maxCarried {
			break
		}
		if c.Update.Context.More == nil {
			c.Update.Context.More = map[string]string{}
		}
		c.Update.Context.More[name] = string(value)
	}
	return maskedHandover(&c)
}

// maskedHandover is h without its secrets.
func maskedHandover(h *agent.Handover) *agent.Handover {
	raw, err := json.Marshal(h)
	if err != nil {
		return h // texts and numbers always marshal
	}
	var masked agent.Handover
	if err := json.Unmarshal(mask.JSON(raw), &masked); err != nil {
		return h
	}
	return &masked
}
