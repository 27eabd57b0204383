package patch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
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
		Files: pick(l.Files, wider.Files), Lines: pick(l.Lines, wider.Lines),
		FileBytes: pick(l.FileBytes, wider.FileBytes), Bytes: pick(l.Bytes, wider.Bytes),
		TextBytes: pick(l.TextBytes, wider.TextBytes), Entries: pick(l.Entries, wider.Entries),
		BundleBytes: pick(l.BundleBytes, wider.BundleBytes),
	}
}

func pick[N int | int64](v, otherwise N) N {
	if v > 0 {
		return v
	}
	return otherwise
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
	if opts.Name == "" {
		opts.Name = "Gatehouse"
	}
	if opts.Email == "" {
		opts.Email = "gatehouse@localhost"
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 10 * time.Minute
	}
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

// Repository is what the mirror was opened with.
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
