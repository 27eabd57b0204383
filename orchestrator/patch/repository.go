package patch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Repository is one entry of `repositories` in the configuration.
type Repository struct {
	Name       string
	Source     string // an absolute path or a URL
	Branch     string // where landings go; "" is what the source's HEAD names
	Deliver    string // DeliverMerge (also when empty) or DeliverBranch
	Checks     []string
	Protect    []string // globs that no agent may touch
	Credential string   // "token" or "user:token" for a URL; reaches git by askpass only
	Committer  Identity // of its landings; what is empty is the server's, see Options
}

// Identity is who commits.
type Identity struct{ Name, Email string }

// How a yes is delivered.
const (
	DeliverMerge  = "merge"
	DeliverBranch = "branch"
)

// Local reports whether the source is a folder of this machine.
func (r Repository) Local() bool { return filepath.IsAbs(r.Source) }

// Redacted is the source without a password that its URL may hold.
func (r Repository) Redacted() string { return redactURL(r.Source) }

var userinfo = regexp.MustCompile(`://[^/@\s]*@`)

func redactURL(s string) string { return userinfo.ReplaceAllString(s, "://") }

// Limits bound what one patch may be. Zero fields take the default.
type Limits struct {
	Files       int   // changed paths; default 5,000, which is far more than people read
	Lines       int   // added and removed lines together; default 500,000
	FileBytes   int64 // one new blob, inflated; default 16 MiB
	Bytes       int64 // all new blobs together, inflated; default 64 MiB
	TextBytes   int   // a patch that comes as text; default 32 MiB
	Entries     int   // files and folders that a snapshot walks over; default 2,000,000
	BundleBytes int64 // a bundle; default 256 MiB
}

func (l Limits) filled() Limits {
	return l.over(Limits{Files: 5000, Lines: 500_000, FileBytes: 16 << 20, Bytes: 64 << 20,
		TextBytes: 32 << 20, Entries: 2_000_000, BundleBytes: 256 << 20})
}

// over fills what l leaves open from wider limits.
func (l Limits) over(wider Limits) Limits {
	return Limits{
		Files: cmp.Or(max(l.Files, 0), wider.Files), Lines: cmp.Or(max(l.Lines, 0), wider.Lines),
		FileBytes: cmp.Or(max(l.FileBytes, 0), wider.FileBytes), Bytes: cmp.Or(max(l.Bytes, 0), wider.Bytes),
		TextBytes: cmp.Or(max(l.TextBytes, 0), wider.TextBytes), Entries: cmp.Or(max(l.Entries, 0), wider.Entries),
		BundleBytes: cmp.Or(max(l.BundleBytes, 0), wider.BundleBytes),
	}
}

// Options are what all mirrors of a server share. The zero value works.
type Options struct {
	Logger  *slog.Logger  // default: discards
	Name    string        // who commits; default "Gatehouse"
	Email   string        // default "gatehouse@localhost"
	Limits  Limits        // defaults of every field stand at Limits
	Timeout time.Duration // of one git command; default 10 minutes, for a first fetch over a slow line
}

// Mirrors is the folder with the bare mirrors of a server. It is safe for use
// by many goroutines.
type Mirrors struct {
	dir  string
	opts Options

	mu    sync.Mutex
	ready bool // the folder, askpass and template exist
	state map[string]*state
}

// state is what all handles of one mirror share.
type state struct {
	lock  sync.Mutex // one at a time looks whether a lock was left behind
	fetch sync.Mutex // one look at the source and fetch at a time; git locks refs by itself

	mu   sync.Mutex // guards seen
	seen seen
}

// seen is what the last fetch found.
type seen struct {
	exists bool
	refs   string // the source's refs, as listed
	head   string // the branch that the source's HEAD names
	format string // sha1 or sha256
}

func (s *state) get() seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *state) set(v seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = v
}

// Mirror is a handle on one repository's mirror; cheap to make and to drop.
type Mirror struct {
	repo Repository
	dir  string // the bare repository
	home *Mirrors
	st   *state
}

// NewMirrors returns the mirrors in dir (<data>/mirrors). Nothing is created
// before the first Fetch.
func NewMirrors(dir string, opts Options) *Mirrors {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Name = cmp.Or(opts.Name, "Gatehouse")
	opts.Email = cmp.Or(opts.Email, "gatehouse@localhost")
	opts.Timeout = cmp.Or(max(opts.Timeout, 0), 10*time.Minute)
	opts.Limits = opts.Limits.filled()
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &Mirrors{dir: dir, opts: opts, state: map[string]*state{}}
}

// Open returns the mirror of repo without touching the disk. The same name with
// another source is another mirror, so a changed configuration never mixes two
// histories.
func (m *Mirrors) Open(repo Repository) *Mirror {
	if repo.Local() {
		repo.Source = filepath.Clean(repo.Source)
	}
	repo.Branch = strings.TrimPrefix(repo.Branch, "refs/heads/")
	sum := sha256.Sum256([]byte(repo.Source))
	dir := filepath.Join(m.dir, fmt.Sprintf("%s-%s.git", slug(repo.Name, 40), hex.EncodeToString(sum[:4])))
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.state[dir]
	if st == nil {
		st = &state{}
		m.state[dir] = st
	}
	return &Mirror{repo: repo, dir: dir, home: m, st: st}
}

func (r *Mirror) Repository() Repository { return r.repo }

// slug makes a text safe for folders, branches and refs: lower-case letters,
// digits and single dashes, at most max bytes, never empty.
func slug(s string, max int) string {
	var b strings.Builder
	for _, c := range strings.ToLower(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= max {
			break
		}
	}
	if out := strings.Trim(b.String(), "-"); out != "" {
		return out
	}
	return "x"
}

// Plant makes a repository in dir, which must not exist, with one commit of the
// files on the branch main.
func (m *Mirrors) Plant(ctx context.Context, dir string, files map[string][]byte, message string) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make a repository: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("make a repository: %w", err)
		}
	}
	if err := m.furnish(); err != nil {
		return err
	}
	r := m.Open(Repository{Name: filepath.Base(dir), Source: dir})
	if err := r.writeConfig(); err != nil {
		return err
	}
	own := filepath.Join(dir, ".git")
	who := []string{"GIT_WORK_TREE=" + dir, "GIT_AUTHOR_NAME=" + m.opts.Name, "GIT_AUTHOR_EMAIL=" + m.opts.Email,
		"GIT_COMMITTER_NAME=" + m.opts.Name, "GIT_COMMITTER_EMAIL=" + m.opts.Email}
	for _, c := range []command{
		{gitDir: "-", args: []string{"init", "--quiet", "--initial-branch=main", "--", dir}},
		{gitDir: own, dir: dir, env: who, args: []string{"add", "--all"}},
		{gitDir: own, dir: dir, env: who, args: []string{"commit", "--quiet", "--no-verify", "-m", message}},
	} {
		if _, err := r.git(ctx, c); err != nil {
			return fmt.Errorf("make a repository: %w", err)
		}
	}
	return nil
}

// Clone makes dir, which must not exist or be empty, a repository of its own with
// the history and files of the mirror's branch. The source is only read.
func (r *Mirror) Clone(ctx context.Context, dir string) (Base, error) {
	if err := r.Fetch(ctx); err != nil {
		return Base{}, err
	}
	head, err := r.Branch(ctx, "")
	if err != nil {
		return Base{}, err
	}
	return head, r.Checkout(ctx, head.Commit, head.Tree, dir)
}

// ownerLen is the length of a delegation's id, which keys of revisions and trees begin with.
const ownerLen = len("dlg_") + 26

// Forget removes from the mirror what belongs to delegations that are gone: their
// revisions, their kept trees, and agents' branches that end there. gone is asked with the
// ids of those that the mirror knows. Objects that nothing reaches then go once they are
// three days old, so that what a run is writing just now stays. It returns how many refs
// it removed; a mirror that is not on this machine has none.
func (r *Mirror) Forget(ctx context.Context, gone func(ids []string) (map[string]bool, error)) (int, error) {
	if !r.onDisk() {
		return 0, nil
	}
	out, err := r.git(ctx, command{args: []string{"for-each-ref", "--format=%(objectname) %(refname)", "refs/gatehouse", "refs/heads/" + branchPrefix}})
	if err != nil {
		return 0, fmt.Errorf("list what is kept: %w", err)
	}
	type kept struct{ object, ref, owner string }
	var all []kept
	var ids []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		object, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		k := kept{object: object, ref: ref, owner: ownerOf(ref)}
		all = append(all, k)
		if k.owner != "" && !seen[k.owner] {
			seen[k.owner] = true
			ids = append(ids, k.owner)
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	which, err := gone(ids)
	if err != nil {
		return 0, err
	}
	var in bytes.Buffer
	removed, ends, used := 0, map[string]bool{}, map[string]bool{}
	for _, k := range all {
		switch {
		case which[k.owner]:
			fmt.Fprintf(&in, "delete %s %s\n", k.ref, k.object)
			removed, ends[k.object] = removed+1, true
		case k.owner != "":
			used[k.object] = true
		}
	}
	for _, k := range all {
		if k.owner == "" && ends[k.object] && !used[k.object] && strings.HasPrefix(k.ref, "refs/heads/"+branchPrefix) {
			fmt.Fprintf(&in, "delete %s %s\n", k.ref, k.object)
			removed++
		}
	}
	if removed == 0 {
		return 0, nil
	}
	if _, err := r.git(ctx, command{args: []string{"update-ref", "--stdin"}, stdin: &in}); err != nil {
		return 0, fmt.Errorf("remove what is gone: %w", err)
	}
	_, err = r.git(ctx, command{args: []string{"gc", "--quiet", "--prune=3.days.ago"}})
	return removed, err
}

// ownerOf is the id of the delegation that a ref of a revision or a tree belongs to, ""
// for other refs.
func ownerOf(ref string) string {
	for _, prefix := range []string{"refs/gatehouse/rev/", "refs/gatehouse/tree/"} {
		if key, ok := strings.CutPrefix(ref, prefix); ok && len(key) >= ownerLen && strings.HasPrefix(key, "dlg_") {
			return key[:ownerLen]
		}
	}
	return ""
}
