package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// rawDiff are the options under which every diff is made: nothing that the
// patch itself commits (attributes) and nothing on the machine changes them.
var rawDiff = []string{"diff-tree", "-r", "--full-index", "--no-abbrev", "--no-ext-diff", "--no-textconv",
	"--find-renames=50%", "--find-copies=50%", "-l2000", "--diff-algorithm=histogram", "--no-color", "--no-relative",
	"--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"}

func diffArgs(baseTree, tree string, options ...string) []string {
	return append(append(append([]string{}, rawDiff...), options...), baseTree, tree)
}

// Review computes what people see of a patch, from its two trees alone.
func (r *Mirror) Review(ctx context.Context, baseTree, tree string) (*Review, error) {
	files, err := r.stat(ctx, baseTree, tree)
	if err != nil {
		return nil, err
	}
	review := &Review{Files: files, Warnings: []Warning{}, Notes: []Note{}}
	if files == nil {
		review.Files = []File{}
		return review, nil
	}
	if err := r.measure(ctx, review.Files); err != nil {
		return nil, err
	}
	scan, err := r.scan(ctx, baseTree, tree, review.Files)
	if err != nil {
		return nil, err
	}
	for i := range review.Files {
		f := &review.Files[i]
		review.Added += f.Added
		review.Removed += f.Removed
		f.Generated, f.Reason = generated(f.Path, scan.marked[f.Path])
	}
	return review, r.warn(ctx, review, baseTree, tree, scan)
}

// stat lists the changed files with renames, copies and line counts.
func (r *Mirror) stat(ctx context.Context, baseTree, tree string) ([]File, error) {
	if err := checkIDs(baseTree, tree); err != nil {
		return nil, err
	}
	if baseTree == tree {
		return nil, nil
	}
	out, err := r.git(ctx, command{args: diffArgs(baseTree, tree, "-z", "--raw", "--numstat"), max: 256 << 20})
	if err != nil {
		return nil, r.missing(err)
	}
	return parseStat(string(out))
}

// parseStat reads the raw list and, after it, the counts; both NUL-separated.
func parseStat(out string) ([]File, error) {
	fields := strings.Split(out, "\x00")
	var files []File
	at := map[string]int{}
	i := 0
	take := func() string {
		if i < len(fields) {
			i++
			return fields[i-1]
		}
		return ""
	}
	for i < len(fields) && strings.HasPrefix(fields[i], ":") {
		f, both, err := parseRawFile(take())
		if err != nil {
			return nil, err
		}
		f.Path = take()
		if both {
			f.OldPath, f.Path = f.Path, take()
		}
		at[f.Path] = len(files)
		files = append(files, f)
	}
	for i < len(fields) && fields[i] != "" {
		n := strings.SplitN(take(), "\t", 3)
		if len(n) != 3 {
			return nil, fmt.Errorf("git diff-tree printed the counts %q", n)
		}
		name := n[2]
		if name == "" {
			take()
			name = take()
		}
		k, ok := at[name]
		if !ok {
			return nil, fmt.Errorf("git diff-tree counts %q, which it does not list", name)
		}
		f := &files[k]
		f.Binary = n[0] == "-"
		added, _ := strconv.Atoi(n[0])
		removed, _ := strconv.Atoi(n[1])
		f.Added, f.Removed = f.Added+added, f.Removed+removed
	}
	return files, nil
}

func parseRawFile(s string) (f File, both bool, err error) {
	c, ok := parseRaw(s)
	if !ok {
		return f, false, fmt.Errorf("git diff-tree printed %q", s)
	}
	f = File{OldMode: c.OldMode, NewMode: c.NewMode, OldBlob: c.OldID, NewBlob: c.NewID}
	if isZero(f.OldBlob) {
		f.OldBlob, f.OldMode = "", ""
	}
	if isZero(f.NewBlob) {
		f.NewBlob, f.NewMode = "", ""
	}
	status := strings.Fields(s)[4]
	switch status[0] {
	case 'A':
		f.Status = Added
	case 'D':
		f.Status = Deleted
	case 'T':
		f.Status = TypeChanged
	case 'R', 'C':
		f.Status, both = Renamed, true
		if status[0] == 'C' {
			f.Status = Copied
		}
		f.Similarity, _ = strconv.Atoi(status[1:])
	default:
		f.Status = Modified
		if f.OldBlob == f.NewBlob && f.OldMode != f.NewMode {
			f.Status = ModeChanged
		}
	}
	return f, both, nil
}

// measure fills in the sizes.
func (r *Mirror) measure(ctx context.Context, files []File) error {
	var ids []string
	for _, f := range files {
		if f.OldBlob != "" && f.OldMode != modeGit {
			ids = append(ids, f.OldBlob)
		}
		if f.NewBlob != "" && f.NewMode != modeGit {
			ids = append(ids, f.NewBlob)
		}
	}
	sizes, err := r.sizes(ctx, ids)
	if err != nil {
		return err
	}
	for i := range files {
		files[i].OldSize, files[i].NewSize = max(sizes[files[i].OldBlob], 0), max(sizes[files[i].NewBlob], 0)
	}
	return nil
}

// Diff is the patch as plain unified diff text, with full ids and binary
// content, the same for the same two trees. The limit is 128 MiB.
func (r *Mirror) Diff(ctx context.Context, baseTree, tree string) ([]byte, error) {
	if err := checkIDs(baseTree, tree); err != nil {
		return nil, err
	}
	out, err := r.git(ctx, command{args: diffArgs(baseTree, tree, "-p", "--binary", "--unified=3"), max: 128 << 20})
	return out, r.missing(err)
}

// maxScan bounds how much added text is looked through for warnings, in bytes;
// validation has refused larger patches long before.
const maxScan = 128 << 20

// scanned is what the added lines hold.
type scanned struct {
	risks  map[string]map[string]bool // path → warning codes
	marked map[string]bool            // files that say of themselves that they are generated
	cr     map[string]bool            // files with a carriage return in or beside a change
	cut    bool                       // there was more than maxScan
}

// scan looks through the added lines of all files. git quotes odd names in the
// text, so the file is known by its place in the list.
func (r *Mirror) scan(ctx context.Context, baseTree, tree string, files []File) (*scanned, error) {
	s := &scanned{risks: map[string]map[string]bool{}, marked: map[string]bool{}, cr: map[string]bool{}}
	out, err := r.git(ctx, command{args: diffArgs(baseTree, tree, "-p", "--unified=1"), max: maxScan})
	if errors.Is(err, errOutput) {
		s.cut = true
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.read(out, files)
	if err := r.scanEndings(ctx, files, s); err != nil {
		return nil, err
	}
	return s, r.scanLinks(ctx, files, s)
}

func (s *scanned) read(diff []byte, files []File) {
	i, left := -1, 0 // lines of the hunk still to come
	for len(diff) > 0 {
		line := diff
		if n := bytes.IndexByte(diff, '\n'); n >= 0 {
			line, diff = diff[:n], diff[n+1:]
		} else {
			diff = nil
		}
		if left > 0 && i >= 0 && i < len(files) && bytes.IndexByte(line, '\r') >= 0 {
			s.cr[files[i].Path] = true
		}
		switch {
		case left > 0 && len(line) > 0 && line[0] == '+':
			left--
			if i >= 0 && i < len(files) {
				s.line(files[i].Path, string(line[1:]))
			}
		case left > 0 && len(line) > 0 && (line[0] == '-' || line[0] == ' '):
			left--
		case bytes.HasPrefix(line, []byte("diff --git ")):
			left = 0
			i = s.next(line, files, i)
		case bytes.HasPrefix(line, []byte("@@ ")):
			if h, ok := parseHunkHead(string(line)); ok {
				left = h.oldLines + h.newLines
			}
		}
	}
}

// next finds the file that a header belongs to. A change of type is one file in
// the list and two in the text: a deletion, then an addition.
func (s *scanned) next(line []byte, files []File, i int) int {
	head := string(line[len("diff --git "):])
	if i >= 0 && i < len(files) && files[i].Status == TypeChanged {
		for _, p := range splitNames(head) {
			if p[1] == files[i].Path {
				return i
			}
		}
	}
	return i + 1
}

// line looks at one added line.
func (s *scanned) line(name, text string) {
	text = strings.TrimSuffix(text, "\r")
	ascii := true
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < 0x20 && c != '\t' {
			ascii = false
			break
		}
	}
	if !ascii {
		for _, p := range Visible(text) {
			if p.Risk != "" {
				s.add(name, p.Risk)
			}
		}
		if lookalike(text) {
			s.add(name, RiskLookalike)
		}
	}
	if len(text) > 12 && secretLike(text) {
		s.add(name, "secret_like")
	}
	if strings.Contains(text, "DO NOT EDIT") && strings.Contains(text, "enerated") || strings.Contains(text, "@generated") {
		s.marked[name] = true
	}
}

func (s *scanned) add(name, code string) {
	if s.risks[name] == nil {
		s.risks[name] = map[string]bool{}
	}
	s.risks[name][code] = true
}

// scanLinks looks at where links lead: their targets are text as well.
func (r *Mirror) scanLinks(ctx context.Context, files []File, s *scanned) error {
	var ids, names []string
	for _, f := range files {
		if f.NewMode == modeLink {
			ids, names = append(ids, f.NewBlob), append(names, f.Path)
		}
	}
	return r.blobs(ctx, ids, func(i int, _ int64, in io.Reader) error {
		target, err := io.ReadAll(io.LimitReader(in, maxTarget))
		s.line(names[i], string(target))
		return err
	})
}

// generated says whether people mostly skip a file, and why. It only folds the
// file on the page; its warnings stay.
func generated(name string, marked bool) (bool, string) {
	base := path.Base(name)
	switch {
	case lockFiles[base]:
		return true, "lock file"
	case inFolder(name, "vendor", "node_modules", "third_party"):
		return true, "vendored"
	case strings.HasSuffix(base, ".min.js"), strings.HasSuffix(base, ".min.css"), strings.HasSuffix(base, ".map"):
		return true, "minified"
	case marked, strings.HasSuffix(base, ".pb.go"), strings.HasSuffix(base, "_templ.go"), strings.HasSuffix(base, "_pb2.py"),
		strings.HasSuffix(base, ".g.dart"), strings.HasSuffix(base, ".snap"):
		return true, "generated"
	}
	return false, ""
}

func inFolder(name string, folders ...string) bool {
	for _, f := range folders {
		if strings.HasPrefix(name, f+"/") || strings.Contains(name, "/"+f+"/") {
			return true
		}
	}
	return false
}
