package patch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// keyShape is what a revision may be called, up to maxKey bytes; it becomes the last part of a
// ref. A length in an expression would be compiled into as many steps.
var keyShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

const maxKey = 121

// branchPrefix is the namespace of agents' branches, in the mirror and, for
// DeliverBranch, at the source.
const branchPrefix = "gatehouse/"

// Record commits a tree as a revision: on the agent's branch, which is made or
// moved, and on refs/gatehouse/rev/<key>, which stays. The same spec gives the
// same commit, so recording twice is recording once. The bundle carries the
// revision to other nodes.
func (r *Mirror) Record(ctx context.Context, spec RecordSpec) (Revision, error) {
	if spec.Branch == "" {
		spec.Branch = BranchName(spec.Agent, spec.Title, spec.Delegation)
	}
	if err := checkBranch(spec.Branch); err != nil {
		return Revision{}, err
	}
	message := subject(spec.Title) + "\n"
	if body := strings.TrimSpace(spec.Body); body != "" {
		message += "\n" + plainText(body) + "\n"
	}
	message += "\n" + trailers(spec.Task, spec.Delegation, spec.Agent, spec.Digest, "", spec.Editors, nil)
	ref := "refs/gatehouse/rev/" + spec.Key
	commit, bundle, err := r.keep(ctx, spec.Key, ref, "refs/heads/"+spec.Branch, commitSpec{
		tree: spec.Tree, parents: []string{spec.Base}, message: message, at: spec.At})
	if err != nil {
		return Revision{}, fmt.Errorf("record the revision: %w", err)
	}
	return Revision{Branch: spec.Branch, Commit: commit, Bundle: bundle}, nil
}

// SaveTree keeps a tree that has no request of its own (what a caller's folder
// held at a hop, what a child made of it) on refs/gatehouse/tree/<key>. Commits that
// were saved earlier come with it: its bundle has them, too.
func (r *Mirror) SaveTree(ctx context.Context, key, baseCommit, tree string, at time.Time, earlier ...string) (commit string, bundle []byte, err error) {
	commit, bundle, err = r.keep(ctx, key, "refs/gatehouse/tree/"+key, "", commitSpec{
		tree: tree, parents: append([]string{baseCommit}, earlier...), message: "Snapshot " + key + "\n", at: at})
	if err != nil {
		return "", nil, fmt.Errorf("save the tree: %w", err)
	}
	return commit, bundle, nil
}

// TreeOf returns the tree of a commit.
func (r *Mirror) TreeOf(ctx context.Context, commit string) (string, error) {
	if err := checkIDs(commit); err != nil {
		return "", err
	}
	tree, err := r.text(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
	if err != nil {
		return "", fmt.Errorf("the tree of %s: %w: %w", commit, ErrMissing, err)
	}
	return tree, nil
}

// keep commits, sets the refs and bundles what is new.
func (r *Mirror) keep(ctx context.Context, key, ref, branch string, spec commitSpec) (string, []byte, error) {
	if len(key) > maxKey || !keyShape.MatchString(key) || strings.Contains(key, "..") || strings.HasSuffix(key, ".lock") || strings.HasSuffix(key, ".") {
		return "", nil, fmt.Errorf("%q cannot name a revision", key)
	}
	if err := r.ensure(ctx); err != nil {
		return "", nil, err
	}
	commit, err := r.commit(ctx, spec)
	if err != nil {
		return "", nil, err
	}
	var in bytes.Buffer
	fmt.Fprintf(&in, "update %s %s\n", ref, commit)
	if branch != "" {
		fmt.Fprintf(&in, "update %s %s\n", branch, commit)
	}
	if _, err = r.git(ctx, command{args: []string{"update-ref", "--stdin"}, stdin: &in}); err != nil {
		return "", nil, err
	}
	bundle, err := r.git(ctx, command{args: []string{"bundle", "create", "--quiet", "-", ref, "^" + spec.parents[0]},
		max: r.home.opts.Limits.BundleBytes})
	if err != nil {
		return "", nil, err
	}
	return commit, bundle, nil
}

// commitSpec is all that decides a commit's id.
type commitSpec struct {
	tree    string
	parents []string
	message string
	name    string // "": the mirrors' identity
	email   string
	at      time.Time
}

func (r *Mirror) commit(ctx context.Context, c commitSpec) (string, error) {
	if err := checkIDs(append([]string{c.tree}, c.parents...)...); err != nil {
		return "", err
	}
	if c.name == "" {
		c.name, c.email = r.home.opts.Name, r.home.opts.Email
	}
	date := fmt.Sprintf("@%d +0000", c.at.Unix())
	args := []string{"-c", "i18n.commitEncoding=UTF-8", "commit-tree", c.tree}
	for _, p := range c.parents {
		args = append(args, "-p", p)
	}
	out, err := r.git(ctx, command{args: args, stdin: strings.NewReader(c.message), env: []string{
		"GIT_AUTHOR_NAME=" + c.name, "GIT_AUTHOR_EMAIL=" + c.email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + c.name, "GIT_COMMITTER_EMAIL=" + c.email, "GIT_COMMITTER_DATE=" + date}})
	return strings.TrimSpace(string(out)), r.missing(err)
}

// BranchName is gatehouse/<agent>-<slug>-<6 hex>; the digits come from the
// delegation, so one delegation always gets the same branch.
func BranchName(agent, title, delegation string) string {
	sum := sha256.Sum256([]byte(delegation))
	return branchPrefix + slug(agent, 30) + "-" + slug(title, 30) + "-" + hex.EncodeToString(sum[:3])
}

var branchShape = regexp.MustCompile(`^gatehouse/[a-z0-9][a-z0-9-]*$`)

const maxBranch = len("gatehouse/") + 101

func checkBranch(name string) error {
	if len(name) > maxBranch || !branchShape.MatchString(name) {
		return fmt.Errorf("%q is not a branch of an agent", name)
	}
	return nil
}

// DeleteBranch removes an agent's branch from the mirror. Its revisions stay.
// A branch that is not there is no error.
func (r *Mirror) DeleteBranch(ctx context.Context, branch string) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	if err := r.ensure(ctx); err != nil {
		return err
	}
	_, err := r.git(ctx, command{args: []string{"update-ref", "-d", "refs/heads/" + branch}})
	return err
}

// subject makes one line of a text.
func subject(s string) string {
	s = strings.Join(strings.Fields(plainText(s)), " ")
	if runes := []rune(s); len(runes) > 100 {
		s = string(runes[:99]) + "…"
	}
	return cmp.Or(s, "Change by an agent")
}

// plainText drops what a terminal or a mail program would act on.
func plainText(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return c
		}
		if unicode.IsControl(c) || riskOf(c, 0x2190, 0x2190) == RiskBidi || riskOf(c, 0x2190, 0x2190) == RiskInvisible {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
}

// trailers says where a commit comes from. Values are one line each: whoever
// names an agent or a person cannot add a trailer of their own.
func trailers(task, delegation, agent, digest, requester string, editors, approvers []string) string {
	var b strings.Builder
	add := func(key, value string) {
		if value = strings.Join(strings.Fields(plainText(value)), " "); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, value)
		}
	}
	add("Gatehouse-Task", task)
	add("Gatehouse-Delegation", delegation)
	add("Gatehouse-Agent", agent)
	add("Gatehouse-Digest", digest)
	add("Requested-by", requester)
	for _, e := range editors {
		add("Edited-by", e)
	}
	for _, a := range approvers {
		add("Approved-by", a)
	}
	return b.String()
}

// Import puts a bundle's objects into the mirror and checks that commit is
// complete afterwards. Importing twice is importing once. Where the commit that
// the bundle builds on is missing, the source is fetched once.
//
// git's own `bundle unbundle` is not used: it also wants the base to be
// reachable from a ref, which no longer holds once somebody rewrote the branch.
func (r *Mirror) Import(ctx context.Context, bundle []byte, commit string) error {
	if err := checkIDs(commit); err != nil {
		return err
	}
	if err := r.ensure(ctx); err != nil {
		return err
	}
	if r.Has(ctx, commit) && r.complete(ctx, commit) == nil {
		return nil
	}
	needs, pack, err := splitBundle(bundle)
	if err != nil {
		return fmt.Errorf("import %s: %w", commit, err)
	}
	if !r.hasAll(ctx, needs) {
		if err := r.Fetch(ctx); err != nil {
			return fmt.Errorf("import %s: %w", commit, err)
		}
		if !r.hasAll(ctx, needs) {
			return fmt.Errorf("import %s: %w: the commit that it builds on is no longer in %s", commit, ErrMissing, r.repo.Redacted())
		}
	}
	if _, err := r.git(ctx, command{args: []string{"index-pack", "--stdin", "--fix-thin"}, stdin: bytes.NewReader(pack)}); err != nil {
		return fmt.Errorf("import %s: %w", commit, err)
	}
	if err := r.complete(ctx, commit); err != nil {
		return fmt.Errorf("import %s: %w: %w", commit, ErrMissing, err)
	}
	return nil
}

// complete checks that a commit's whole tree is there.
func (r *Mirror) complete(ctx context.Context, commit string) error {
	_, err := r.git(ctx, command{args: []string{"rev-list", "--objects", "--no-walk", "--quiet", "--end-of-options", commit}})
	return err
}

func (r *Mirror) hasAll(ctx context.Context, ids []string) bool {
	found, err := r.sizes(ctx, ids)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(ids, func(id string) bool {
		n, ok := found[id]
		return !ok || n < 0
	})
}

// splitBundle reads a bundle's header (gitformat-bundle, versions 2 and 3):
// what it needs, and the pack behind it.
func splitBundle(bundle []byte) (needs []string, pack []byte, err error) {
	rest := bundle
	first := true
	for {
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			return nil, nil, fmt.Errorf("the bundle has no end of its header")
		}
		line := string(rest[:n])
		rest = rest[n+1:]
		switch {
		case first && line != "# v2 git bundle" && line != "# v3 git bundle":
			return nil, nil, fmt.Errorf("this is no git bundle")
		case first:
			first = false
		case line == "":
			return needs, rest, nil
		case strings.HasPrefix(line, "-"):
			id, _, _ := strings.Cut(line[1:], " ")
			if err := checkIDs(id); err != nil {
				return nil, nil, err
			}
			needs = append(needs, id)
		}
	}
}
